"""A bench over several hosts with links of their own: who is slow is named, and nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.shaped import shaped

pytestmark = pytest.mark.lab


def test_the_host_behind_a_slow_link_is_named(tmp_path: Path) -> None:
    """More of them, and sound ones: bench/shaped.py."""
    with shaped(tmp_path, 4) as lab:
        lab.rate("h3", 100)
        done = lab.preflight("nccl-bench", "--ranks", "1", "--collective", "all_reduce", "-e", "1K",
                             "--format", "json")  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    hosts = {host["host"]: host["results"] for host in report["hosts"]}
    failed = {
        (name, one["check"], one["subject"])
        for name, results in hosts.items() for one in results if one["status"] == "FAIL"
    }  # fmt: skip
    assert failed == {("h3", "collectives.host", "h3")}
    told = [*hosts["h1"], *report["fleet"]]  # of a table over all hosts none is at fault
    passed = {one["check"] for one in told if one["status"] == "PASS"}
    assert {"collectives.wrong", "collectives.ended", "collectives.host"} <= passed
