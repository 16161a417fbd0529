"""What NCCL writes while ranks are at work is told by the host that they ran on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from preflight.payload.collectives import orders
from preflight.payload.collectives.nccl_log import NcclLog, kept
from preflight.payload.collectives.plan import Plan
from tests.nccl_lines import Job

Line = dict[str, Any]
GPUS = Plan(device="cuda", ranks=2)
ORDER: Line = {"test": 0, "do": "sizes", "hosts": [0], "limit_s": 30.0, "log": True}
WARNING = "node-01:4000:1 [0] a.cc:1 NCCL WARN Cuda failure"


def writes(_plan: Plan, _order: Line, tell: Callable[[Line], None]) -> None:
    """A rank as NCCL makes it write: where the variables tell, its own part of a job's log."""
    gpu = os.environ["LOCAL_RANK"]
    named = {name: os.environ.get(name) for name in ("NCCL_DEBUG", "NCCL_IB_HCA")}
    tell({"kind": "started", **named})
    place = os.environ["NCCL_DEBUG_FILE"]
    path = place.replace("%h", "node-01").replace("%p", str(os.getpid()))
    text = "".join(f"{one}\n" for one in Job(hosts=1).text().splitlines() if f" [{gpu}] " in one)
    Path(path).write_text(text, encoding="utf-8")


def told(monkeypatch: pytest.MonkeyPatch, plan: Plan = GPUS, **more: Any) -> list[Line]:
    monkeypatch.setitem(orders.BY_RANKS, "sizes", writes)
    return list(orders.done(plan, 0, {**ORDER, **more}))


def test_each_rank_writes_its_own_and_the_host_tells_all(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = told(monkeypatch)
    log = [one["log"] for one in lines if one["kind"] == "nccl_log"]
    assert [one["NCCL_DEBUG"] for one in lines if one["kind"] == "started"] == ["INFO", "INFO"]
    networks = [one for one in log if "Using network IB" in one]
    assert [one.split()[1] for one in networks] == ["[0]", "[1]"]
    assert lines.index({"kind": "nccl_log", "log": log[0]}) > 0  # once the ranks have ended


def test_who_has_chosen_is_not_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "WARN")
    log = NcclLog(GPUS, ORDER)
    assert "NCCL_DEBUG" not in log.environment
    assert log.folder is not None and str(log.folder) in log.environment["NCCL_DEBUG_FILE"]
    assert not list(log.lines()) and not log.folder.exists()
    monkeypatch.setenv("NCCL_DEBUG_FILE", "/tmp/mine")
    assert NcclLog(GPUS, ORDER).environment == {}
    assert NcclLog(replace(GPUS, device="cpu"), ORDER).folder is None


def test_the_adapters_that_were_asked_for_are_those_of_all_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = told(monkeypatch, replace(GPUS, nics="=mlx5_0,mlx5_1"))
    assert {one["NCCL_IB_HCA"] for one in lines if one["kind"] == "started"} == {"=mlx5_0,mlx5_1"}


def test_a_long_log_keeps_each_way_once_and_all_that_is_amiss() -> None:
    head = "node-01:4000:4100 [0] NCCL INFO"
    to = "0[0] -> {}[0] [send] via NET/IB/{}/GDRDMA"
    peers = [f"{head} Channel {channel:02}/1 : {to.format(peer, peer % 8)}"
             for peer in range(1000) for channel in range(16)]  # fmt: skip
    rings = [f"{head}  {at} : NET/0 GPU/{at} NET/0" for at in range(50)]
    *begin, complete = Job(hosts=1, gpus=1).text().splitlines()
    text = "\n".join([*begin, *rings, *peers, complete, WARNING, "noise"])
    lines = kept(text, 32 << 10)
    assert sum(map(len, lines)) < 33 << 10
    assert lines[-1] == WARNING
    assert {one.rpartition("NET/")[2] for one in lines if "[send]" in one} == {
        f"IB/{at}/GDRDMA" for at in range(8)
    }
    assert not any(" : NET/0 GPU" in one for one in lines)
    assert kept(text, 1 << 10)[-2:] == [complete, WARNING]
