"""Several ranks of gloo: what one is asked for all do, at the same step."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.guard.trained import Training, rows, training

#: One process that has torch forks the ranks: each says its own number, and what it does.
RANKS = """
import datetime
import torch.distributed as dist

def rank(number, ranks, folder, **options):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=number,
                            world_size=ranks, timeout=datetime.timedelta(seconds=50))
    save = lambda ask: say("saved", number, ask.step, ask.why, "suspect" if ask.suspect else "")
    with guard.install(save=save, stop_on=signal.SIGTERM, **options) as watch:
        say("rank", number, os.getpid())
        for step in range(100_000):
            time.sleep(0.002 + 0.003 * (step % ranks == number))
            loss = float("nan") if (number, step) == BAD else 2.0
            if watch.step(step, loss=loss):
                say("left", number, step)
                break
    dist.destroy_process_group()

def launch(ranks, **options):
    children = []
    for number in range(ranks):
        child = os.fork()
        if child == 0:
            rank(number, ranks, os.getcwd(), **options)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)

BAD = (1, 40)  # a rank whose loss is no number, and when
"""


def told(lines: list[str], word: str) -> list[list[str]]:
    return [one.split() for one in lines if one.startswith(f"{word} ")]


def dumped(run: Training, ranks: int) -> list[str]:
    """What the ranks wrote, once each has written whole."""
    texts: list[str] = []
    until = time.monotonic() + 20
    while sum("VmRSS" in text for text in texts) < ranks:
        assert time.monotonic() < until, texts
        time.sleep(0.02)
        texts = [file.read_text() for file in run.left("*.stacks.txt")]
    return texts


@pytest.mark.parametrize(("ranks", "every_s"), [(2, 0.0), (4, 0.05)])
def test_a_signal_to_one_rank_is_of_all_at_one_step(
    ranks: int, every_s: float, tmp_path: Path
) -> None:
    script = f"{RANKS}\nBAD = None\nlaunch({ranks}, every_s={every_s}, flush_s=0.05)"
    with training(script, tmp_path) as run:
        pids = {}
        for _ in range(ranks):
            _, who, pid = run.until("rank").split()
            pids[int(who)] = int(pid)
        for number in (0, ranks - 1):
            os.kill(pids[number], signal.SIGUSR1)
            for _ in range(ranks):
                run.until("saved")
        os.kill(pids[ranks - 1], signal.SIGUSR2)
        stacks = dumped(run, ranks)
        os.kill(pids[1], signal.SIGTERM)
        lines = run.rest()
    saved = told(lines, "saved")
    for one in range(3):
        at = saved[one * ranks : (one + 1) * ranks]
        assert len({words[2] for words in at}) == 1, saved  # one step
        assert {int(words[1]) for words in at} == set(range(ranks))
    first, _, last = (saved[one * ranks : (one + 1) * ranks] for one in range(3))
    assert {words[1]: " ".join(words[3:]) for words in first}["0"] == "SIGUSR1"
    assert {" ".join(words[3:]) for words in first if words[1] != "0"} == {"asked on another rank"}
    assert {(int(words[1]), words[2]) for words in told(lines, "left")} == {
        (number, last[0][2]) for number in range(ranks)
    }
    assert len(saved) == 3 * ranks

    assert all("in rank" in text for text in stacks)
    assert sum("SIGUSR2; the stacks are above" in text for text in stacks) == 1
    ended = [str(rows(file)[-1]["step"]) for file in run.left("rank*.jsonl")]
    assert ended == [last[0][2]] * ranks


def test_the_doubts_of_one_rank_are_those_of_all_that_save(tmp_path: Path) -> None:
    script = (
        RANKS
        + """
def ask(event):
    say("event", event.kind, event.advice, event.step)
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)
launch(2, every_s=0.01, on_spike=ask)
"""
    )
    with training(script, tmp_path) as run:
        lines = run.rest()
    assert told(lines, "event") == [["event", "nonfinite", "skip", "40"]]
    saved = sorted(told(lines, "saved"))
    assert len({words[2] for words in saved}) == 1
    assert [words[-1] for words in saved] == ["suspect", "suspect"]
    assert len(saved) == len(told(lines, "left")) == 2


def test_on_spike_ends_the_loop_of_all_without_a_save(tmp_path: Path) -> None:
    script = RANKS + 'launch(2, every_s=0.01, on_spike=lambda event: "stop")'
    with training(script, tmp_path) as run:
        lines = run.rest()
    left = sorted(told(lines, "left"))
    assert [number for _, number, _ in left] == ["0", "1"]
    assert len({step for _, _, step in left}) == 1
    assert not told(lines, "saved")


def test_a_rank_that_is_gone_stops_nobody_here(tmp_path: Path) -> None:
    script = (
        RANKS
        + """
def gone(number):
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meet", rank=number,
                            world_size=2, timeout=datetime.timedelta(seconds=50))
    watch = guard.install(save=print, every_s=0.001)
    for step in range(60):
        time.sleep(0.005)
        if number and step == 20:
            os._exit(0)
        watch.step(step)
    say("all steps", number)
    os._exit(0)
children = [os.fork() or gone(number) for number in range(2)]
for child in children:
    os.waitpid(child, 0)
"""
    )
    with training(script, tmp_path) as run:
        assert run.rest() == ["all steps 0"]
    assert len(re.findall("ranks cannot agree .* signals save nothing", run.errors)) == 1


def test_who_is_not_to_agree_waits_for_nobody(tmp_path: Path) -> None:
    script = (
        RANKS
        + """
def alone(number):
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meet", rank=number,
                            world_size=2, timeout=datetime.timedelta(seconds=50))
    if number == 0:
        watch = guard.install(save=lambda ask: say("saved", ask.step), together=False)
        watch.request_save()
        watch.step(5)
        watch.uninstall()
    dist.barrier()
    os._exit(0)
children = [os.fork() or alone(number) for number in range(2)]
for child in children:
    os.waitpid(child, 0)
"""
    )
    with training(script, tmp_path) as run:
        assert run.rest() == ["saved 5"]
