"""The catalogue: what is refused at load, with file and line, all of it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight import runbooks, strict_yaml
from preflight.errors import UsageError
from preflight.judge.load import DOMAINS, load

GOOD = """
- id: site.width
  title: Full width
  fact: gpus[*].pcie.width
  fail_unless: {min: 8}
  why: It is slow.
  fix: [reseat]
  action: inspect
  runbook: pcie-link-degraded
"""


def _load(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "site.yaml").write_text(text)
    return [check.id for check in load((), [tmp_path]).checks]


def test_a_good_check_is_taken(tmp_path: Path) -> None:
    assert _load(tmp_path, GOOD) == ["site.width"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("title:", "titel:", "unknown key 'titel'"),
        ("  why: It is slow.\n", "", "why is missing"),
        ("gpus[*].pcie.width", "gpus[*].pcie.wide", "no fact 'wide'"),
        ("{min: 8}", "{minimum: 8}", "unknown operator 'minimum'"),
        ("{min: 8}", "{min: eight}", "min takes a number"),
        ("{min: 8}", "{min: 8, max: 9}", "exactly one operator"),
        ("{min: 8}", "{}", "fail_unless or warn_unless is missing"),
        ("{min: 8}", "{min: {bound: pcie_wide}}", "unknown bound 'pcie_wide'"),
        ("{min: 8}", "{min: {fact: .pcie.x}}", "no fact 'x'"),
        ("{min: 8}", "{min: {fraction: 1}}", "a value is a literal"),
        ("{min: 8}", "{uniform: true}", "uniform and `across` go together"),
        ("action: inspect", "action: explode", "action is one of none, watch"),
        ("action: inspect", "action: inspect\n  level: slow", "level is one of quick"),
        ("action: inspect", "action: inspect\n  when: {virtualisation: none}", "when: "),
        ("action: inspect", "action: inspect\n  where: {pcie.gen: 4}", "begin with a dot"),
        ("action: inspect", "action: inspect\n  rule: nothing", "rule is one of"),
        ("site.width", "Width", "an id is words with dots"),
        ("{min: 8}", "{uniform: true}\n  across: rack", "across is one of host, fleet"),
        ("{min: 8}", "{min: 8}\n  across: fleet", "min and `across` go together"),
        ("{min: 8}", "{min: 8}\n  like: [.product]", "like needs across: fleet"),
        ("{min: 8}", "{min: 8}\n  everywhere: true", "everywhere needs across: fleet"),
        ("{min: 8}", "{uniform: true}\n  across: fleet\n  like: [.produkt]", "no fact 'produkt'"),
        ("{min: 8}", "{uniform: true}\n  across: fleet\n  like: [cpu.modell]", "no fact 'modell'"),
        ("{min: 8}", "{uniform: true}\n  across: fleet\n  like: ['gpus[*].name']", "many values"),
        ("{min: 8}", "{uniform: true}\n  across: fleet\n  like: [8]", "8 is no path"),
        ("{min: 8}", "{uniform: true}\n  across: fleet\n  like: .name", "like must be a list"),
        ("{min: 8}", "{uniform: true}\n  across: fleet\n  everywhere: true", "like: [.name]"),
        ("{min: 8}", "{uniform: true}\n  across: fleet\n  rule: sel", "a rule judges one host"),
        ("fix: [reseat]", "fix: reseat", "fix must be a list"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as error:
        _load(tmp_path, GOOD.replace(old, new))
    assert told in error.value.what
    assert "site.yaml:2:" in error.value.what


def test_a_check_over_the_fleet_is_taken(tmp_path: Path) -> None:
    fleet = "{uniform: true}\n  across: fleet\n  like: [.name, cpu.model]\n  everywhere: true"
    assert _load(tmp_path, GOOD.replace("{min: 8}", fleet)) == ["site.width"]
    (check,) = load((), [tmp_path]).checks
    assert (check.across, check.like, check.everywhere) == ("fleet", (".name", "cpu.model"), True)


def test_a_dot_in_like_needs_elements(tmp_path: Path) -> None:
    fleet = "{uniform: true}\n  across: fleet\n  like: [.product]"
    bad = GOOD.replace("{min: 8}", fleet).replace("gpus[*].pcie.width", "cpu.model")
    with pytest.raises(UsageError) as error:
        _load(tmp_path, bad)
    assert "the fact must have [*]" in error.value.what


def test_all_errors_are_told_at_once(tmp_path: Path) -> None:
    bad = GOOD.replace("title:", "titel:").replace("inspect", "explode")
    with pytest.raises(UsageError) as error:
        _load(tmp_path, bad + bad.replace("site.width", "site.other"))
    assert error.value.what.count("titel") == 2
    assert error.value.what.count("action is one of") == 2


def test_a_repeated_id_names_both_places(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        _load(tmp_path, GOOD + GOOD)
    assert "stands already at" in error.value.what


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3\n", "t:3: key 'a' stands already in line 1"),
        ("a: &x [1]\nb: *x\n", "aliases are not taken"),
        ("a: [1\n", "t:"),
        ("a: 1\n---\nb: 2\n", "t:2"),
        ("? [a]\n: 1\n", "a key must be a word"),
    ],
)
def test_yaml_that_is_out_of_order_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        strict_yaml.load(text, "t")
    assert told in error.value.what


def test_yaml_has_no_surprises() -> None:
    read = strict_yaml.load("a: on\nb: 10:20\nc: 010\nd: 2026-01-02\ne:\nf: 1e3\ng: 'true'\n", "t")
    assert dict(read) == {
        "a": "on", "b": "10:20", "c": 10, "d": "2026-01-02", "e": None, "f": 1000.0, "g": "true",
    }  # fmt: skip


def test_site_probes(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "probes: [{id: site.lustre, argv: [lfs, df, /scratch], timeout_s: 7}]\n"
        "checks:\n" + GOOD.replace("gpus[*].pcie.width", "site.lustre.number").replace("\n", "\n  ")
    )
    catalogue = load((), [tmp_path])
    (probe,) = catalogue.probes
    assert (probe.probe, probe.argv, probe.timeout_s) == (
        "site.lustre",
        ("lfs", "df", "/scratch"),
        7,
    )


@pytest.mark.parametrize(
    "probe",
    [
        "{id: lustre, argv: [a]}", "{id: site.x, argv: lfs df}", "{id: site.x, argv: []}",
        "{id: site.x, argv: [a], timeout_s: 0}", "{id: site.x, argv: [a], shell: true}", "site.x",
    ],
)  # fmt: skip
def test_a_site_probe_is_a_list_of_words_with_a_limit(tmp_path: Path, probe: str) -> None:
    with pytest.raises(UsageError):
        _load(tmp_path, f"probes: [{probe}]\n")


def test_every_shipped_check_names_a_runbook_that_is_there() -> None:
    books = runbooks.load()
    checks = load(DOMAINS, hold=True).checks
    assert len(checks) > 60
    assert {check.runbook for check in checks} - set(books) == set()
    # The others are for symptoms that no check looks for yet: found by words alone.
    assert all(book.symptoms for book in books.values())


def test_every_shipped_check_tells_why_and_what_to_do() -> None:
    for check in load(DOMAINS).checks:
        assert check.title, check.id
        assert check.why.endswith((".", ")")), check.id
        assert check.fix, check.id
