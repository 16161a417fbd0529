"""Collectives on processors: what they give is proved, what is wrong is counted."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from preflight.payload.collectives import operations, timing
from preflight.payload.collectives.harness import harness
from preflight.payload.collectives.operations import COLLECTIVES, Values
from preflight.payload.collectives.plan import Plan
from tests.payload.youngest import youngest_child

Line = dict[str, Any]
SMALL: Line = {"begin_bytes": 64, "end_bytes": 4096, "factor": 64, "size_s": 0.01}


def told(heard: Callable[[Line], None] = lambda _: None, **asked: Any) -> list[Line]:
    lines: list[Line] = []

    def tell(line: Line) -> None:
        lines.append(line)
        heard(line)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch about itself, in the ranks
        harness(Plan(device="cpu", **{**SMALL, **asked}), tell)
    return lines


def of(lines: list[Line], kind: str) -> list[Line]:
    return [one for one in lines if one["kind"] == kind]


@pytest.mark.parametrize(("ranks", "dtype"), [(3, "float32"), (2, "bfloat16")])
def test_each_gives_what_it_has_to(ranks: int, dtype: str) -> None:
    lines = told(ranks=ranks, dtype=dtype)
    sizes = of(lines, "size")
    assert [one["collective"] for one in sizes] == [name for name in COLLECTIVES for _ in range(2)]
    assert all(one["wrong"] == 0 and one["n"] >= timing.LEAST for one in sizes)
    assert all(one["low_us"] <= one["median_us"] <= one["high_us"] for one in sizes)
    in_pieces = {one["bytes"] % ranks for one in sizes if one["collective"] == "all_gather"}
    assert in_pieces == {0}
    assert [one["rank"] for one in of(lines, "started")] != []
    assert lines[-1]["kind"] == "end"


def test_what_is_wrong_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One element of one rank's answer: whoever looks at its own alone does not see it."""
    make, buffers = COLLECTIVES["all_reduce"]

    def damaged(at: operations.Ring, count: int) -> operations.Call:
        call = make(at, count)
        sound = call.run

        def run() -> None:
            sound()
            if at.rank == 1:
                call.answer[3] += 1

        call.run = run
        return call

    monkeypatch.setitem(COLLECTIVES, "all_reduce", (damaged, buffers))
    lines = told(ranks=2, collectives=["all_reduce"])
    assert [one["wrong"] for one in of(lines, "size")] == [1, 1]


@pytest.mark.parametrize("ranks", [2, 8, 85, 127, 128, 256, 300])
def test_sums_are_numbers_that_bf16_knows(ranks: int) -> None:
    values = Values(ranks, "cpu")
    whole = sum((values.of(rank, 0, 50) for rank in range(ranks)), torch.zeros(50))
    assert torch.equal(values.summed(0, 50), whole)
    assert torch.equal(whole.bfloat16().float(), whole)
    assert whole.max() <= 256
    assert len(set(values.of(1, 0, 50).tolist())) > 1


def test_a_rank_that_is_stopped_is_named() -> None:
    stopped: list[int] = []

    def stop(line: Line) -> None:
        if line["kind"] == "size" and not stopped:
            stopped.append(youngest_child().pid)
            os.kill(stopped[0], signal.SIGSTOP)

    began = time.monotonic()
    (silent,) = of(told(stop, ranks=2, silent_s=2.0), "silent")
    assert silent["stopped"] == [1]
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"ranks": 1}, "a collective takes two ranks"),
        ({"collectives": ["gossip"]}, "no collective gossip: there are all_reduce, all_gather"),
        ({"dtype": "int7"}, "no dtype int7: there are float32"),
        ({"factor": 1}, "factor 1: expected 2 or more"),
    ],
)
def test_what_cannot_be_is_one_sentence(asked: dict[str, Any], text: str) -> None:
    (line,) = told(**asked)
    assert line["kind"] == "cannot"
    assert line["text"].startswith(text)


def test_the_last_size_is_the_one_that_was_asked_for() -> None:
    from preflight.payload.collectives.work import Sizes

    assert list(Sizes(1 << 10, 1 << 20, 1 << 7, 0.2)) == [1 << 10, 1 << 17, 1 << 20]
    assert list(Sizes(1 << 10, 1 << 24, 1 << 7, 0.2)) == [1 << 10, 1 << 17, 1 << 24]
    assert list(Sizes(8, 8, 2, 0.2)) == [8]


def test_a_size_that_would_take_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from preflight.payload.collectives import work

    monkeypatch.setattr(work, "_MOST_S", 1e-9)
    lines = told(ranks=2, collectives=["broadcast"])
    first, second = of(lines, "size")
    assert "median_us" in first
    assert second["skipped"].startswith("it would take about ")


def test_the_median_is_known_where_it_would_not_change() -> None:
    assert timing.known([1.0, 1.001, 0.999, 1.0, 1.0])
    assert not timing.known([1.0, 1.5, 0.7, 1.2, 0.9])
    assert timing.known([1.0 + 0.001 * (at % 100) for at in range(1000)])
