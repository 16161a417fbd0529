"""What --workers, --window and --demand-mbps ask of a bench of storage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from preflight.cli.options import Options
from preflight.cli.storing import plan_of
from preflight.errors import UsageError
from tests.cli.command import preflight
from tests.loader_text import row, text


def test_they_travel_with_the_plan() -> None:
    plan = plan_of(Options(loaders=16, window="1M", demand_mbps=800.0))
    assert (plan["workers"], plan["window_bytes"], plan["demand_mbps"]) == (16, 1 << 20, 800.0)
    assert "workers" not in plan_of(Options())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"loaders": 0}, "--workers is out of range"),
        ({"loaders": 1000}, "--workers is out of range"),
        ({"window": "1K"}, "--window is out of range"),
        ({"window": "5000"}, "is no multiple of 4K"),
        ({"window": "64M"}, "--window is out of range"),
        ({"demand_mbps": -1.0}, "--demand-mbps is out of range"),
        ({"demand_mbps": float("nan")}, "--demand-mbps is out of range"),
        ({"demand_mbps": 800.0, "patterns": "fio"}, "of dataloader, which is not measured"),
        ({"loaders": 2, "job": "my.fio"}, "of dataloader, which is not measured"),
    ],
)
def test_what_cannot_be_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plan_of(Options(**asked))


def statuses(folder: Path, *rows: dict[str, Any], needs: float | None = 1200.0) -> dict[str, str]:
    """Of each check, as it is told of what was recorded."""
    file = folder / "io.txt"
    file.write_text(text(*rows, plan={} if needs is None else {"demand_mbps": needs}))
    ran = preflight("io-bench", "--from", str(file), "--format", "json")
    [host] = json.loads(ran.out)["hosts"]
    return {one["check"]: one["status"] for one in host["results"]}


@pytest.mark.parametrize(
    ("read", "needs", "status"),
    [(1000, 1200.0, "FAIL"), (1000, 900.0, "WARN"), (1000, 700.0, "PASS"), (1000, None, "SKIP")],
)
def test_less_than_needed_fails_and_near_it_warns(
    tmp_path: Path, read: float, needs: float | None, status: str
) -> None:
    assert statuses(tmp_path, row("read", read), needs=needs)["io.pattern.demand"] == status


def test_of_memory_that_is_no_device_nothing_is_judged_as_one(tmp_path: Path) -> None:
    late = {"mean": 1.0, "p50": 1.0, "p99": 2e6, "p999": 3e6, "max": 3e6}
    told = statuses(tmp_path, row("read", through="memory", us=late), needs=None)
    assert told["io.pattern.latency"] == "SKIP"
    cached = statuses(tmp_path, row("read", through="page cache", us=late))
    # A demand that was stated and not measured is open.
    assert (cached["io.pattern.demand"], cached["io.pattern.latency"]) == ("ERROR", "SKIP")
