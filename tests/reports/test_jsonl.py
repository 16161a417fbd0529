"""JSON lines: a line for each result and each silent host, the last one sums up."""

from __future__ import annotations

import json
from typing import Any

from preflight.model import Report
from preflight.reports import render
from preflight.reports.compare import compare
from tests.reports.built import one_host, report, rich
from tests.reports.fleet import cluster, yesterday


def records(told: Report) -> list[dict[str, Any]]:
    return [json.loads(line) for line in "".join(render(told, "jsonl")).splitlines()]


def test_a_line_for_each_result_tells_where_it_comes_from() -> None:
    lines = records(one_host())
    results = one_host().hosts[0].results
    assert len(lines) == len(results) + 1
    assert lines[0] == {
        "schema": "preflight.result/1",
        "host": "node-07",
        "command": "gpu-health",
        "started_at": "2026-01-02T03:04:05Z",
        "check": "gpu.answers",
        "subject": "gpu0",
        "status": "PASS",
        "measured": True,
        "expected": "yes",
    }


def test_results_over_all_hosts_have_no_host() -> None:
    fleet = [one for one in records(rich()) if one.get("check", "").startswith("fleet.")]
    assert [one["host"] for one in fleet] == [None, None]


def test_silent_hosts_and_findings_are_lines_with_a_status() -> None:
    lines = records(rich())
    silent = [one for one in lines if one["schema"] == "preflight.missing/1"]
    assert [(one["host"], one["status"]) for one in silent] == [
        ("node-04", "ERROR"),
        ("node-05", "ERROR"),
    ]
    findings = [one for one in lines if one["schema"] == "preflight.finding/1"]
    assert [one["status"] for one in findings] == ["FAIL", "ERROR"]


def test_faults_and_changes_are_lines_too() -> None:
    told = cluster()
    told.changes = compare(told, yesterday())
    lines = records(told)
    faults = {one["host"]: one["fault"] for one in lines if one["schema"] == "preflight.missing/1"}
    assert faults == {"node030": "refused", "node099": "silent", "node111": "died"}
    fleet = [one for one in lines if one.get("check", "").startswith("fleet.")]
    assert [one["subject"] for one in fleet] == ["node[003,007]", "node[001-128]"]
    changes = [one for one in lines if one["schema"] == "preflight.change/1"]
    assert changes[0]["kind"] == "silent"
    assert {one["since"] for one in changes} == {"2026-01-01T03:04:05Z"}


def test_the_last_line_sums_up() -> None:
    last = records(rich())[-1]
    assert last["schema"] == "preflight.summary/1"
    assert last["verdict"] == "FAIL"
    assert last["counts"] == {"pass": 48, "warn": 3, "fail": 5, "skip": 46, "error": 7}
    assert last["hosts"][3] == {"host": "node-04", "verdict": "ERROR"}


def test_an_empty_report_is_its_summary() -> None:
    (only,) = records(report())
    assert only["verdict"] == "SKIP"
