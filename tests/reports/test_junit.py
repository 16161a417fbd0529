"""JUnit: well formed whatever a host says, one case per check, and counts that are right."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.model import Finding, MissingProbe, Report, Result, Status
from preflight.reports import render
from tests.reports.built import (
    HOSTILE,
    host,
    hostile,
    one_host,
    passed,
    report,
    rich,
    skipped,
    undetermined,
    warm,
    width,
)
from tests.reports.fleet import broken, cluster, thousand

Element = ElementTree.Element


def document(told: Report) -> Element:
    return ElementTree.fromstring("".join(render(told, "junit")))


def case(told: Report, name: str) -> Element:
    (found,) = (one for one in document(told).iter("testcase") if one.get("name") == name)
    return found


def outcome(element: Element) -> str:
    return element[0].tag if len(element) else "passed"


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([passed("a.b", "gpu0", 1, "1")], "passed"),
        ([width("gpu0", 1)], "failure"),
        ([undetermined("a.b", "gpu0", "lost")], "error"),
        ([skipped("a.b", "gpu0", "none")], "skipped"),
        ([warm("gpu0", 90)], "system-out"),
        ([passed("a.b", "gpu0", 1, "1"), skipped("a.b", "gpu1", "none")], "system-out"),
    ],
)
def test_each_status_is_what_ci_systems_know(results: list[Result], expected: str) -> None:
    (found,) = document(report(host("n1", *results))).iter("testcase")
    assert outcome(found) == expected


def test_subjects_of_one_check_are_one_case_with_the_worst_status() -> None:
    told = report(host("n1", passed("pcie.width", "gpu0", "x16", "x16"), width("gpu1", 1)))
    found = case(told, "pcie.width")
    assert outcome(found) == "failure"
    assert found[0].get("message") == "gpu1: x8, expected x16: half of the lanes did not train"
    assert "seen: nvidia-smi:1  Current : 8x" in (found[0].text or "")
    assert "do: inspect" in (found[0].text or "")


@pytest.mark.parametrize("told", [report(), one_host(), rich()])
def test_the_counts_are_those_of_the_cases(told: Report) -> None:
    root = document(told)
    for element in (root, *root.iter("testsuite")):
        cases = list(element.iter("testcase"))
        assert int(element.get("tests", "")) == len(cases)
        for attribute, tag in (
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            assert int(element.get(attribute, "")) == sum(outcome(one) == tag for one in cases)
        assert float(element.get("time", "")) == pytest.approx(told.elapsed_s)


def test_a_suite_for_each_host_and_for_what_is_over_all() -> None:
    names = [suite.get("name") for suite in document(rich()).iter("testsuite")]
    assert names == [*(f"node-0{i}" for i in range(1, 6)), "fleet", "findings"]


def test_no_two_cases_have_the_same_name() -> None:
    names = [(one.get("classname"), one.get("name")) for one in document(rich()).iter("testcase")]
    assert len(set(names)) == len(names)


def test_a_host_that_did_not_answer_is_a_case_in_error() -> None:
    gone = MissingProbe("ssh", "unreachable", "ssh: Connection timed out")
    found = case(report(host("n1", missing=[gone])), "host.answers")
    assert outcome(found) == "error"
    assert "Connection timed out" in (found[0].get("message") or "")


def test_the_fault_of_a_host_is_the_type_of_its_error() -> None:
    found = case(report(broken("n1", "refused", "connect to n1 port 22: refused")), "host.answers")
    assert found[0].get("type") == "refused"
    assert found[0].get("message") == "the connection is refused: connect to n1 port 22: refused"
    assert "do: is sshd running there?" in (found[0].text or "")


def test_a_host_that_broke_off_has_its_cases_and_that_one() -> None:
    told = report(broken("n1", "died", "n1 broke off", passed("a.b", "gpu0", 1, "1")))
    found = list(document(told).iter("testcase"))
    assert [(one.get("name"), outcome(one)) for one in found] == [
        ("host.answers", "error"),
        ("a.b", "passed"),
    ]
    assert found[0][0].get("type") == "died"


def test_the_cluster_is_a_suite_per_host_and_one_of_the_fleet() -> None:
    names = [suite.get("name") for suite in document(cluster()).iter("testsuite")]
    assert names == [*(f"node{i:03}" for i in range(1, 129)), "fleet"]


def test_a_thousand_hosts_are_some_tens_of_megabytes_and_never_one_string() -> None:
    pieces = [len(piece) for piece in render(thousand(200, 800), "junit")]
    assert max(pieces) < 200_000
    assert sum(pieces) < 200 * 50_000


def test_a_finding_is_a_case() -> None:
    told = report(findings=[Finding("data-wait", Status.FAIL, "rank 3", 0.4, fix=("add workers",))])
    found = case(told, "data-wait rank 3")
    assert outcome(found) == "failure"
    assert "do: add workers" in (found[0].text or "")


def test_an_undetermined_check_does_not_advise_as_if_it_had_failed() -> None:
    text = "".join(render(report(host("n1", undetermined("a.b", "gpu0", "lost"))), "junit"))
    assert "replace" not in text


def test_hostile_text_stays_text() -> None:
    text = "".join(render(report(host("n]]>1", hostile())), "junit"))
    assert "<script>" not in text
    root = ElementTree.fromstring(text)
    said = "".join(root.itertext())
    assert HOSTILE[HOSTILE.index("<script") : HOSTILE.index("</script>")] in said
    assert "\\x1b[2J" in said


@settings(max_examples=50)
@given(st.text(), st.text(), st.text(min_size=1))
def test_the_document_is_well_formed_whatever_is_told(name: str, text: str, check: str) -> None:
    told = report(host(name, Result(check, text, Status.FAIL, text, text, reason=text)))
    assert len(list(document(told).iter("testcase"))) == 1
