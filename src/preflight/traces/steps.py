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
from preflight.traces.spans import Span, Union, clipped, minus, total

_COMMUNICATION, _COPY, _SET = CODES["communication"], CODES["copy"], CODES["set"]
#: Work that begins so long before its launch has a wrong time.
_BEFORE_LAUNCH_US = 1e6
_DAY_US = 86400e6
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
        launched = max((at for at in gathered.launches if at < last.end), default=last.start)
        last.end = max(recorded[1], launched)
    return found


def _whole(gathered: Gathered) -> Span:
    """All of the trace; where a device is in it, from its first work on: what was done before, such
    as making its context, is no part of a run, but for waiting for data, saving and compiling.
    Times a day off the rest are left out."""
    rows = gathered.activities
    if not rows.start:
        return gathered.low, gathered.high
    middle = median(rows.start[:: max(1, len(rows.start) // 1000)])
    near = [row for row, at in enumerate(rows.start) if abs(at - middle) < _DAY_US]
    low = min(rows.start[row] for row in near)
    low = min((at for at in rows.launch if abs(at - middle) < _DAY_US), default=low)
    for kind in ("loader", "save", "compile"):
        if kind in gathered.spans:
            low = min(low, gathered.spans[kind].merged()[0][0])
    high = max(rows.end[row] for row in near)
    return low, max(high, gathered.high)


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
    high = max(window.end, last, low)
    step = TraceStep(window.number, low, high - low)
    busy = _add_times(step, gathered, mine)
    copied = [gathered.copies[row] for row in mine if row in gathered.copies]
    step.h2d_bytes = sum(size for size, _ in copied)
    step.pageable_bytes = sum(size for size, pageable in copied if pageable)
    idle = minus([(low, high)], busy)
    step.loader_idle_us = total(idle) - total(minus(idle, hosts.within("loader", low, high)))
    step.idle_us = owners(rows, mine, idle, hosts)
    _kernels(step, rows, mine)
    return step


def _add_times(step: TraceStep, gathered: Gathered, mine: Sequence[int]) -> list[Span]:
    """Device time by class, and what is not hidden; when the device was busy."""
    rows, copies = gathered.activities, gathered.copies
    busy, compute, communication, h2d = Union(), Union(), Union(), Union()
    classes = [Union(kept=False) for _ in KERNEL_CLASSES]
    for row in mine:
        start, end, code = rows.start[row], rows.end[row], rows.code[row]
        busy.add(start, end)
        classes[code].add(start, end)
        if code == _COMMUNICATION:
            communication.add(start, end)
        elif code not in (_COPY, _SET):
            compute.add(start, end)
        elif row in copies:
            h2d.add(start, end)
    for name, one in zip(KERNEL_CLASSES, classes, strict=True):
        one.ended()
        if one.total_us > 0:
            step.classes_us[name] = one.total_us
    computing, busy_spans = compute.ended(), busy.ended()
    step.exposed_comm_us = total(minus(communication.ended(), computing))
    step.exposed_h2d_us = total(minus(h2d.ended(), computing))
    step.busy_us, step.compute_us = busy.total_us, compute.total_us
    step.comm_us, step.h2d_us = communication.total_us, h2d.total_us
    return busy_spans


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
