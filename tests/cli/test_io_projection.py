"""The checkpoint of a model at the speeds that io-bench measured; none is made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import preflight
from tests.fio_text import bench, job, large, report, side

MODEL = ("--model-params", "70e9", "--ranks", "64", "--interval", "30m")


def _numbers(folder: Path, *texts: str, more: tuple[str, ...] = MODEL) -> dict[str, Any]:
    """Of the projection; each text is a host's."""
    names = []
    for at, text in enumerate(texts, 1):
        (folder / f"{at}.json").write_text(text)
        names += ["--from", f"n{at}={folder / f'{at}.json'}"]
    ran = preflight("io-bench", *names, *more, "--format", "json")
    assert ran.rc in (0, 1, 3), ran.err
    tables = json.loads(ran.out)["measurements"]
    [found] = [one for one in tables if one["table"].startswith("checkpoint of 70e9 parameters")]
    return {**found["numbers"], "told": " ".join(found["notes"]), "rows": json.dumps(found["rows"])}


def _both(write: float, read: float) -> tuple[dict[str, Any], ...]:
    return (large("write", write), large("read", read),
            job("mixed-4k", {"rw": "randrw"}, write=side(90000.0, 1 << 16)))  # fmt: skip


def test_one_host_saves_at_the_speed_that_it_wrote_with(tmp_path: Path) -> None:
    found = _numbers(tmp_path, report(*_both(2000.0, 4000.0)))
    assert found["save_s"] == pytest.approx(980e9 / 2e9, rel=1e-3)
    assert found["load_s"] == pytest.approx(980e9 / 4e9, rel=1e-3)
    assert found["rank_bytes"] == 980e9 / 64
    assert found["share_percent"] == pytest.approx(100 * 490 / (1800 + 490), rel=1e-3)
    assert "to save seq-write; to load seq-read" in found["told"]


def test_the_fastest_way_to_save_counts_and_the_others_are_told(tmp_path: Path) -> None:
    ways = (large("write", 2000.0), {**large("write", 500.0), "jobname": "seq-write-plain"})
    found = _numbers(tmp_path, report(*ways))
    assert found["write_gbps"] == pytest.approx(2.0, rel=1e-3)
    assert "seq-write (against seq-write-plain 0.5 GB/s)" in found["told"]


def test_hosts_that_measured_together_are_as_often_the_slowest(tmp_path: Path) -> None:
    plan = {"hosts": 2}
    texts = [bench(*_both(mbps, 4000.0), plan=plan, shared=True) for mbps in (2000.0, 1000.0)]
    found = _numbers(tmp_path, *texts)
    assert found["write_gbps"] == pytest.approx(2 * 1.0, rel=1e-3)
    assert "2 x seq-write of n2, the slowest of 2 hosts, measured at the same time" in found["told"]


@pytest.mark.parametrize(
    ("shared", "gbps", "why"),
    [(False, 2.0, "which share no storage"), (True, 1.0, "they share storage"),
     (None, 1.0, "they may share storage")],
)  # fmt: skip
def test_hosts_that_measured_apart_add_up_where_they_share_nothing(
    tmp_path: Path, shared: bool | None, gbps: float, why: str
) -> None:
    speeds = (2000.0, 1000.0)
    texts = [
        report(*_both(mbps, 4000.0)) if shared is None
        else bench(*_both(mbps, 4000.0), shared=shared)
        for mbps in speeds
    ]  # fmt: skip
    found = _numbers(tmp_path, *texts)
    assert found["write_gbps"] == pytest.approx(gbps, rel=1e-3)
    assert why in found["told"]


def test_what_is_not_measured_is_named_and_not_made_up(tmp_path: Path) -> None:
    """Small pieces in any order, the page cache and memory are no speed of a checkpoint."""
    small = job("write", {"rw": "randwrite"}, read={}, write=side(5e4))
    cached = large("write", 9000.0, direct="0")
    found = _numbers(tmp_path, report(small, cached, large("read", 4000.0)))
    assert "save_s" not in found and "share_percent" not in found
    assert found["load_s"] == pytest.approx(245, rel=1e-3)
    assert "what was measured is of: page cache, which does not count" in found["rows"]
    read = _numbers(tmp_path, report(large("read", 4000.0)))
    assert "no speed of writing was measured" in read["rows"]
    memory = _numbers(tmp_path, bench(*_both(9000.0, 9000.0), memory=True))
    assert "save_s" not in memory
    assert "what was measured is of: memory, which does not count" in memory["rows"]
    assert "no speed of" not in memory["rows"]


@pytest.mark.parametrize(
    "wrong",
    [("--ranks", "8"), ("--interval", "30m"), ("--model-params", "0"), ("--model-params", "70x"),
     ("--model-params", "7e9", "--optimizer", "adam9"), ("--model-params", "7e9", "--ranks", "0"),
     ("--model-params", "7e9", "--interval", "0")],
)  # fmt: skip
def test_what_is_no_model_is_refused_before_anything_is_written(
    tmp_path: Path, wrong: tuple[str, ...]
) -> None:
    ran = preflight("io-bench", "--dir", str(tmp_path), *wrong)
    assert ran.rc == 2
    assert "error:" in ran.err and "hint:" in ran.err
    assert "writes files" not in ran.err
