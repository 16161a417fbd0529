"""What is left of a run that did not end well, and who can read it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from preflight.guard.dumps import memory_text
from tests.cli.command import preflight
from tests.guard.trained import LOOP, notes, rows, training

CRASHES = """
import math
sys.excepthook = lambda *_: say("their hook")
watch = guard.install(last=100)
for step in range(350):
    bad = step > 340
    watch.step(step, loss=math.nan if bad else 2 + step % 7 / 100, lr=1e-4,
               grad_norm=math.inf if bad else 1 + step % 5 / 10)
raise ValueError("boom\\nsecond line")
"""


def test_a_crash_leaves_the_last_steps_and_preflight_reads_them(tmp_path: Path) -> None:
    with training(CRASHES, tmp_path) as run:
        assert run.rest() == ["their hook"]
    (file,) = run.left("*.jsonl")
    left = rows(file)
    assert [one["step"] for one in left] == list(range(350 - len(left), 350))
    assert 98 <= len(left) <= 200  # of 100 lines some are notes
    assert {"step", "wall_time", "loss", "grad_norm", "lr"} == set(left[0])
    assert notes(file)["ended"] == "ValueError: boom"
    assert run.left("*.stacks.txt") == []

    ran = preflight("diagnose-step-time", str(file))
    assert ran.rc == 1, ran.err
    assert f"the loss is no number in the last 9 of {len(left)} lines that tell it" in ran.out
    ran = preflight("divergence-rescue", str(file))
    assert ran.rc == 1, ran.err
    assert "not-finite" in ran.out
    assert "from step 341 on" in ran.out


def test_a_run_that_was_asked_to_end_is_read_as_no_crash(tmp_path: Path) -> None:
    script = """
watch = guard.install(save=lambda ask: None, stop_on=signal.SIGTERM)
for step in range(40):
    time.sleep(0.01)
    watch.record(step, loss=2.0, grad_norm=1.0)
os.kill(os.getpid(), signal.SIGTERM)
watch.step(40, loss=2.0, grad_norm=1.0)
watch.uninstall()
"""
    with training(script, tmp_path) as run:
        run.rest()
    ran = preflight("diagnose-step-time", str(run.left("*.jsonl")[0]))
    assert "healthy" in ran.out
    assert "FAIL" not in ran.out


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("sys.exit(3)", "SystemExit: 3"),
        ("sys.exit(0)", ""),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("pass", ""),
    ],
)
def test_a_block_keeps_the_steps_of_what_did_not_end_well(
    end: str, said: str, tmp_path: Path
) -> None:
    script = f"with guard.install() as watch:\n    watch.step(1, loss=2.0)\n    {end}"
    with training(script, tmp_path) as run:
        run.rest()
    assert [notes(file)["ended"] for file in run.left("*.jsonl")] == ([said] if said else [])


def test_an_exit_that_gives_no_guard_back_leaves_them_too(tmp_path: Path) -> None:
    with training("guard.install().step(1, loss=2.0)\nsys.exit(1)", tmp_path) as run:
        run.rest()
    assert notes(run.left("*.jsonl")[0]) == {"ended": "the process ended without uninstall()"}


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        (lambda: "| Allocated memory | 3 GiB |", "| Allocated memory | 3 GiB |"),
        (lambda: 1 // 0, "no memory of the GPU: ZeroDivisionError"),
    ],
)
def test_memory_is_that_of_the_gpu_too(
    summary: Callable[[], object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, memory_summary=summary
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert "VmRSS" in memory_text()
    assert said in memory_text()


def test_a_kill_leaves_all_but_the_last_flush(tmp_path: Path) -> None:
    script = LOOP + "loop(guard.install(flush_s=0.2), step_s=0.02)"
    with training(script, tmp_path) as run:
        run.until("end 40")
        run.send(signal.SIGKILL)
        run.rest()
        last = int(next(one for one in reversed(run.lines) if one.startswith("end")).split()[1])
    steps = [one["step"] for one in rows(run.left("*.jsonl")[0])]
    assert steps == list(range(len(steps)))
    # Steps of 0.02 s: at most ten and the one that crosses the 0.2 s are not yet in the file.
    assert last - 12 <= steps[-1] <= last


def test_a_crash_in_c_leaves_its_stack(tmp_path: Path) -> None:
    script = """
def falls():
    os.kill(os.getpid(), signal.SIGSEGV)
watch = guard.install(flush_s=0)
watch.step(1, loss=2.0)
falls()
"""
    with training(script, tmp_path) as run:
        run.rest()
    assert run.process.returncode == -signal.SIGSEGV
    assert "in falls" in run.left("*.stacks.txt")[0].read_text()
    assert rows(run.left("*.jsonl")[0])[-1]["step"] == 1
