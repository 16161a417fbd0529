"""Why a setting of a sweep was not measured, from lines as ranks tell them."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from preflight.expect.advised import QUANTILE_FROM
from preflight.payload.training import clipping, endings, fits, sweeping
from preflight.payload.training.plan import Plan, PlanError
from preflight.payload.training.presets import chosen
from preflight.payload.training.sweeps import left_out, settings

Line = dict[str, Any]
_SECONDS = {"data": 0.001, "forward": 0.01, "checkpoint": 0.0}
_TIMED_OUT: Line = {
    "kind": "failed", "rank": 0, "error": "RuntimeError",
    "text": "[../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 20000ms for recv",
}  # fmt: skip
_DIED: Line = {"kind": "died", "rank": 0, "status": 1, "step": 4, "first": True, "oom_kills": 0}
_ENDED: Line = {**_DIED, "rank": 1, "status": -9, "first": False}


def step(at: int, loss: float, rank: int = 0) -> Line:
    return {"kind": "step", "rank": rank, "step": at, "loss": loss, "norm": 0.3,
            "seconds": _SECONDS}  # fmt: skip


def heard(monkeypatch: pytest.MonkeyPatch, *lines: Line, held: Any = ()) -> Line:
    """What a setting tells whose launch gave these lines."""
    ranks = [SimpleNamespace(number=at, pid=100 + at, step=4, ended=lambda: False) for at in (0, 1)]
    launch = SimpleNamespace(ranks=ranks, lines=lambda: iter(lines), kill=lambda: None)
    monkeypatch.setattr(sweeping, "Launch", lambda *_, **__: launch)
    monkeypatch.setattr(
        endings, "held_up", lambda pids: [one for one in held if one["rank"] in pids]
    )
    plan = Plan(preset="cpu-tiny", device="cpu", ranks=2, sweep={"clip": ["none"]})
    return sweeping._told(settings(plan, "clip", 2)[0], [], [])


def test_a_loss_that_is_no_number_is_told_with_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = [4.0] * 7 + [float("nan")] * 5
    told = heard(monkeypatch, *(step(at, loss) for at, loss in enumerate(losses)))
    assert told == {"failed": "it diverged: the loss of step 7 is no finite number"}
    sound = heard(monkeypatch, *(step(at, 4.0) for at in range(12)))
    assert sound["tokens_per_s"] > 0
    assert sound["norm"] == 0.3


def test_the_norms_that_a_quantile_waits_for_are_told_right() -> None:
    assert clipping._KEPT // 4 == QUANTILE_FROM


def test_a_rank_that_is_stopped_is_named_and_the_other_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = {"rank": 1, "pid": 101, "what": "rank", "state": "stopped"}
    told = heard(monkeypatch, _TIMED_OUT, _DIED, _ENDED, held=[stopped])
    assert told["failed"] == (
        "rank 1 said nothing after step 4: it is stopped by a signal (PID 101); "
        "rank 0 waited for it"
    )
    silent: Line = {"kind": "silent", "after_s": 20.0, "steps": {"0": 5, "1": 4}, "suspects": [1],
                    "stopped": [], "held": [], "pids": {}}  # fmt: skip
    told = heard(monkeypatch, silent, {**_ENDED, "rank": 0}, _ENDED)
    assert told["failed"].startswith("rank 1 said nothing for 20 s after step 4, behind the others")
    told = heard(monkeypatch, {**silent, "suspects": [0, 1]})
    assert told["failed"].startswith("all ranks said nothing for 20 s, and which one")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([_TIMED_OUT, _DIED, {**_ENDED, "first": True}], "rank 1 ended with -9 (SIGKILL: for want"),
        ([_TIMED_OUT, _DIED], "rank 0: RuntimeError: [../gloo"),
        ([{**_DIED, "status": 1}], "rank 0 ended with 1, and has not said why"),
        ([{**_DIED, "status": -7}], "/dev/shm may be full"),
        ([_DIED, {**_TIMED_OUT, "text": "index out of range"}], "rank 0: RuntimeError: index out"),
    ],
)
def test_the_cause_is_told_and_not_what_follows(
    monkeypatch: pytest.MonkeyPatch, lines: list[Line], said: str
) -> None:
    assert said in heard(monkeypatch, *lines)["failed"]


def test_a_limit_that_was_met_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    full = {**_TIMED_OUT, "rank": 1, "error": "OutOfMemoryError", "text": "tried 2 GiB"}
    told = heard(monkeypatch, _TIMED_OUT, full, _DIED)
    assert told == {"limit": "out of memory: tried 2 GiB", "met": True}


@pytest.mark.parametrize(
    ("axis", "asked", "said"),
    [
        ("comm-hook", {"sweep": {"comm-hook": ["none", "bf16"]}}, "of bf16 for NCCL only"),
        ("batch", {"sweep": {"batch": ["8"]}}, "batch 8 is what you have already, and nothing"),
        ("scaling", {"sweep": {"scaling": []}, "ranks": 1, "sharding": "single"}, "--ranks 2"),
        ("kv-heads", {"sweep": {"kv-heads": ["3"]}}, "does not divide the 4 heads: take 1 or 2 or"),
        ("recompute", {"sweep": {"recompute": ["yes"]}}, "'yes' is no share of the blocks: 0 to 1"),
        ("recompute", {"sweep": {"recompute": ["1/0"]}}, "'1/0' is no share of the blocks: 0 to 1"),
        ("clip", {"sweep": {"clip": ["global:abc"]}}, "'global:abc': expected a number above 0"),
    ],
)
def test_what_can_never_be_compared_is_told_before_anything_runs(
    axis: str, asked: dict[str, Any], said: str
) -> None:
    plan = Plan(**{"preset": "cpu-tiny", "device": "cpu", "ranks": 2, **asked})
    with pytest.raises(PlanError, match=f"--sweep {axis}.*{re.escape(said)}"):
        sweeping.sweep(plan, [], lambda _: None, [])


def test_a_sequence_that_is_too_long_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "available_bytes", lambda: 1 << 30)
    shape = chosen("cpu-tiny", length=1 << 20, batch=1)
    text = fits.reason(Plan(device="cpu", ranks=1, sharding="single"), shape, [])
    assert re.search(r"take --length \d+", text)
    assert "--preset" not in text
    shorter = chosen("cpu-tiny", batch=1, length=int(re.findall(r"--length (\d+)", text)[0]))
    assert not fits.reason(Plan(device="cpu", ranks=1, sharding="single"), shorter, [])


@pytest.mark.parametrize(
    ("count", "said"), [(4.4e15, "4,002 TiB"), (1 << 30, "1 GiB"), (980 << 20, "980 MiB")]
)
def test_sizes_are_told_as_in_the_tables(count: float, said: str) -> None:
    assert fits.size(count) == said


def test_what_is_left_out_is_told_with_why() -> None:
    cpu = Plan(preset="cpu-tiny", device="cpu", ranks=2, sweep={"loader": [], "comm-hook": []})
    assert left_out(cpu, "loader", 2) == (
        "not tried: 2, 4, 8 workers of a rank, this host has 2 cores for 2 ranks; "
        "--sweep loader=0,1,2,4,8 does"
    )
    assert left_out(cpu, "loader", 32) == ""
    assert "bf16" in left_out(cpu, "comm-hook", 2)
    gpu = Plan(preset="gpu-small", device="cuda", ranks=1, sweep={"comm-hook": [], "clip": []})
    assert left_out(gpu, "comm-hook", 2) == left_out(gpu, "clip", 2) == ""
    named = Plan(preset="cpu-tiny", device="cpu", ranks=2, sweep={"loader": ["0"]})
    assert left_out(named, "loader", 2) == ""
