"""Runs that do not end well: who is named, how soon, and that nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("torch")

from preflight.payload.ranks import Among, Launch, Tell
from preflight.payload.training.harness import harness
from preflight.payload.training.plan import Plan
from tests.payload.training.runs import TINY, Line, of, told
from tests.payload.youngest import youngest_child


def test_a_rank_that_dies_at_start_is_named_at_once() -> None:
    def work(tell: Tell) -> None:
        if os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)  # waits for the other, as a rendezvous does

    began = time.monotonic()
    launch = Launch(2, work, silent_s=30)
    lines = list(launch.lines())
    assert time.monotonic() - began < 10
    first, second = lines
    assert (first["kind"], first["rank"], first["status"], first["first"]) == ("died", 1, -9, True)
    assert (second["rank"], second["first"]) == (0, False)


def test_what_a_rank_started_ends_with_it(tmp_path: Path) -> None:
    def work(tell: Tell) -> None:
        child = os.fork()
        if child == 0:
            time.sleep(60)  # and holds the rank's pipe
        tell({"kind": "child", "pid": child})

    launch = Launch(1, work, silent_s=30)
    began = time.monotonic()
    (child,) = launch.lines()
    assert time.monotonic() - began < 5
    assert not _alive(child["pid"])


def test_a_rank_that_cannot_is_told_with_what_it_said() -> None:
    def work(tell: Tell) -> None:
        raise RuntimeError("no such thing")

    failed, died = Launch(1, work, silent_s=30).lines()
    assert (failed["kind"], failed["error"]) == ("failed", "RuntimeError")
    assert failed["text"] == "no such thing"
    assert (died["kind"], died["status"]) == ("died", 1)


def test_every_rank_knows_its_place_among_all_hosts() -> None:
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")

    def work(tell: Tell) -> None:
        tell({"kind": "place", **{name: os.environ[name] for name in names}})

    among = Among(first=4, world=6, master="10.0.0.1", port=29400)
    lines = sorted(Launch(2, work, silent_s=30, among=among).lines(), key=lambda one: one["rank"])
    assert [one["rank"] for one in lines] == [4, 5]
    assert [lines[1][name] for name in names] == ["5", "1", "6", "2", "10.0.0.1", "29400"]


def test_a_port_in_use_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFLIGHT_HOST", "a")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        began = time.monotonic()
        run = told(ranks=2, hosts=["a"], master="127.0.0.1", port=port, resume=False)
        assert time.monotonic() - began < 20
    texts = {one["rank"]: one["text"] for one in of(run, "failed")}
    assert texts[0].endswith(f"the rendezvous at 127.0.0.1 port {port}: the port is in use")
    assert of(run, "died")


@pytest.mark.parametrize("fault", ["kill", "stop"])
def test_a_lost_rank_is_named(fault: str) -> None:
    run = told(ranks=2, workers=0, silent_s=3.0, inject={fault: "1"})
    if fault == "kill":
        first = next(one for one in of(run, "died") if one["first"])
        told_last = TINY["steps"] // 3 - 2  # a step is told when the one after it is done
        assert (first["rank"], first["status"], first["step"]) == (1, -9, told_last)
    else:
        (silent,) = of(run, "silent")
        assert silent["suspects"] == silent["stopped"] == [1]
    assert [one["launch"] for one in of(run, "launched")] == ["whole"]
    assert run[-1]["kind"] == "end"


def test_a_loaders_worker_that_is_stopped_is_named() -> None:
    lines: list[Line] = []
    stopped: list[int] = []

    def tell(line: Line) -> None:
        lines.append(line)
        if (line["kind"], line.get("step"), line.get("rank")) == ("step", 3, 1) and not stopped:
            stopped.append(youngest_child().children()[0].pid)
            os.kill(stopped[0], signal.SIGSTOP)

    changes = TINY | {"steps": 200}
    harness(Plan(ranks=2, device="cpu", changes=changes, silent_s=2.0, resume=False), tell)
    (silent,) = of(lines, "silent")
    held = {"rank": 1, "pid": stopped[0], "what": "data worker", "state": "stopped"}
    assert silent["held"] == [held]
    assert (silent["suspects"], silent["stopped"]) == ([1], [1])
    assert not _alive(stopped[0])


def test_a_full_disk_fails_the_save_and_not_the_training(tmp_path: Path) -> None:
    changes = {"vocabulary": 256, "width": 64}  # more than fits
    run = told(ranks=2, folder=str(tmp_path), inject={"full-disk": ""}, changes=changes)
    for done in of(run, "done"):
        assert done["failed"].startswith("step-0000000")
        assert ": File too large (" in done["failed"]
        assert done["failed"].endswith(" MiB free in its folder)")
        assert done["failed_by"].startswith("rank 0: ")
    assert len(of(run, "done")) == 2
    assert len(of(run, "step", rank=0)) == TINY["steps"]
    assert [one["launch"] for one in of(run, "launched")] == ["whole"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fault", ["corrupt-checkpoint", "half-checkpoint"])
def test_a_damaged_checkpoint_is_left_for_the_one_before(fault: str) -> None:
    run = told(ranks=1, workers=0, inject={fault: ""})
    (back,) = of(run, "resumed", launch="resumed")
    assert back["step_from"] == TINY["steps"] // 4
    (wrong,) = back["wrong"]
    how = {"corrupt-checkpoint": "is not as it was written: other bytes, as many",
           "half-checkpoint": "was written in part: "}  # fmt: skip
    assert wrong.startswith(f"step-00000006: __0_0.distcp {how[fault]}")


@pytest.mark.parametrize("workers", [0, 1])
def test_ids_out_of_range_are_told_with_their_file(tmp_path: Path, workers: int) -> None:
    (tmp_path / "a.bin").write_bytes(b"\1\0" * 2000 + b"\xff\xff" * 2000)
    run = told(ranks=1, data=str(tmp_path), workers=workers, changes={"steps": 30})
    (cannot,) = of(run, "cannot")
    assert cannot["text"] == f"--data: {tmp_path}/a.bin: token id 65535, and the vocabulary is 64"
    assert not of(run, "failed") + of(run, "died")


def test_a_truncated_shard_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\1\0" * 2000 + b"\1")
    run = told(ranks=1, data=str(tmp_path))
    (cannot,) = of(run, "cannot")
    assert cannot["text"].endswith(
        "a.bin: 4001 bytes are no whole number of 16-bit ids: truncated?"
    )
    assert not of(run, "launched")


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"preset": "gpu-9b"}, "no preset gpu-9b: there are cpu-tiny, gpu-small, gpu-1b"),
        ({"ranks": 2, "sharding": "fsdp", "mesh": "2x2"}, "does not have as many places"),
        ({"ranks": 2, "mesh": "1x2"}, "a mesh (1x2) is for fsdp"),
        ({"ranks": 2, "sharding": "fsdp", "mesh": "two"}, "expected a mesh REPLICASxPIECES"),
        ({"ranks": 2, "comm_hook": "bf16"}, "for NCCL only"),
        ({"ranks": 2, "sharding": "fsdp", "comm_hook": "fp16"}, "is for ddp"),
        ({"sharding": "tensor", "ranks": 2}, "expected single, ddp, fsdp, got tensor"),
        ({"sharding": "single", "ranks": 2}, "sharding single is one rank, and 2 are asked for"),
        ({"changes": {"heads": 3}}, "heads (3) must divide the width (32)"),
        ({"inject": {"gremlin": ""}}, "no fault gremlin: there are slow-rank"),
        ({"inject": {"kill": "2"}, "ranks": 2}, "kill:2: there is no rank 2, the last is 1"),
        ({"inject": {"nan": "500"}}, "nan:500: there is no step 500, the last is 11"),
        ({"data": "/nonexistent"}, "/nonexistent: No such file or directory"),
        ({"folder": "/nonexistent"}, "--folder /nonexistent is no folder that is there"),
        ({"interface": "nosuch0"}, "there is no interface nosuch0; there are: "),
        ({"inject": {"churn": ""}}, "churn shows only on GPUs: on processors torch has no"),
        ({"hosts": ["a", "b"]}, "PREFLIGHT_HOST is not set, and the hosts of this run are a, b"),
    ],
)
def test_what_cannot_be_is_one_sentence(asked: dict[str, Any], text: str) -> None:
    run = told(**asked)
    (cannot,) = of(run, "cannot")
    assert text in cannot["text"]
    assert not of(run, "launched")


def _long_run(folder: Path) -> subprocess.Popen[bytes]:
    """A run of two ranks, each with a loader's worker, in a process of its own."""
    plan = {"ranks": 2, "device": "cpu", "folder": str(folder), "inject": {"slow-loader": "5"},
            "changes": TINY | {"steps": 1000}}  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "preflight.payload", "train", "--plan",
         json.dumps(plan)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(folder)},  # where torch's compiler has its cache
    )  # fmt: skip


def test_an_interrupt_ends_all_and_keeps_what_was_told(tmp_path: Path) -> None:
    with _long_run(tmp_path) as run:
        assert run.stdout is not None
        lines: list[dict[str, Any]] = []
        while not lines or lines[-1]["kind"] != "step":
            lines.append(json.loads(run.stdout.readline()))
        everyone = psutil.Process(run.pid).children(recursive=True)
        assert len(everyone) >= 4  # two ranks, and a worker of each
        run.send_signal(signal.SIGINT)
        began = time.monotonic()
        rest = [json.loads(one) for one in run.stdout]
        assert run.wait(timeout=5) == 130
        assert time.monotonic() - began < 5
    assert rest[-1] == {"kind": "interrupted"}
    _gone, alive = psutil.wait_procs(everyone, timeout=2)
    assert not alive
    assert not list(tmp_path.iterdir())


def test_killed_at_once_it_leaves_no_folder(tmp_path: Path) -> None:
    with _long_run(tmp_path) as run:
        assert run.stdout is not None
        while json.loads(run.stdout.readline())["kind"] != "step":
            pass
        assert list(tmp_path.glob(".preflight-train-*"))
        run.kill()  # as Slurm does where a step is cancelled
    until_s = time.monotonic() + 5
    while list(tmp_path.rglob(".preflight-*")) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert not list(tmp_path.rglob(".preflight-*"))


def _alive(pid: int) -> bool:
    deadline_s = time.monotonic() + 2
    while time.monotonic() < deadline_s:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return False
        except psutil.NoSuchProcess:
            return False
        time.sleep(0.02)
    return True
