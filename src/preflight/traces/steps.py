"""From what was gathered to the steps of a trace."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from msgspec import Struct

from preflight.facts.traces import KERNEL_CLASSES, TraceStep
from preflight.traces.gather import CODES, Activities, Gathered
from preflight.traces.idle import Hosts, owners
from preflight.traces.spans import Span, clipped, merged, minus, total

_COMMUNICATION, _COPY, _SET = CODES["communication"], CODES["copy"], CODES["set"]
#: Work that begins so long before its launch has a wrong time.
_BEFORE_LAUNCH_US = 1e6
#: Time between two steps of at most this share of the first belongs to it.
_BETWEEN = 0.1
#: A last step so short beside the longest, without work, is the profiler's end.
_STUB = 0.02
_MOST_LOOKS = 2000  # of the queue


class Window(Struct):
    """A step on the host, and the rows of its work on the device in order of their begin."""

    number: int
    start: float
    end: float
    rows: array[int]


def windows(gathered: Gathered) -> list[Window]:
    """The steps; of a trace without any the whole as step -1. Empty where nothing is in it."""
    found = _host_windows(gathered)
    starts = [one.start for one in found]
    rows = gathered.activities
    device = set(main_streams(gathered))
    for row, launch in enumerate(rows.launch):
        if rows.stream[row] not in device:
            continue
        start = rows.start[row]
        known = launch == launch  # NaN is unlike itself
        if known and start < launch - _BEFORE_LAUNCH_US:
            gathered.absurd += 1
            continue
        at = launch if known else start
        step = bisect_right(starts, at) - 1
        if step >= 0 and at <= found[step].end:
            found[step].rows.append(row)
    for one in found:
        one.rows = array("L", sorted(one.rows, key=rows.start.__getitem__))
    return _without_stub(found)


def _host_windows(gathered: Gathered) -> list[Window]:
    steps = sorted((start, end, number) for number, (start, end) in gathered.steps.items())
    if not steps:
        low, high = _whole(gathered)
        return [Window(-1, low, high, array("L"))] if high > low else []
    found = [Window(number, start, end, array("L")) for start, end, number in steps]
    for one, after in pairwise(found):
        if after.start < one.end or after.start - one.end <= _BETWEEN * (one.end - one.start):
            one.end = after.start
    last, recorded = found[-1], gathered.recorded
    if recorded is not None and last.start < recorded[1] < last.end:
        last.end = recorded[1]
    return found


def _whole(gathered: Gathered) -> Span:
    """From the first to the last, of host and device; times a week off the rest are left out."""
    rows = gathered.activities
    low, high = gathered.low, gathered.high
    if rows.start:
        sample = rows.start[:: max(1, len(rows.start) // 1000)]
        middle = median(sample)
        near = [row for row, at in enumerate(rows.start) if abs(at - middle) < 86400e6]
        low = min(low, *(rows.start[row] for row in near)) if low > -math.inf else low
        high = max(high, *(rows.end[row] for row in near))
        launched = [at for at in rows.launch if abs(at - middle) < 86400e6]
        low = min([low, *launched])
    return low, high


def _without_stub(found: list[Window]) -> list[Window]:
    if len(found) < 2 or found[-1].rows:
        return found
    longest = max(one.end - one.start for one in found)
    return found[:-1] if found[-1].end - found[-1].start < _STUB * longest else found


def main_streams(gathered: Gathered) -> list[int]:
    """Streams of the device with most work."""
    work: dict[object, float] = {}
    rows = gathered.activities
    by_stream = array("d", bytes(8 * 65536))
    for stream, start, end in zip(rows.stream, rows.start, rows.end, strict=True):
        by_stream[stream] += end - start
    for (device, _), stream in gathered.streams.items():
        work[device] = work.get(device, 0.0) + by_stream[stream]
    if not work:
        return []
    device = max(work, key=lambda one: work[one])
    return [stream for (one, _), stream in gathered.streams.items() if one == device]


def steps_of(gathered: Gathered, found: Sequence[Window]) -> list[TraceStep]:
    """In the order of time."""
    hosts = Hosts.of(gathered)
    has_device = bool(gathered.activities.start)
    launches, syncs, allocs = (sorted(one) for one in (
        gathered.launches, gathered.syncs, gathered.allocs))  # fmt: skip
    steps, before = [], -math.inf
    for one in found:
        step = _on_device(gathered, one, before, hosts) if has_device else _bare(one)
        before = step.start_us + step.wall_us
        step.launches, step.syncs, step.allocs = (
            bisect_left(times, one.end) - bisect_left(times, one.start)
            for times in (launches, syncs, allocs)
        )
        _on_host(step, one, hosts, has_device)
        steps.append(step)
    return steps


def _bare(window: Window) -> TraceStep:
    return TraceStep(window.number, window.start, window.end - window.start)


def _on_device(gathered: Gathered, window: Window, before: float, hosts: Hosts) -> TraceStep:
    """What the device did for a step. `before`: when the step before it ended on the device."""
    rows, mine = gathered.activities, window.rows
    first = rows.start[mine[0]] if mine else math.inf
    last = max((rows.end[row] for row in mine), default=-math.inf)
    low = max(window.start, min(before, first))
    high = max(window.end, last)
    classes: dict[int, list[Span]] = {}
    for row in mine:
        classes.setdefault(rows.code[row], []).append((rows.start[row], rows.end[row]))
    compute = merged(
        span for code, spans in classes.items()
        if code not in (_COMMUNICATION, _COPY, _SET) for span in spans
    )  # fmt: skip
    communication = merged(classes.get(_COMMUNICATION, ()))
    h2d = merged((rows.start[row], rows.end[row]) for row in mine if row in gathered.copies)
    busy = merged(span for spans in classes.values() for span in spans)
    step = TraceStep(window.number, low, high - low)
    step.classes_us = {
        KERNEL_CLASSES[code]: total(merged(spans)) for code, spans in sorted(classes.items())
    }
    step.busy_us, step.compute_us = total(busy), total(compute)
    step.comm_us, step.exposed_comm_us = total(communication), total(minus(communication, compute))
    step.h2d_us, step.exposed_h2d_us = total(h2d), total(minus(h2d, compute))
    copied = [gathered.copies[row] for row in mine if row in gathered.copies]
    step.h2d_bytes = sum(size for size, _ in copied)
    step.pageable_bytes = sum(size for size, pageable in copied if pageable)
    idle = minus([(low, high)], busy)
    step.loader_idle_us = total(idle) - total(minus(idle, hosts.within("loader", low, high)))
    step.idle_us = owners(rows, mine, idle, hosts)
    _kernels(step, rows, mine)
    return step


def _kernels(step: TraceStep, rows: Activities, mine: Sequence[int]) -> None:
    """Counts and medians."""
    kernels = [row for row in mine if rows.code[row] not in (_COPY, _SET)]
    step.kernels = len(kernels)
    step.kernel_median_us = median(rows.end[r] - rows.start[r] for r in kernels) if kernels else 0.0
    step.short_kernels = sum(rows.end[row] - rows.start[row] < rows.call_us[row] for row in kernels)
    launches = sorted(rows.launch[row] for row in mine if rows.launch[row] == rows.launch[row])
    begun = [rows.start[row] for row in mine]
    looks = [
        at + 1 - bisect_right(begun, launches[at])
        for at in range(0, len(launches), max(1, len(launches) // _MOST_LOOKS))
    ]
    step.queue_median = float(max(0, median(looks))) if looks else 0.0


def _on_host(step: TraceStep, window: Window, hosts: Hosts, has_device: bool) -> None:
    low, high = window.start, window.end
    step.host_us = high - low
    for field, kind in (("loader_us", "loader"), ("optimizer_us", "optimizer"), ("sync_us", "sync"),
                        ("alloc_us", "alloc"), ("gc_us", "gc"), ("compile_us", "compile"),
                        ("save_us", "save"), ("backward_us", "backward")):  # fmt: skip
        setattr(step, field, total(hosts.within(kind, low, high)))
    forward = hosts.within("forward", low, high)
    if not forward and not has_device:
        forward = clipped(hosts.operators, low, high)
        for kind in ("backward", "optimizer", "loader", "communication", "call", "save"):
            forward = minus(forward, hosts.within(kind, low, high))
    step.forward_us = total(forward)
    if not has_device:
        communication = hosts.within("communication", low, high) or hosts.within("call", low, high)
        step.comm_us = total(communication)
        exposed = minus(communication, clipped(hosts.operators, low, high))
        for kind in ("loader", "save", "gc", "compile"):
            exposed = minus(exposed, hosts.within(kind, low, high))
        step.exposed_comm_us = total(exposed)
