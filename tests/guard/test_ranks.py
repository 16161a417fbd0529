"""Several ranks of gloo: what one is asked for all do, at the same step."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.trained import Training, rows, training

#: One process that has torch forks the ranks of each scenario, one scenario after the other, each
#: in a folder of its name: importing torch takes longer than all of them.
RANKS = """
import datetime
import torch.distributed as dist

def join(number, ranks):
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meet", rank=number,
                            world_size=ranks, timeout=datetime.timedelta(seconds=30))

def trains(number, ranks, bad=None, **options):
    join(number, ranks)
    save = lambda ask: say("saved", number, ask.step, ask.why, "suspect" if ask.suspect else "")
    with guard.install(save=save, stop_on=signal.SIGTERM, **options) as watch:
        say("rank", number, os.getpid())
        for step in range(100_000):
            time.sleep(0.002 + 0.003 * (step % ranks == number))
            if watch.step(step, loss=float("nan") if (number, step) == bad else 2.0):
                say("left", number, step)
                break
    dist.destroy_process_group()

def asks(event):
    say("event", event.kind, event.advice, event.step)
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

def goes(number, ranks):
    join(number, ranks)
    watch = guard.install(save=print, every_s=0.001)
    for step in range(60):
        time.sleep(0.005)
        if number and step == 20:
            os._exit(0)
        watch.step(step)
    say("all steps", number)
    os._exit(0)

def alone(number, ranks):
    join(number, ranks)
    if number == 0:
        watch = guard.install(save=lambda ask: say("saved", ask.step), together=False)
        watch.request_save()
        watch.step(5)
        watch.uninstall()
    dist.barrier()

def scenario(name, ranks, act, **options):
    os.mkdir(name)
    os.chdir(name)
    say("scenario", name)
    children = []
    for number in range(ranks):
        child = os.fork()
        if child == 0:
            act(number, ranks, **options)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    os.chdir("..")

scenario("doubts", 2, trains, bad=(1, 40), every_s=0.0, on_spike=asks)
scenario("stops", 2, trains, bad=(1, 40), every_s=0.01, on_spike=lambda event: "stop")
scenario("goes", 2, goes)
scenario("alone", 2, alone)
scenario("2", 2, trains, every_s=0.0, flush_s=0.05)
scenario("4", 4, trains, every_s=0.05, flush_s=0.05)
say("scenario", "none")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with training(RANKS, tmp_path_factory.mktemp("ranks")) as run:
        yield run


def told(lines: list[str], word: str) -> list[list[str]]:
    return [one.split() for one in lines if one.startswith(f"{word} ")]


def dumped(folder: Path, ranks: int) -> list[str]:
    """What the ranks wrote, once each has written whole."""
    texts: list[str] = []
    until = time.monotonic() + 20
    while sum("VmRSS" in text for text in texts) < ranks:
        assert time.monotonic() < until, texts
        time.sleep(0.02)
        texts = [one.read_text() for one in folder.glob("preflight-guard/*.stacks.txt")]
    return texts


def steered(run: Training, ranks: int) -> None:
    """Signals to single ranks, and what all of them do."""
    folder, pids = run.folder / str(ranks), {}
    for _ in range(ranks):
        _, who, pid = run.until("rank").split()
        pids[int(who)] = int(pid)
    saved: list[list[list[str]]] = []
    for number, asked in ((0, signal.SIGUSR1), (ranks - 1, signal.SIGUSR1), (1, signal.SIGTERM)):
        if asked == signal.SIGTERM:
            os.kill(pids[ranks - 1], signal.SIGUSR2)
            stacks = dumped(folder, ranks)
        os.kill(pids[number], asked)
        saved.append([run.until("saved").split() for _ in range(ranks)])
        assert len({words[2] for words in saved[-1]}) == 1, saved  # one step
        assert {int(words[1]) for words in saved[-1]} == set(range(ranks))
        whys = {int(words[1]): " ".join(words[3:]) for words in saved[-1]}
        assert whys.pop(number) == asked.name
        assert set(whys.values()) == {"asked on another rank"}
    assert all("in trains" in text for text in stacks)
    assert sum("SIGUSR2; the stacks are above" in text for text in stacks) == 1


def ended(run: Training, name: str) -> list[str]:
    """The lines of a scenario, once the next has begun."""
    begin = f"scenario {name}"
    if begin not in run.lines:
        run.until(begin)
    at = run.lines.index(begin) + 1
    if not any(one.startswith("scenario ") for one in run.lines[at:]):
        run.until("scenario ")
    lines = run.lines[at:]
    return lines[: next(n for n, one in enumerate(lines) if one.startswith("scenario "))]


def test_the_doubts_of_one_rank_are_those_of_all_that_save(run: Training) -> None:
    lines = ended(run, "doubts")
    assert told(lines, "event") == [["event", "nonfinite", "skip", "40"]]
    saved = told(lines, "saved")
    assert [words[2] for words in saved] == ["40", "40"]  # the boundary at which it was asked
    assert [words[-1] for words in saved] == ["suspect", "suspect"]
    assert len(told(lines, "left")) == 2


def test_on_spike_ends_the_loop_of_all_without_a_save(run: Training) -> None:
    lines = ended(run, "stops")
    left = sorted(told(lines, "left"))
    assert [number for _, number, _ in left] == ["0", "1"]
    assert len({step for _, _, step in left}) == 1
    assert not told(lines, "saved")


def test_a_rank_that_is_gone_stops_nobody_here(run: Training) -> None:
    assert ended(run, "goes") == ["all steps 0"]
    assert len(re.findall("ranks cannot agree .* signals save nothing", run.errors)) == 1


def test_who_is_not_to_agree_waits_for_nobody(run: Training) -> None:
    assert ended(run, "alone") == ["saved 5"]


def test_a_signal_to_one_rank_is_of_all_at_one_step(run: Training) -> None:
    for ranks in (2, 4):  # two agree at each boundary, four some boundaries apart
        if f"scenario {ranks}" not in run.lines:
            run.until(f"scenario {ranks}")
        steered(run, ranks)
    for ranks in (2, 4):
        lines = ended(run, str(ranks))
        step = told(lines, "saved")[-1][2]
        assert sorted(told(lines, "left")) == [["left", str(one), step] for one in range(ranks)]
        files = list((run.folder / str(ranks)).glob("preflight-guard/rank*.jsonl"))
        assert [str(rows(file)[-1]["step"]) for file in files] == [step] * ranks
