"""Real stress runs on processors: what each device tells, who is named when one is lost, and that
nothing stays behind."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("torch")
import torch

from preflight.payload import host_memory
from preflight.payload.stress import attention as stress_attention
from preflight.payload.stress import gemm
from preflight.payload.stress import harness as stress_harness
from preflight.payload.stress.attention import attention
from preflight.payload.stress.harness import Process, Run, harness
from preflight.payload.stress.inject import FAULTS
from preflight.payload.stress.place import Place
from preflight.payload.stress.plan import Plan
from preflight.payload.stress.work import SECONDS, _run
from preflight.probes.stress.measured import PATTERNS

Line = dict[str, Any]
#: One worker makes the runs of all tests here.
pytestmark = pytest.mark.xdist_group("stress runs")
_PLACE = Place(0, torch.device("cpu"))


def told(**asked: Any) -> list[Line]:
    """All lines of a run on two parts of the processors."""
    lines: list[Line] = []
    plan: dict[str, Any] = {"device": "cpu", "devices": 2, "seconds": 0.2} | asked
    harness(Plan(**plan), lines.append)
    return lines


def of(lines: list[Line], kind: str, **wanted: Any) -> list[Line]:
    return [one for one in lines if one["kind"] == kind and one.items() >= wanted.items()]


@pytest.fixture(scope="module")
def sound() -> list[Line]:
    """A sound run, with a soak."""
    return told(soak_s=2.0)


def test_every_device_does_all_its_tests(sound: list[Line]) -> None:
    for device in range(2):
        mine = [one for one in sound if one.get("device") == device]
        kinds = dict.fromkeys(one["kind"] for one in mine)
        assert list(kinds) == [
            "device", "gemm", "memory", "attention", "answers", "pattern", "soak", "done",
        ]  # fmt: skip
        assert [one["precision"] for one in of(mine, "gemm")] == ["fp32", "bf16"]
        assert tuple(one["name"] for one in of(mine, "pattern")) == PATTERNS
    assert sound[0]["kind"] == "begin" and sound[-1]["kind"] == "end"


def test_sound_devices_give_the_same_bits(sound: list[Line]) -> None:
    for kind in ("answers", "attention"):
        one, other = (of(sound, kind, device=device)[0] for device in range(2))
        key = "digests" if kind == "answers" else "digest"
        assert one[key] == other[key]
    for precision in ("fp32", "bf16"):
        digests = {line["digest"] for line in of(sound, "gemm", precision=precision)}
        assert len(digests) == 1, "the digest is of one shape, whichever was the fastest"


def test_the_soak_compares_each_second(sound: list[Line]) -> None:
    for device in range(2):
        lines = of(sound, "soak", device=device)
        assert sum(one["for_s"] for one in lines) == pytest.approx(2.0, abs=1.5)
        assert all(one["differing"] == 0 and one["flops_per_s"] > 0 for one in lines)


def test_a_device_that_falls_silent_is_left_behind_in_time() -> None:
    began = time.monotonic()
    run = told(inject={"wedge": 1}, silent_s=12.0)
    (wedged,) = of(run, "wedged")
    assert (wedged["device"], wedged["doing"], wedged["after_s"]) == (1, "gemm", 12.0)
    assert of(run, "done", device=0) and not of(run, "done", device=1)
    assert time.monotonic() - began < 60
    assert not [one for one in psutil.Process().children() if one.status() != "zombie"]


def test_a_device_that_is_stopped_is_left_behind_and_ends() -> None:
    def work(tell: Any, _alone: Any) -> None:
        tell({"kind": "doing", "name": "nothing", "limit_s": 0.5})
        os.kill(os.getpid(), signal.SIGSTOP)

    process = Process(0, work)
    (line,) = Run([process]).lines()
    assert line["kind"] == "wedged" and line["state"] == "T"
    _gone, alive = psutil.wait_procs([psutil.Process(process.pid)], timeout=5)
    assert not alive


def test_a_device_that_waits_for_its_turn_is_not_wedged_and_is_alone_in_it() -> None:
    def work(first_s: float, limit_s: float) -> Any:
        def one(tell: Any, alone: Any) -> None:
            tell({"kind": "doing", "name": "first", "limit_s": limit_s})
            time.sleep(first_s)
            tell({"kind": "waits"})
            alone()
            tell({"kind": "turn", "at": time.monotonic()})
            time.sleep(0.3)
            tell({"kind": "left", "at": time.monotonic()})

        return one

    # The second waits for longer than it may be silent at work.
    lines = list(Run([Process(0, work(2.5, 30.0)), Process(1, work(0.0, 1.5))]).lines())
    assert [one["kind"] for one in lines] == ["turn", "left", "turn", "left"]
    assert lines[2]["at"] >= lines[1]["at"]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"devices": 4096}, "4096 devices are asked for, and torch finds"),
        ({"inject": {"gremlin": 0}}, "no fault gremlin: there are wedge"),
        ({"inject": {"corrupt": 7}}, "corrupt:7: the last device is 1"),
        ({"attention": "2x3"}, "expected BATCHxHEADSxKV_HEADSxLENGTHxSIZE"),
        ({"attention": "1x4x3x64x64"}, "heads (4) must be a multiple of the heads of keys (3)"),
        ({"device": "tpu"}, "device: expected cuda, cpu, got tpu"),
    ],
)
def test_what_cannot_be_is_one_sentence(asked: dict[str, Any], text: str) -> None:
    (cannot,) = told(**asked)
    assert cannot["kind"] == "cannot" and cannot["preflight"] == "stress/1"
    assert text in cannot["text"]


def test_a_plan_travels_whole() -> None:
    plan = Plan(devices=3, soak_s=5.0, inject={"corrupt": 1}, attention="1x4x2x64x64")
    assert Plan(**json.loads(json.dumps(asdict(plan)))) == plan
    assert {one.name for one in fields(Plan)} >= {"devices", "soak_s", "silent_s", "inject"}
    assert set(SECONDS) == {"cpu", "cuda"} and "wedge" in FAULTS


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_product_that_is_no_number_is_told_as_that(precision: str) -> None:
    (kind,) = (one for one in gemm.PRECISIONS if one.name == precision)
    multiply = gemm.product(_PLACE, kind, (256, 256, 256), 1)
    found = multiply().clone()
    right = gemm._worst(multiply, found)
    assert right < 0.1
    found[200, 3] = math.nan
    assert math.isnan(gemm._worst(multiply, found))


def test_one_wrong_element_is_found_wherever_it_is() -> None:
    multiply = gemm.product(_PLACE, gemm.PRECISIONS[0], (512, 512, 512), 1)
    for at in ((0, 0), (511, 511), (257, 13)):
        found = multiply().clone()
        found[at] += 100.0
        assert gemm._worst(multiply, found) > 1


def test_attention_that_does_not_fit_is_told_as_that() -> None:
    (told,) = attention(_PLACE, "4096x32x8x65536x128", 1, 0.1, 60.0)
    assert told["shape"] == "4096x32x8x65536x128" and "has not the memory" in told["beyond"]
    assert "apart" not in told


def test_attention_that_takes_for_ever_is_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress_attention, "available_bytes", lambda: 1 << 40)
    (told,) = attention(_PLACE, "64x32x8x32768x128", 1, 0.1, 60.0)
    assert re.search("64x32x8x32768x128 takes [0-9,]+ s each time", told["beyond"])
    doing, line = attention(_PLACE, "1x4x2x256x64", 1, 0.1, 60.0)
    assert doing["kind"] == "doing" and 60 < doing["limit_s"] < 600
    assert line["kind"] == "attention" and "beyond" not in line


def test_a_test_is_announced_before_it_begins() -> None:
    told: list[Line] = []

    def test() -> Any:
        assert told[-1] == {"kind": "doing", "name": "this", "limit_s": 5.0}
        yield {"kind": "doing", "name": "this", "limit_s": 50.0}
        assert told[-1]["limit_s"] == 50.0
        yield {"kind": "found"}

    _run("this", test(), 5.0, told.append)
    assert [one.get("limit_s") for one in told] == [5.0, 50.0, None, 5.0]


def test_who_is_killed_is_told_with_what_the_kernel_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([3, 4])
    monkeypatch.setattr(stress_harness, "oom_kills", lambda: next(counts))
    monkeypatch.setattr(stress_harness, "limit_bytes", lambda: 500 << 20)
    run = Run([Process(0, lambda *_: os.kill(os.getpid(), signal.SIGKILL))])
    (line,) = run.lines()
    assert (line["status"], line["oom_kills"], line["limit_bytes"]) == (-9, 1, 500 << 20)


def test_the_limit_is_the_smallest_of_our_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in (("job", "max"), ("user", "524288000"), ("top", "1073741824")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "memory.max").write_text(f"{limit}\n", encoding="ascii")
    folders = [f"{tmp_path}/{name}" for name in ("job", "user", "top", "gone")]
    monkeypatch.setattr(host_memory, "_folders", lambda: iter(folders))
    assert host_memory.limit_bytes() == 500 << 20
    monkeypatch.setattr(host_memory, "_folders", lambda: iter(folders[:1]))
    assert host_memory.limit_bytes() is None


def test_rows_of_a_product_are_taken_in_every_precision() -> None:
    matrix = torch.arange(12.0).view(4, 3)
    for kind in {torch.float32, torch.bfloat16, getattr(torch, "float8_e4m3fn", torch.float16)}:
        found = gemm._on_host(matrix.to(kind), torch.tensor([0, 2]))
        assert found.dtype == torch.float64 and found.tolist() == [[0, 1, 2], [6, 7, 8]]


def test_an_interrupt_ends_all_and_keeps_what_was_told(tmp_path: Path) -> None:
    plan = Plan(device="cpu", devices=2, seconds=600.0)
    with subprocess.Popen(
        [sys.executable, "-m", "preflight.payload", "stress", "--plan", json.dumps(asdict(plan))],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path,
        env={**os.environ, "PREFLIGHT_LOCK": str(tmp_path / "lock"), "TMPDIR": str(tmp_path)},
    ) as run:  # fmt: skip
        assert run.stdout is not None
        lines: list[Line] = []
        while not of(lines, "device", device=1) or not of(lines, "device", device=0):
            lines.append(json.loads(run.stdout.readline()))
        everyone = psutil.Process(run.pid).children(recursive=True)
        assert len(everyone) == 2
        run.send_signal(signal.SIGINT)
        began = time.monotonic()
        rest = [json.loads(one) for one in run.stdout]
        assert run.wait(timeout=10) == 130
        assert time.monotonic() - began < 10
    assert rest[-1] == {"kind": "interrupted"}
    _gone, alive = psutil.wait_procs(everyone, timeout=5)
    assert not alive
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
