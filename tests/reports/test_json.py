"""The JSON report: as its schema says, safe to show, and read back or refused."""

from __future__ import annotations

import json as std_json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

import jsonschema
import msgspec
import pytest

import preflight.reports
from preflight.errors import UsageError
from preflight.model import (
    Action,
    Advice,
    Change,
    ChangeKind,
    Changes,
    Counts,
    Evidence,
    Export,
    Finding,
    Group,
    HostReport,
    LinkTable,
    Map,
    MapNode,
    MissingProbe,
    Override,
    Report,
    Result,
    Seat,
    Snippet,
    Status,
)
from preflight.reports import render
from preflight.reports.json import encode, read
from tests.reports.built import host, one_host, passed, report, rich

SCHEMA = std_json.loads(
    (Path(preflight.reports.__file__).parent / "report.schema.json").read_text(encoding="utf-8")
)
GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def document(told: Report, *, facts: bool = False) -> Any:
    return std_json.loads("".join(render(told, "json", facts=facts)))


def faults(value: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return [error.message for error in validator.iter_errors(value)]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_golden_report_is_as_the_schema_says() -> None:
    assert faults(std_json.loads((GOLDEN / "report.json").read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("told", [report(), report(host("node-01")), one_host(), rich()])
def test_built_reports_are_as_the_schema_says(told: Report) -> None:
    assert faults(document(told)) == []


def _broken() -> list[tuple[str, Any]]:
    good = document(rich())
    edits: dict[str, Callable[[Any], Any]] = {
        "no verdict": lambda d: d.pop("verdict"),
        "another schema": lambda d: d.update(schema="preflight.report/2"),
        "a made-up status": lambda d: d["hosts"][0].update(verdict="OK"),
        "a PASS with advice": lambda d: d["hosts"][0]["results"][0].update(fix=["none"]),
        "a local time": lambda d: d.update(started_at="2026-01-02 03:04:05"),
        "an unknown key": lambda d: d["hosts"][0].update(colour="red"),
        "a list for a number": lambda d: d["counts"].update(fail=[1]),
        "a kind that is none": lambda d: d["hosts"][3]["missing"][0].update(kind="tired"),
        "an action that is none": lambda d: d["fleet"][0].update(action="panic"),
    }
    cases = []
    for name, edit in edits.items():
        broken = deepcopy(good)
        edit(broken)
        cases.append((name, broken))
    return cases


@pytest.mark.parametrize(("name", "broken"), _broken())
def test_a_broken_report_is_not_as_the_schema_says(name: str, broken: Any) -> None:
    assert len(faults(broken)) >= 1, name


@pytest.mark.parametrize(
    ("record", "part"),
    [
        (Report, SCHEMA),
        (Counts, SCHEMA["properties"]["counts"]),
        (HostReport, SCHEMA["$defs"]["host"]),
        (MissingProbe, SCHEMA["$defs"]["missing"]),
        *(
            (record, SCHEMA["$defs"][name])
            for name, record in {
                "map": Map,
                "map_node": MapNode,
                "link_table": LinkTable,
                "advice": Advice,
                "group": Group,
                "seat": Seat,
                "export": Export,
                "snippet": Snippet,
            }.items()
        ),
        (Result, SCHEMA["$defs"]["result"]),
        (Finding, SCHEMA["$defs"]["finding"]),
        (Evidence, SCHEMA["$defs"]["line"]),
        (Override, SCHEMA["$defs"]["override"]),
        (Changes, SCHEMA["$defs"]["changes"]),
        (Change, SCHEMA["$defs"]["change"]),
    ],
)
def test_the_schema_names_the_fields_of_the_record(record: Any, part: Any) -> None:
    assert set(part["properties"]) == {
        field.encode_name for field in msgspec.structs.fields(record)
    }


def test_the_schema_names_all_actions_and_statuses() -> None:
    assert SCHEMA["$defs"]["action"]["enum"] == [action.value for action in Action]
    assert set(SCHEMA["$defs"]["status"]["enum"]) == {status.value for status in Status}
    kinds = SCHEMA["$defs"]["change"]["properties"]["kind"]["enum"]
    assert kinds == list(get_args(ChangeKind))


def test_the_schema_stands_first_and_a_pass_is_short() -> None:
    text = "".join(render(one_host(), "json"))
    assert text.startswith('{\n "schema": "preflight.report/1",')
    first = document(one_host())["hosts"][0]["results"][0]
    assert list(first) == ["check", "subject", "status", "measured", "expected"]
    assert document(one_host())["profile"] is None


def test_facts_of_several_hosts_are_written_only_when_asked_for() -> None:
    assert document(one_host())["hosts"][0]["facts"] == {"driver": "535"}
    assert document(rich())["hosts"][0]["facts"] is None
    assert document(rich(), facts=True)["hosts"][0]["facts"] == {
        "driver": {"version": "535.161.08"}
    }


def test_rendering_leaves_the_report_as_it_was() -> None:
    told = rich()
    list(render(told, "json"))
    assert told.hosts[0].facts is not None


@pytest.mark.parametrize(
    "char",
    ["\x1b", "\x07", "\x7f", "\x9b", "\u2028", "\u2029", "\u202e", "\u2066", "\u200f", "\uffff"],
)
def test_no_character_that_a_terminal_obeys_is_written_bare(char: str) -> None:
    told = report(host("node-01", passed("a.b", f"x{char}y", f"{char}", "z")))
    text = "".join(render(told, "json"))
    assert char not in text
    assert f"x\\u{ord(char):04x}y" in text
    assert read(text).hosts[0].results[0].subject == f"x{char}y"


def test_what_is_not_finite_is_null() -> None:
    told = report(host("node-01", passed("a.b", "gpu0", float("inf"), "1")), elapsed_s=float("nan"))
    text = "".join(render(told, "json"))
    assert document(told)["elapsed_s"] is None
    assert "NaN" not in text
    assert "Infinity" not in text


def test_a_byte_that_was_no_utf_8_is_written_as_an_escape() -> None:
    assert std_json.loads(encode({"a\udc80": ["b\udcff", 1]})) == {"a\\udc80": ["b\\udcff", 1]}


def test_what_was_written_reads_back_the_same() -> None:
    assert read("".join(render(rich(), "json", facts=True))) == rich()
    assert read(b"\xef\xbb\xbf" + "".join(render(one_host(), "json")).encode()) == one_host()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda text: text.replace("report/1", "report/2"), "'preflight.report/2'"),
        (lambda text: text.replace('"schema"', '"scheme"'), "names no schema"),
        (lambda text: text[: len(text) // 2], "cut off"),
        (lambda text: text[:-3], "cut off"),
        (lambda text: text + "{}", "no JSON"),
        (lambda text: "", "no JSON"),
        (lambda text: "<xml/>", "no JSON"),
        (lambda text: "[1, 2]", "no preflight report"),
        (lambda text: text.replace('"FAIL"', '"BAD"', 1), "no preflight report"),
        (lambda text: text.replace('"elapsed_s": 1.94', '"elapsed_s": "soon"'), "elapsed_s"),
        (lambda text: '{"x":' + "[" * 100_000, "no JSON"),
        (lambda text: text.encode() + b"\xff\xfe", "no JSON"),
        (lambda text: "\udc80", "no JSON"),
    ],
)
def test_what_is_no_report_is_refused_in_words(edit: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(edit("".join(render(one_host(), "json"))), "old.json")
    assert caught.value.what.startswith("old.json ")
    assert said in caught.value.what
    assert "--save" in caught.value.hint
