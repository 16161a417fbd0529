"""One run over two hosts, which are two processes here: global ranks, a kill and a resume where
they share a folder, and none where they do not."""

from __future__ import annotations

import multiprocessing
import os
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from preflight.payload.places import place_of
from preflight.payload.training import hosts
from preflight.payload.training.plan import Plan, PlanError
from tests.payload.training.runs import TINY, Line, losses, of, told


def both(**asked: Any) -> dict[str, list[Line]]:
    """What each of two hosts tells of one run."""
    context = multiprocessing.get_context("fork")
    pipes = {}
    everyone = []
    asked |= {"hosts": ["a", "b"], "master": "127.0.0.1", "port": _port(), "interface": "lo"}
    for name in asked["hosts"]:
        reading, writing = context.Pipe(duplex=False)
        one = context.Process(target=_as_host, args=(name, asked, writing))
        one.start()
        writing.close()
        pipes[name] = reading
        everyone.append(one)
    lines = {name: pipe.recv() for name, pipe in pipes.items()}
    for one in everyone:
        one.join(10)
        one.close()
    for pipe in pipes.values():
        pipe.close()
    return lines


def _as_host(name: str, asked: dict[str, Any], writing: Any) -> None:
    os.environ["PREFLIGHT_HOST"] = name
    writing.send(told(**asked))


def _port() -> int:
    """The first of three that are likely free."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_run_over_two_hosts_is_killed_and_resumed(tmp_path: Path) -> None:
    lines = both(ranks=1, sharding="fsdp", workers=0, folder=str(tmp_path))
    for number, (host, run) in enumerate(lines.items()):
        assert {one["host"] for one in run} == {host}
        assert run[0]["world"] == 2
        assert {one["rank"] for one in of(run, "step")} == {number}
        assert [one["launch"] for one in of(run, "launched")] == ["whole", "killed", "resumed"]
        assert not of(run, "failed", launch="whole") + of(run, "failed", launch="resumed")
        assert len(of(run, "killed")) == 1
        whole, resumed = losses(run, "whole", number), losses(run, "resumed", number)
        assert resumed == {step: whole[step] for step in range(TINY["steps"] // 2, TINY["steps"])}
    read = [step["samples"] for run in lines.values() for step in of(run, "step", launch="whole")]
    assert len({sample for one in read for sample in one}) == sum(map(len, read))
    assert not list(tmp_path.iterdir())


def test_hosts_that_share_no_folder_save_nothing() -> None:
    lines = both(ranks=1, workers=0)
    for run in lines.values():
        assert [one["launch"] for one in of(run, "launched")] == ["whole"]
        assert len(of(run, "step")) == TINY["steps"]
        assert not of(run, "saved") + of(run, "failed")


def test_a_folder_that_is_not_the_same_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "_SHARED_S", 0.2)
    plan = Plan(hosts=["a", "b"], folder=str(tmp_path), port=29500)
    with (
        pytest.raises(PlanError, match="is not the same folder as on a"),
        hosts.checkpoints(plan, 1, str(tmp_path)),
    ):
        pass


def test_slurm_tells_which_host_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFLIGHT_HOST", raising=False)
    monkeypatch.setenv("SLURM_NODEID", "1")
    assert place_of(["a", "b"]) == 1
    monkeypatch.setenv("PREFLIGHT_HOST", "a")
    assert place_of(["a", "b"]) == 0


def test_hosts_whose_interfaces_have_other_names_each_take_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hosts, "address_of", {"": "10.0.0.1"}.get)
    monkeypatch.setattr(hosts, "interface_of", {"10.0.0.1": "ens3"}.get)
    plan = Plan(hosts=["a", "b"], master="10.0.0.1", port=29500)
    assert hosts.among(plan, 1, 0).environment["GLOO_SOCKET_IFNAME"] == "ens3"
    named = Plan(hosts=["a", "b"], master="10.0.0.1", port=29500, interface="ib0")
    assert hosts.among(named, 1, 0).environment["NCCL_SOCKET_IFNAME"] == "ib0"
