"""The whole estimate: time, GPU-hours, energy, memory. What is not known is left out and named."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from msgspec import Struct

from preflight.estimate.compute import (
    BUS_BYTES,
    balance_tokens,
    best_interval_s,
    exchanges,
    lost_share,
)
from preflight.estimate.figures import Figure, computed, first_missing, stated
from preflight.estimate.hosts import Room, room_of
from preflight.estimate.measured import Measured
from preflight.estimate.run import Run
from preflight.estimate.speeds import Speeds, speeds, training_s
from preflight.expect.checkpoint_bytes import Projection, project
from preflight.model import Known, Missing

NO_MTBF = Missing("not-asked", "--mtbf, such as --mtbf 2.3d: hours of the job over its failures")
NO_INTERVAL = Missing("not-asked", "--interval; or --mtbf and a speed of writing: the best is then")
NO_RESTART = Missing("not-asked", "--restart, such as --restart 5m, or a speed of reading")
NO_WAIT = Missing("not-asked", "--wait PERCENT: queueing, retries by hand, nights without anybody")

NO_IDLE = Missing("not-asked", "saving, waiting and failures: none of them is known")


class Estimate(Struct, frozen=True):
    """Seconds of the wall clock where it says _s; `wall_s` holds those parts that are known."""

    run: Run
    speeds: Speeds
    checkpoint: Projection
    compute_s: Known[Figure]
    exposed_s: Known[Figure]
    balance_tokens: Known[Figure]
    stall_s: Known[Figure]
    interval_s: Known[Figure]
    restart_s: Known[Figure]
    saves: Known[Figure]  # how many
    saving_s: Known[Figure]
    waiting_s: Known[Figure]
    lost_s: Known[Figure]
    failures: Known[Figure]
    wall_s: Known[Figure]
    gpu_hours: Known[Figure]
    idle_gpu_hours: Known[Figure]
    energy_kwh: Known[Figure]
    room: Room
    notes: tuple[str, ...]

    def beside_steps(self, *, known: bool) -> tuple[str, ...]:
        """What adds to the steps, in words: that which is in the wall clock, or that which is not
        known and so is not in it."""
        parts = {"saving": self.saving_s, "waiting": self.waiting_s, "failures": self.lost_s}
        return tuple(one for one, time in parts.items() if isinstance(time, Figure) is known)


def estimate(run: Run, told: Measured) -> Estimate:
    """From what is stated and measured; UsageError where a number cannot be one of a run."""
    rates = speeds(run, told)
    checkpoint = project(
        run.params, optimizer=run.optimizer, ranks=run.gpus,
        write_gbps=_likely(rates.write_gbps), read_gbps=_likely(rates.read_gbps),
    )  # fmt: skip
    compute, exposed = _training(run, rates)
    stall = _stall(run, rates, checkpoint)
    interval = _interval(run, stall)
    restart = _restart(run, rates, checkpoint)
    steps = _added(compute, exposed)
    saving = _scaled(lambda time, one, every: time * one / every, steps, stall, interval)
    waiting: Known[Figure] = NO_WAIT
    if run.wait_percent is not None:
        part = run.wait_percent / 100
        waiting = _scaled(lambda time: time * part, steps)
    useful = _added(steps, saving, waiting)
    wall, lost, failures = _failing(run, useful, interval, restart)
    hours = _scaled(lambda time: time * run.gpus / 3600, wall)
    return Estimate(
        run=run, speeds=rates, checkpoint=checkpoint, compute_s=compute, exposed_s=exposed,
        balance_tokens=_balance(run, rates), stall_s=stall, interval_s=interval,
        restart_s=restart, saves=_saves(steps, interval), saving_s=saving, waiting_s=waiting,
        lost_s=lost, failures=failures, wall_s=wall, gpu_hours=hours,
        idle_gpu_hours=_idle(run, hours, steps, saving, waiting, lost),
        energy_kwh=_scaled(lambda whole, watts: whole * watts / 1e3, hours, rates.power_w),
        room=room_of(rates.product, told.room, told.products),
        notes=(*told.notes, *_of_another_model(run, told)),
    )  # fmt: skip


def _idle(
    run: Run, hours: Known[Figure], steps: Known[Figure], *beside: Known[Figure]
) -> Known[Figure]:
    """What the wall clock has more than the steps; not known, and no 0, where nothing is known of
    what adds to them."""
    if not any(isinstance(one, Figure) for one in beside):
        return NO_IDLE
    return _scaled(lambda whole, work: max(whole - work * run.gpus / 3600, 0.0), hours, steps)


def _of_another_model(run: Run, told: Measured) -> Iterator[str]:
    if run.gpu is not None and told.products and run.gpu not in told.products:
        yield f"the reports are of {', '.join(told.products)}, and the run is of {run.gpu}"


def _likely(figure: Known[Figure]) -> Known[float]:
    return figure if isinstance(figure, Missing) else figure.likely


def _scaled(rule: Callable[..., float], *parts: Known[Figure]) -> Known[Figure]:
    """The rule of figures that are all known; else what is missing."""
    lacking = first_missing(*parts)
    return lacking or computed(rule, *(part for part in parts if isinstance(part, Figure)))


def _added(first: Known[Figure], *more: Known[Figure]) -> Known[Figure]:
    """The first with those of the others that are known."""
    if isinstance(first, Missing):
        return first
    known = [first, *(one for one in more if isinstance(one, Figure))]
    return computed(lambda *each: math.fsum(each), *known)


def _training(run: Run, rates: Speeds) -> tuple[Known[Figure], Known[Figure]]:
    """Computing, and the communication that it does not hide."""
    compute = training_s(run, rates.computing_flops_per_s)
    if isinstance(compute, Missing):
        return compute, compute
    share, sent = rates.communication_percent, sent_s(run, rates)
    if isinstance(share, Missing):  # of a stated MFU
        return compute, share
    if isinstance(sent, Missing):
        as_measured = computed(lambda time, lost: time * lost / (100 - lost), compute, share)
        return compute, as_measured
    return compute, _exposed(compute, sent)


def sent_s(run: Run, rates: Speeds) -> Known[Figure]:
    """What the whole run's sending takes by itself, hidden or not."""
    busbw, times = rates.busbw_gbps, exchanges(run)
    if isinstance(busbw, Missing):
        return busbw
    if isinstance(times, Missing):
        return times
    whole = BUS_BYTES[run.sharding] * run.params * times
    return computed(lambda rate: whole / (rate * 1e9), busbw, falling="-")


def _exposed(compute: Figure, sent: Figure) -> Figure:
    """From all that computing can hide to nothing of it; likely is half of what is sent."""
    least = max(0.0, sent.low - compute.high)
    likely = max(sent.likely / 2, sent.likely - compute.likely, least)
    return Figure(least, likely, sent.high, "computed")


def _balance(run: Run, rates: Speeds) -> Known[Figure]:
    """Of a mixture of experts all parameters are sent, and the active ones computed with."""
    more = run.params / run.computing_params
    return _scaled(
        lambda flops, rate: more * balance_tokens(flops, rate, run.sharding),
        rates.computing_flops_per_s, rates.busbw_gbps,
    )  # fmt: skip


def _saves(steps: Known[Figure], interval: Known[Figure]) -> Known[Figure]:
    if isinstance(steps, Missing) or isinstance(interval, Missing):
        return steps if isinstance(steps, Missing) else interval
    return computed(lambda time, every: time / every, steps, interval, falling=" -")


def _stall(run: Run, rates: Speeds, checkpoint: Projection) -> Known[Figure]:
    if run.stall_s is not None:
        return stated(run.stall_s, "--stall")
    size = checkpoint.total_bytes
    if isinstance(rates.write_gbps, Missing):
        return rates.write_gbps
    return computed(lambda rate: size / (rate * 1e9), rates.write_gbps, falling="-")


def _interval(run: Run, stall: Known[Figure]) -> Known[Figure]:
    if run.interval_s is not None:
        return stated(run.interval_s, "--interval")
    if isinstance(stall, Missing) or run.mtbf_s is None:
        return NO_INTERVAL
    return computed(best_interval_s, stall, run.mtbf_s)


def _restart(run: Run, rates: Speeds, checkpoint: Projection) -> Known[Figure]:
    if run.restart_s is not None:
        return stated(run.restart_s, "--restart")
    size = checkpoint.total_bytes
    if isinstance(rates.read_gbps, Missing):
        return NO_RESTART
    return computed(lambda rate: size / (rate * 1e9), rates.read_gbps, falling="-")


def _failing(
    run: Run, useful: Known[Figure], interval: Known[Figure], restart: Known[Figure]
) -> tuple[Known[Figure], Known[Figure], Known[Figure]]:
    """The wall clock, what failures take of it, and how many there are."""
    mtbf = run.mtbf_s
    if isinstance(useful, Missing):
        return useful, useful, useful
    if mtbf is None:
        return useful, NO_MTBF, NO_MTBF
    if isinstance(interval, Missing):
        return useful, interval, computed(lambda time: time / mtbf, useful)
    again = Figure(0, 0, 0, "assumed") if isinstance(restart, Missing) else restart
    if lost_share(interval.likely, again.likely, mtbf) >= 1:
        text = "failures come before what they take is done again: a shorter --interval or restart"
        never = Missing("not-applicable", text)
        return never, never, never
    wall = computed(
        lambda time, every, back: _with_losses(time, every, back, mtbf), useful, interval, again
    )
    lost = Figure(
        wall.low - useful.low, wall.likely - useful.likely, wall.high - useful.high, "computed"
    )
    return wall, lost, computed(lambda time: time / mtbf, wall)


def _with_losses(useful_s: float, interval_s: float, restart_s: float, mtbf_s: float) -> float:
    share = lost_share(interval_s, restart_s, mtbf_s)
    return useful_s / (1 - share) if share < 1 else math.inf
