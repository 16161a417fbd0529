"""What all hosts of a bench did together is laid at no single one's door, and none's is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from preflight import capture
from preflight.cli.together import as_told
from preflight.model import Raw
from tests.cli.command import preflight
from tests.probes.test_bench_growth import SENDS
from tests.probes.test_bench_lasting import stood_still

HOSTS = ["h1", "h2", "h3"]


def captured(folder: Path, *ends: dict[str, object], stalled: float = 8.0) -> str:
    """Three hosts of which the first led, whose calls stood still once, and how that ended."""
    lines = [json.loads(one) for one in stood_still(stalled, 20, hosts=HOSTS).splitlines()]
    begin = next(one for one in lines if one["kind"] == "begin")
    begin |= {"host": "h1", "world": 3}
    begin["plan"] |= {"ranks": 1}
    counted = [one for one in map(json.loads, SENDS.splitlines()) if one["kind"] == "counters"]
    kept = [begin, lines[1], *counted, *ends] if ends else [*lines, *counted]
    others = {
        name: [{**begin, "host": name}, *counted, {"kind": "end", "elapsed_s": 1.0}]
        for name in HOSTS[1:]
    }
    raws = {
        name: [Raw(name, "nccl-bench", ("python3",), stdout=_text(told))]
        for name, told in {"h1": kept, **others}.items()
    }
    path = folder / "job.capture.gz"
    with capture.Writer(path) as writer:
        for one in as_told(raws, {"hosts": HOSTS, "gpus": {}}, False).values():
            writer.write(one)
    return str(path)


def _text(lines: list[dict[str, object]]) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in lines)


def test_a_job_that_stood_still_accuses_nobody_who_told_it(tmp_path: Path) -> None:
    names = tmp_path / "names"
    path = captured(tmp_path)
    ran = preflight("nccl-bench", "--from", path, "--format", "json", "--save-hosts", str(names))
    told = json.loads(ran.out)
    found = {one["check"]: one for one in told["fleet"]}
    assert (ran.rc, found["collectives.stalls"]["status"]) == (1, "FAIL")
    assert found["collectives.stalls"]["subject"].startswith("all hosts all_reduce")
    assert {one["verdict"] for one in told["hosts"]} == {"PASS"}
    assert "FAIL" not in {one["status"] for host in told["hosts"] for one in host["results"]}
    # Whoever it was is among them.
    assert names.with_suffix(".fail").read_text(encoding="utf-8").split() == HOSTS
    text = preflight("nccl-bench", "--from", path).out
    assert "FAIL   collectives.stalls  all hosts all_reduce" in text


@pytest.mark.parametrize("culprit", ["h1", "h3"])
def test_the_host_whose_rank_was_killed_is_the_only_one_left_out(
    tmp_path: Path, culprit: str
) -> None:
    names = tmp_path / "names"
    died = {"kind": "died", "rank": HOSTS.index(culprit), "status": -9, "step": 1, "of": culprit}
    path = captured(tmp_path, died)
    ran = preflight("nccl-bench", "--from", path, "--format", "json", "--save-hosts", str(names))
    hosts = {one["host"]: one["verdict"] for one in json.loads(ran.out)["hosts"]}
    assert [name for name, verdict in hosts.items() if verdict == "FAIL"] == [culprit]
    assert names.with_suffix(".fail").read_text(encoding="utf-8").split() == [culprit]
    # One cause, told once: that nothing was timed there follows from it.
    assert "no size was measured" not in {
        one.get("reason") for host in json.loads(ran.out)["hosts"] for one in host["results"]
    }


def test_sizes_that_were_not_timed_are_told_below_the_table(tmp_path: Path) -> None:
    late = {"kind": "size", "collective": "all_reduce", "bytes": 1 << 30, "asked_bytes": 1 << 30,
            "dtype": "float32", "skipped": "it would take about 37 s"}  # fmt: skip
    path = captured(tmp_path, late, {"kind": "end", "elapsed_s": 1.0})
    text = preflight("nccl-bench", "--from", path).out
    assert "1 GiB was not timed: it would take about 37 s" in text
