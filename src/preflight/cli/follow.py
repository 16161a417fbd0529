"""A log that grows, watched: a line for each event as it comes, and the end with the first that
needs somebody."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from preflight.diagnosis.divergence.attribute import Hypothesis
from preflight.diagnosis.divergence.bounds import table
from preflight.diagnosis.divergence.conclude import Judged, judged, status_of
from preflight.diagnosis.divergence.event import Event
from preflight.errors import ParseError, UsageError
from preflight.logs.training.log import read
from preflight.model import Status

#: Seconds between two looks at the file, at least, and times what a look took.
_EVERY_S, _TIMES = 0.5, 10.0
#: Events that a single step has.
_AT_STEPS = ("spike", "not-finite", "jump-after-resume", "drop-after-resume")
#: Of a longer log its end is looked at: what is usual is told by some thousand steps.
_MOST_BYTES = 64 << 20


def follow(
    path: Path, tell: Callable[[str], None], news: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:  # fmt: skip
    """Until something failed. `tell`: of the watch itself; `news`: of events. Whoever interrupts
    it ends it. UsageError where it cannot be read."""
    seen: dict[tuple[str, float], Status] = {}
    size, told = -1, False
    while True:
        began = time.monotonic()
        now = _size(path)
        if now != size:
            size = now
            one = _judged(path, size)
            if one is not None and not told:
                tell(f"watching {path}: {one.course.series.lines:,} steps so far")
                told = True
            for event in _news(one, seen):
                suspects = one.causes[one.events.index(event)] if one else []
                news(_line(event, suspects))
            if Status.FAIL in seen.values():
                return
        sleep(max(_EVERY_S, _TIMES * (time.monotonic() - began)))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise UsageError(f"--follow {path}: {error.strerror}", "the log of one run") from None


def _judged(path: Path, size: int) -> Judged | None:
    """None as long as nothing in it tells of a step."""
    try:
        if size <= _MOST_BYTES:
            return judged(read(path, lambda _: None))
        with tempfile.NamedTemporaryFile(suffix=".log") as spool, path.open("rb") as file:
            file.seek(size - _MOST_BYTES)
            file.readline()
            while data := file.read(1 << 20):
                spool.write(data)
            spool.flush()
            return judged(read(Path(spool.name), lambda _: None))
    except ParseError:
        return None


def _news(one: Judged | None, seen: dict[tuple[str, float], Status]) -> Iterator[Event]:
    """Events that are new, or worse than they were."""
    if one is None:
        return
    for event in one.events:
        # Where a trend began is known better with each line: it is one event all the same.
        place = event.step if event.kind in _AT_STEPS else float(one.course.start(event.row))
        key, status = (event.kind, place), status_of(event)
        if key not in seen or (status is Status.FAIL and seen[key] is not Status.FAIL):
            seen[key] = status
            yield event


def _line(event: Event, suspects: list[Hypothesis]) -> str:
    suspect = f"; suspected: {table().suspect(suspects[0].cause).title}" if suspects else ""
    head = f"{time.strftime('%H:%M:%S')} {status_of(event).value:5}"
    return f"{head} step {event.step:,.0f} {event.kind}: {event.text}{suspect}\n"
