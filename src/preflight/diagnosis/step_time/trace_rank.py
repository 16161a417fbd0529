"""One rank's trace: where its steps go, by means over the steps that count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from msgspec import Struct

from preflight.diagnosis.reading import Part, Sign
from preflight.diagnosis.series.shape import slow
from preflight.diagnosis.wording import duration, percent
from preflight.facts.traces import RankTrace, TraceStep
from preflight.model import Evidence

#: Of busy time: kernels that move data rather than multiply.
_MOVING = ("norm", "elementwise", "optimizer", "embedding")
_BUSY, _GEMM_MOST, _MOVING_LEAST = 0.90, 0.60, 0.30
_QUEUE_EMPTY = 3.0


class Steps(Struct):
    """The steps that count. `whole`: there was no step to be seen, and it is all of the trace, its
    start included."""

    trace: RankTrace
    steps: Sequence[TraceStep]
    whole: bool = False

    @property
    def wall_us(self) -> float:
        return sum(one.wall_us for one in self.steps)

    def mean(self, of: Callable[[TraceStep], float]) -> float:
        """Seconds of a step."""
        return sum(map(of, self.steps)) / len(self.steps) / 1e6

    def share(self, of: Callable[[TraceStep], float]) -> float:
        return sum(map(of, self.steps)) / self.wall_us if self.wall_us > 0 else 0.0

    def usual(self, of: Callable[[TraceStep], float]) -> tuple[float, float]:
        """Share of the median step, and seconds: one hiccup is not how steps are."""
        shares = [of(one) / one.wall_us for one in self.steps]
        return median(shares), median(map(of, self.steps)) / 1e6

    @property
    def name(self) -> str:
        return "" if self.trace.rank is None else f"rank {self.trace.rank}"


def steps_of(trace: RankTrace) -> Steps | None:
    """Without the first, in which the profiler starts, where there are three; None without any."""
    known = [one for one in trace.steps if one.wall_us > 0]
    if not known:
        return None
    whole = all(one.number < 0 for one in known)
    return Steps(trace, known[1:] if len(known) >= 3 else known, whole)


def idle(*owners: str) -> Callable[[TraceStep], float]:
    """Microseconds that the device stood idle for one of these."""
    return lambda step: sum(step.idle_us.get(owner, 0.0) for owner in owners)


def rank_signs(one: Steps) -> Iterator[Sign]:
    """What one trace can show; below the bounds as well. Communication is for all ranks."""
    yield from _on_device(one) if one.trace.has_device else _on_host(one)
    yield from _irregular(one)


def parts_of(one: Steps) -> tuple[Part, ...]:
    """The parts of a step; together they are the step."""
    if one.trace.has_device:
        parts = {
            "compute": one.mean(lambda s: s.busy_us - s.exposed_comm_us - s.exposed_h2d_us),
            "communication": one.mean(lambda s: s.exposed_comm_us),
            "h2d": one.mean(lambda s: s.exposed_h2d_us),
            "data": one.mean(idle("loader")),
            "host": one.mean(idle("host", "sync", "kernel-gap")),
            "allocator": one.mean(idle("allocator")),
            "save": one.mean(idle("save")),
        }
    else:
        parts = {
            "data": one.mean(lambda s: s.loader_us),
            "forward": one.mean(lambda s: s.forward_us),
            "backward": one.mean(lambda s: max(0.0, s.backward_us - s.exposed_comm_us)),
            "communication": one.mean(lambda s: s.exposed_comm_us),
            "optimizer": one.mean(lambda s: s.optimizer_us),
            "save": one.mean(lambda s: s.save_us),
        }
    whole = one.mean(lambda s: s.wall_us)
    told = sum(parts.values())
    if told > whole > 0:  # spans that lie within each other
        parts = {name: value * whole / told for name, value in parts.items()}
    parts["other"] = max(0.0, whole - told)
    return tuple(Part(name, value) for name, value in parts.items() if value > 0)


def _sign(
    one: Steps, cause: str, of: Callable[[TraceStep], float], text: str,
    against: Sequence[str] = (), fix: Sequence[str] = (),
) -> Sign:  # fmt: skip
    """`text` may hold {ms} and {percent}."""
    share, seconds = one.usual(of)
    worst = max(one.steps, key=of)
    told = text.format(ms=duration(seconds), percent=percent(share))
    n = len(one.steps)
    return Sign(
        cause, f"{told} (median of {n} step{'s' if n > 1 else ''})" if not one.whole else
        f"{told.replace(' of a step', '')}, of all of the trace",
        share=share, seconds=None if one.whole else seconds, subject="",
        confidence="low" if one.whole else "high" if n >= 3 else "medium",
        evidence=(
            Evidence("trace", source=one.trace.source,
                     text=f"step {worst.number}: {of(worst) / 1e3:,.1f} ms of "
                          f"{worst.wall_us / 1e3:,.1f} ms"),
        ),
        against=tuple(against), fix=tuple(fix),
    )  # fmt: skip


def _on_device(one: Steps) -> Iterator[Sign]:
    hidden = one.share(lambda s: s.loader_us - s.loader_idle_us)
    yield _sign(
        one, "data-wait", idle("loader"), "the device is idle for {ms} ({percent}) of a step while "
        "the loader is waited for",
        (f"of the loader's time another {percent(max(0.0, hidden))} of the step is hidden "
         "behind the device's work",),
    )  # fmt: skip
    yield from _copies(one)
    yield from _host(one)
    for owner, cause, what in (
        ("allocator", "allocator", "cudaMalloc and cudaFree"),
        ("compile", "recompile", "compiling"),
        ("gc", "python-gc", "Python's garbage collector"), ("save", "checkpoint-stall", "saving"),
    ):  # fmt: skip
        yield _sign(one, cause, idle(owner), f"the device is idle for {{ms}} ({{percent}}) of a "
                    f"step during {what}")  # fmt: skip
    yield from _kernels(one)
    yield from _periodic(one)


def _copies(one: Steps) -> Iterator[Sign]:
    copied = sum(step.h2d_bytes for step in one.steps)
    pageable = sum(step.pageable_bytes for step in one.steps)
    took = sum(step.h2d_us for step in one.steps)
    if not copied or not took:
        return
    kind = "from pageable memory" if pageable * 2 > copied else "from pinned memory"
    rate = copied / took / 1e3
    yield _sign(
        one, "h2d", lambda s: s.exposed_h2d_us, "copies to the device with nothing beside them "
        f"take {{ms}} ({{percent}}) of a step: {copied / 1e6 / len(one.steps):.3g} MB {kind}, "
        f"{rate:.3g} GB/s",
        fix=() if pageable * 2 > copied else
        ("copy the next batch on a stream of its own, while this one is computed",),
    )  # fmt: skip


def _host(one: Steps) -> Iterator[Sign]:
    kernels = sum(step.kernels for step in one.steps)
    short = sum(step.short_kernels for step in one.steps) / kernels if kernels else 0.0
    queue = sorted(step.queue_median for step in one.steps)[len(one.steps) // 2]
    middle = sorted(step.kernel_median_us for step in one.steps)[len(one.steps) // 2]
    syncs = sum(step.syncs for step in one.steps) / len(one.steps)
    held = [f"the median kernel takes {middle:.3g} us, {percent(short)} are shorter than their "
            f"launch, {queue:.3g} wait in the queue, {syncs:.3g} waits for it a step"]  # fmt: skip
    if one.trace.launch_limited:
        held.append("CUDA graphs are in it: launches do not stand for kernels")
    elif queue > _QUEUE_EMPTY and short < 0.3:
        held.append("the queue is not empty: the host is ahead for most of the step")
    yield _sign(
        one, "host", idle("host", "sync", "kernel-gap"), "the device is idle for {ms} ({percent}) "
        "of a step until the host launches the next kernel", held,
        ("no .item(), .cpu() or print in the step; torch.compile(model)",) if syncs > 20 else (),
    )  # fmt: skip


def _kernels(one: Steps) -> Iterator[Sign]:
    busy = one.share(lambda s: s.busy_us)
    of_busy = sum(step.busy_us for step in one.steps) or 1.0

    def moving(step: TraceStep) -> float:
        return sum(step.classes_us.get(kind, 0.0) for kind in _MOVING)

    gemm = sum(step.classes_us.get("gemm", 0.0) for step in one.steps) / of_busy
    moved = sum(map(moving, one.steps)) / of_busy
    if busy > _BUSY and moved > _MOVING_LEAST and gemm < _GEMM_MOST:
        yield _sign(
            one, "memory-bandwidth", moving, "kernels that move data more than they multiply take "
            "{ms} ({percent}) of a step", (f"matrix products take {percent(gemm)} of the work",),
        )  # fmt: skip
    elif busy > _BUSY:
        yield _sign(one, "compute", lambda s: s.compute_us, "the device computes for {ms} "
                    "({percent}) of a step", (f"idle {percent(1 - busy)}",))  # fmt: skip


def _periodic(one: Steps) -> Iterator[Sign]:
    """Few steps that wait for data long, among many that do not."""
    waits = [idle("loader")(step) if one.trace.has_device else step.loader_us for step in one.steps]
    if len(waits) < 8:
        return
    late = [at for at in slow([wait + 1.0 for wait in waits], factor=3.0)
            if waits[at] > 0.2 * one.steps[at].wall_us]  # fmt: skip
    if 1 < len(late) <= len(waits) // 2:
        numbers = ", ".join(str(one.steps[at].number) for at in late[:5])
        lost = sum(waits[at] for at in late)
        yield Sign(
            "data-wait-periodic", f"{len(late)} of {len(waits)} steps ({numbers}) wait for data, "
            "the others do not", share=lost / one.wall_us, seconds=lost / len(waits) / 1e6,
            confidence="medium",
            evidence=(Evidence("trace", source=one.trace.source,
                               text=f"step {one.steps[late[0]].number}"),),
        )  # fmt: skip


#: Longer than so many times the median of the steps.
_LONG, _ENOUGH = 1.5, 6
_EVENTS: tuple[tuple[str, Callable[[TraceStep], float]], ...] = (
    ("saving", lambda s: s.save_us),
    ("compiling", lambda s: s.compile_us),
    ("garbage collection", lambda s: s.gc_us),
    ("cudaMalloc and cudaFree", lambda s: s.alloc_us),
    ("the loader", lambda s: s.loader_us),
)


def _irregular(one: Steps) -> Iterator[Sign]:
    """Single steps that took much longer, and what was most of it."""
    walls = [step.wall_us for step in one.steps]
    if len(walls) < _ENOUGH:
        return
    usual = median(walls)
    late = [step for step in one.steps if step.wall_us > _LONG * usual]
    if not late or len(late) > len(walls) // 3:
        return
    lost = sum(step.wall_us - usual for step in late)
    what, of = max(_EVENTS, key=lambda pair: sum(map(pair[1], late)))
    why = f", most of it {what}" if sum(map(of, late)) > lost / 2 else ""
    yield Sign(
        "irregular", f"{len(late)} of {len(walls)} steps took more than {_LONG} times the usual, "
        f"the longest {duration(max(walls) / 1e6)} of {duration(usual / 1e6)}{why}",
        share=lost / sum(walls), seconds=lost / len(walls) / 1e6, confidence="medium",
        evidence=(Evidence("trace", source=one.trace.source, text=f"step {late[0].number}"),),
        against=("the other steps do not have it",),
    )  # fmt: skip


def _on_host(one: Steps) -> Iterator[Sign]:
    yield _sign(one, "data-wait", lambda s: s.loader_us,
                "the loader is waited for {ms} ({percent}) of a step")  # fmt: skip
    # Without stacks a collection leaves no trace: none seen is not none.
    collected = one.mean(lambda s: s.gc_us) > 0
    gc = (("python-gc", "Python's garbage collector", lambda s: s.gc_us),) if collected else ()
    for cause, what, of in (
        *gc,
        ("checkpoint-stall", "saving", lambda s: s.save_us),
        ("recompile", "compiling", lambda s: s.compile_us),
    ):  # fmt: skip
        yield _sign(one, cause, of, f"{what} takes {{ms}} ({{percent}}) of a step")
    yield from _periodic(one)
