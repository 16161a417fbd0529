"""The ticket: what failed and what to do first, and nothing a host says is obeyed."""

from __future__ import annotations

import re

import pytest

from preflight.model import MissingProbe, Report
from preflight.reports import render
from preflight.reports.markdown import code, escape, prose
from tests.reports.built import (
    HOSTILE,
    host,
    hostile,
    one_host,
    passed,
    report,
    retired,
    rich,
    skipped,
    undetermined,
    width,
)


def ticket(told: Report) -> str:
    return "".join(render(told, "markdown"))


def test_the_verdict_leads_and_failures_come_before_the_rest() -> None:
    text = ticket(rich())
    assert text.startswith("# FAIL: preflight run on node-")
    headings = re.findall(r"(?m)^## (.*)$", text)
    assert headings == [
        "Failed", "Could not be determined", "Warnings", "all\\_reduce on node-01", "Not checked",
        "Next",
    ]  # fmt: skip


def test_a_failure_says_what_to_do_and_folds_its_evidence_away() -> None:
    text = ticket(report(host("n1", width("gpu3", 212))))
    assert "### pcie.width on gpu3" in text
    assert "- **Do:** inspect cable, seat, optics, cooling, power\n  - reseat the card" in text
    assert "`sudo nvidia-smi --gpu-reset -i 3`" in text
    assert "<details><summary>Evidence</summary>\n\n```text\nnvidia-smi:212  Current : 8x" in text
    assert "- **More:** `preflight explain pcie-link-degraded`" in text


def test_values_that_differ_are_told_for_each_subject() -> None:
    text = ticket(report(host("n1", retired("gpu0", 65, 1), retired("gpu1", 63, 2))))
    assert "63 to 65 pages, expected at most 60" in text
    assert "- **Each:** 65 pages at gpu0, 63 pages at gpu1" in text


def test_hosts_are_a_table_with_equal_ones_in_one_row() -> None:
    text = ticket(rich())
    assert r"| node-\[01-02\] | FAIL | 8 x NVIDIA H100 80GB HBM3, driver 535.161.08 |" in text
    assert r"| node-\[04-05\] | ERROR | unreachable: ssh: connect to host port 22" in text


def test_what_was_not_checked_is_listed_with_its_reason() -> None:
    told = report(host("n1", skipped("a.b", "gpu0", "none"), skipped("a.b", "gpu1", "none")))
    assert "## Not checked\n\n- 2 x none: a.b" in ticket(told)
    assert "SKIP: nothing was verified" in ticket(told)


def test_a_silent_host_is_told() -> None:
    gone = MissingProbe("ssh", "unreachable", "ssh: Connection timed out")
    text = ticket(report(host("n1", missing=[gone]), host("n2", passed("a.b", "n2", 1, "1"))))
    assert "### Nothing is known of n1\n\n- unreachable: ssh: Connection timed out" in text


def test_an_undetermined_check_does_not_advise_as_if_it_had_failed() -> None:
    text = ticket(report(host("n1", undetermined("a.b", "gpu0", "lost"))))
    assert "lost" in text
    assert "replace" not in text


def outside_code(text: str) -> str:
    """The text as a renderer of Markdown would obey it: without fences, spans and escapes."""
    text = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", text)
    text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", re.sub(r"\\[^\w\s]", "", text))
    return text.replace("<details><summary>Evidence</summary>", "").replace("</details>", "")


def test_nothing_that_a_host_says_is_markup() -> None:
    told = report(host("n`|1", hostile(), summary=HOSTILE, missing=()))
    bare = outside_code(ticket(told))
    assert "<" not in bare
    assert "`" not in bare
    assert "![" not in bare
    assert "@all" not in bare
    assert "\x1b" not in ticket(told)
    rows = [line for line in ticket(told).splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [4, 4, 4]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b *c* [x](y)", r"a\_b \*c\* \[x\](y)"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("@all #12 $x$", r"&#64;all \#12 \$x\$"),
        ("http://x www.y", "http:&#47;&#47;x www&#46;y"),
        ("- x", r"\- x"),
        ("1. x", r"1\. x"),
        ("a|b\nc", r"a\|b\\x0ac"),
    ],
)
def test_escape(text: str, shown: str) -> None:
    assert escape(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [("x", "`x`"), ("a`b", "`` a`b ``"), ("``", "``` `` ```")],
)
def test_code_spans_hold_backticks(text: str, shown: str) -> None:
    assert code(text) == shown


def test_commands_in_advice_are_code() -> None:
    assert prose("compare `a_b` with *c*") == r"compare `a_b` with \*c\*"
    assert prose("sudo nvidia-smi -r") == "`sudo nvidia-smi -r`"


def test_the_evidence_of_a_cluster_is_cut_short() -> None:
    told = report(*(host(f"n{i}", width("gpu0", i + 1)) for i in range(60)))
    text = ticket(told)
    assert text.count("Current : 8x") == 40
    assert "and 20 more lines, in the JSON report" in text


def test_groups_are_told_once() -> None:
    text = ticket(one_host())
    assert text.count("gpu.retired.total") == 1
    assert text.count("gpu.remap.failure") == 1
