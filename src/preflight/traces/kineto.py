"""A trace of PyTorch's profiler (Kineto), or another in Chrome's form, of one rank."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder

from preflight.errors import ParseError
from preflight.facts.traces import KERNEL_CLASSES, Collective, KernelTotal, RankTrace
from preflight.traces.calls import Seen, numbered
from preflight.traces.cuts import byte_of
from preflight.traces.events import Event
from preflight.traces.gather import MOST_ACTIVITIES, Gathered
from preflight.traces.repair import cleaned
from preflight.traces.steps import Window, main_streams, steps_of, windows
from preflight.traces.stream import EventStream

#: So many kernels are told, those with most time.
MOST_KERNELS = 200
_TELL_BYTES = 256 << 20

_HEAD = re.compile(
    rb'"traceEvents"\s*:|^\s*\{\s*"(?:schemaVersion|deviceProperties|distributedInfo)"\s*:'
)
_ARRAY = re.compile(rb"^\s*\[\s*\{")
_RANK_IN_NAME = re.compile(r"rank[-_.]?(\d{1,7})", re.I)
_RANK = re.compile(rb'"rank"\s*:\s*(\d{1,7})')
_WORLD = re.compile(rb'"world_size"\s*:\s*(\d{1,7})')


class Distributed(Struct):
    backend: str | None = None
    rank: int | None = None
    world_size: int | None = None


class Device(Struct):
    name: str | None = None


class Meta(Struct):
    """What stands beside the events."""

    distributed: Distributed | None = field(default=None, name="distributedInfo")
    devices: list[Device] | None = field(default=None, name="deviceProperties")
    host: str | None = field(default=None, name="host_name")


_META = Decoder(Meta, strict=False)


def sniff(head: bytes, name: str) -> bool:
    """An object with traceEvents, or an array of events."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    if _ARRAY.match(head):
        return b'"ph"' in head and b'"pid"' in head
    return _HEAD.search(head) is not None


def read(path: Path, tell: Callable[[str], None]) -> RankTrace:
    """The whole of it. ParseError where it holds no events."""
    stream, gathered = EventStream(path, Event), Gathered()
    count = told = 0
    for events in stream:
        count += len(events)
        gathered.take(events)
        if stream.bytes - told > _TELL_BYTES:
            told = stream.bytes
            tell(f"{path.name}: {told / 1e9:.1f} GB, {count:,} events")
    if not count and stream.lost:
        raise ParseError(f"none of its {stream.lost:,} events can be read")
    if not count and not stream.whole:
        raise ParseError("it is cut before its first event")
    found = windows(gathered)
    trace = RankTrace(str(path), events=count)
    trace.has_device = bool(gathered.activities.start)
    trace.steps = tuple(steps_of(gathered, found))
    trace.collectives = tuple(_collectives(gathered, found))
    trace.kernels = _kernels(gathered)
    trace.launch_limited = gathered.has_graphs
    _describe(trace, stream, path.name)
    _reach(trace, gathered)
    trace.damage = tuple(_damage(stream, gathered))
    trace.lost_events, trace.truncated = stream.lost, not stream.whole
    trace.lacks = tuple(_lacks(trace, gathered))
    return trace


def _describe(trace: RankTrace, stream: EventStream[Event], name: str) -> None:
    """Rank, world, device, host: from before or after the events, or from the file's name."""
    for text in (stream.head + b'"": 0}', b'{"": 0' + stream.tail):
        meta = _meta(text)
        info = meta.distributed or Distributed()
        trace.rank = info.rank if trace.rank is None else trace.rank
        trace.world = info.world_size if trace.world is None else trace.world
        trace.backend = trace.backend or (info.backend or "")[:80]
        trace.host = trace.host or (meta.host or "")[:255]
        names = [one.name for one in meta.devices or () if one.name]
        trace.device = trace.device or (names[0][:120] if names else "")
    match = _RANK_IN_NAME.search(name)
    if trace.rank is None and match:
        trace.rank = int(match[1])


def _meta(text: bytes) -> Meta:
    for _ in range(4):
        try:
            return _META.decode(text)
        except RecursionError:
            break
        except DecodeError as error:
            text, changed = cleaned(text, str(error), byte_of(error))
            if not changed:
                break
    rank, world = _RANK.search(text), _WORLD.search(text)
    return Meta(Distributed(None, int(rank[1]) if rank else None, int(world[1]) if world else None))


def _reach(trace: RankTrace, gathered: Gathered) -> None:
    rows, mine = gathered.activities, set(main_streams(gathered))
    inside = [row for row, stream in enumerate(rows.stream) if stream in mine]
    if inside:
        trace.device_first_us = min(rows.start[row] for row in inside)
        trace.device_last_us = max(rows.end[row] for row in inside)


def _kernels(gathered: Gathered) -> tuple[KernelTotal, ...]:
    largest = sorted(gathered.names.items(), key=lambda item: -item[1].total_us)[:MOST_KERNELS]
    return tuple(
        KernelTotal(
            name[:300], KERNEL_CLASSES[one.code], one.count, one.total_us, median(one.sample)
        )
        for name, one in largest
    )


def _collectives(gathered: Gathered, found: Sequence[Window]) -> list[Collective]:
    seen = gathered.collectives
    if seen.device:
        of_row = {row: one.number for one in found for row in one.rows}
        return numbered(seen.device, [of_row.get(one.row, -1) for one in seen.device])
    host = _with_numbers(seen.host, seen.told)
    starts = [one.start for one in found]
    steps = []
    for one in host:
        at = bisect_right(starts, one.start_us) - 1
        inside = at >= 0 and one.start_us <= found[at].end
        steps.append(found[at].number if inside else -1)
    return numbered(host, steps)


def _with_numbers(host: Sequence[Seen], told: Sequence[Seen]) -> list[Seen]:
    """Spans of the backend with the group and number that were told when they were begun: the nth
    of a name is the nth that was told, where there are as many."""
    if not host:
        return list(told)
    found = []
    for name in dict.fromkeys(one.name for one in host):
        spans = sorted((one for one in host if one.name == name), key=lambda one: one.start_us)
        args = sorted((one for one in told if one.name == name), key=lambda one: one.start_us)
        if len(args) == len(spans):
            for span, one in zip(spans, args, strict=True):
                span.args = one.args
        found += spans
    return found


def _damage(stream: EventStream[Event], gathered: Gathered) -> list[str]:
    """In words."""
    found = []
    if stream.repaired:
        found.append(f"{stream.repaired:,} places with broken JSON were mended")
    if stream.lost:
        found.append(f"{stream.lost:,} events could not be read and are left out")
    if gathered.absurd:
        found.append(f"{gathered.absurd:,} events with times that no clock gives are left out")
    if gathered.unkept:
        found.append(
            f"{gathered.unkept:,} kernels beyond the first {MOST_ACTIVITIES:,} are left out"
        )
    if gathered.collectives.dropped:
        found.append(f"{gathered.collectives.dropped:,} early collectives are left out")
    if not stream.whole:
        found.append(f"cut after {stream.bytes:,} bytes: its end is missing")
    if stream.cause:
        found.append(f"read no further: {stream.cause}")
    devices = {device for device, _ in gathered.streams}
    if len(devices) > 1:
        found.append(f"work of {len(devices)} devices: the one with most is told")
    return found


def _lacks(trace: RankTrace, gathered: Gathered) -> list[str]:
    """Of TRACE_LACKS."""
    communicates = bool(trace.collectives)
    tests = {
        "steps": not gathered.steps,
        "kernels": not trace.has_device,
        "launches": trace.has_device and not gathered.has_calls,
        "operators": not gathered.operators,
        "python stacks": not gathered.has_stacks,
        "group names": communicates and not gathered.collectives.has_groups,
        "sequence numbers": communicates and not gathered.collectives.has_seq,
        "rank": trace.rank is None,
    }
    return [name for name, lacking in tests.items() if lacking]
