"""A timeline of the operations of a pipeline: forward, backward, sending and receiving of each
worker, in Chrome's form. A process is a rank of data parallelism, its threads are streams of its
stages, where they are called so ("PP rank 0, TP rank 0, compute"); else a process is a worker."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from preflight.errors import ParseError
from preflight.facts.traces import Operation, Timeline
from preflight.traces.events import LATEST_US, LONGEST_US
from preflight.traces.stream import EventStream

#: Beyond, operations are counted only.
MOST_OPERATIONS = 1_000_000
_KINDS = re.compile(rb'"(?:forward|backward)-(?:compute|send|recv)"')
_OF_STAGE = re.compile(rb'"PP rank \d+[^"]{0,80}"')
_STAGE = re.compile(r"PP rank (\d{1,6})(?:, TP rank (\d{1,6}))?")
Key = tuple[int | str | float | None, int | str | float | None]


class OperationArgs(Struct, gc=False):
    step: int | None = None
    model_chunk: int | None = None
    mb_id: int | None = None
    name: str | None = None  # of a thread


class OperationEvent(Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    ts: float = 0.0
    dur: float = 0.0
    args: OperationArgs | None = None


def sniff(head: bytes, name: str) -> bool:
    """Operations of a pipeline, or threads called after its stages, in Chrome's form."""
    if b'"ph"' not in head:
        return False
    return _KINDS.search(head) is not None or _OF_STAGE.search(head) is not None


def read(path: Path, tell: Callable[[str], None]) -> Timeline:
    """The whole of it. ParseError where there are no operations."""
    stream = EventStream(path, OperationEvent)
    rows: list[OperationEvent] = []
    threads: dict[Key, str] = {}
    absurd = unkept = 0
    for events in stream:
        for event in events:
            if event.ph == "M" and event.name == "thread_name":
                threads[(event.pid, event.tid)] = (event.args and event.args.name) or ""
            elif event.ph != "X":
                continue
            elif not (0 <= event.dur < LONGEST_US and abs(event.ts) < LATEST_US):
                absurd += 1
            elif len(rows) >= MOST_OPERATIONS:
                unkept += 1
            else:
                rows.append(event)
    if not rows:
        raise ParseError("no operations of a pipeline in it")
    found = Timeline(str(path), _operations(rows, threads))
    found.damage = tuple(_damage(stream, absurd, unkept))
    return found


def _operations(rows: list[OperationEvent], threads: dict[Key, str]) -> tuple[Operation, ...]:
    """In the order of the file. A worker's number is its place among all of them."""
    places = {key: _place(key, name) for key, name in threads.items()}
    used = dict.fromkeys(places.get((one.pid, one.tid)) or (one.pid, None, 0) for one in rows)
    workers = {place: at for at, place in enumerate(sorted(used, key=str_key))}
    return tuple(_operation(one, places, workers) for one in rows)


Place = tuple[int | str | float | None, int | None, int]  # process, stage, rank within it


def str_key(place: Place) -> tuple[bool, float, str, int, int]:
    process, stage, within = place
    number = process if isinstance(process, int | float) else 0
    return (isinstance(process, str), number, str(process), -1 if stage is None else stage, within)


def _place(key: Key, name: str) -> Place | None:
    match = _STAGE.search(name)
    return (key[0], int(match[1]), int(match[2] or 0)) if match else None


def _operation(
    event: OperationEvent, places: dict[Key, Place | None], workers: dict[Place, int]
) -> Operation:
    place = places.get((event.pid, event.tid)) or (event.pid, None, 0)
    args = event.args or OperationArgs()
    named = isinstance(event.pid, int) and place[1] is not None
    return Operation(
        workers[place], place[1], int(event.pid or 0) if named else None,
        -1 if args.step is None else args.step, (event.cat or event.name)[:80],
        event.ts, event.dur, args.mb_id or 0, args.model_chunk or 0,
    )  # fmt: skip


def _damage(stream: EventStream[OperationEvent], absurd: int, unkept: int) -> list[str]:
    told = (
        (stream.repaired, f"{stream.repaired:,} places with broken JSON were mended"),
        (stream.lost, f"{stream.lost:,} events could not be read and are left out"),
        (absurd, f"{absurd:,} events with times that no clock gives are left out"),
        (unkept, f"{unkept:,} operations beyond the first {MOST_OPERATIONS:,} are left out"),
        (not stream.whole, f"cut after {stream.bytes:,} bytes: its end is missing"),
        (stream.cause, f"read no further: {stream.cause}"),
    )
    return [text for there, text in told if there]
