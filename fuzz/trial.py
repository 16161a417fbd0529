"""One input into one reader: what came of it, how long it took, and the least that still fails."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from msgspec import Struct

from fuzz.targets import Target

#: A reader that takes so long is stopped.
HANGS_S = 20
MOST_STEPS = 400


class Outcome(Struct):
    """`failure` names what broke, "" where nothing did; the time is the processor's, which other
    programs do not lengthen much."""

    refused: bool
    elapsed_s: float
    failure: str = ""
    place: str = ""


class _HangError(BaseException):
    """Not an Exception: no reader catches it."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _HangError


@contextmanager
def watched() -> Iterator[None]:
    """Within it a reader that hangs is stopped after HANGS_S of processor time."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, before)


def tried(target: Target, text: str) -> Outcome:
    """Read the text once."""
    signal.setitimer(signal.ITIMER_VIRTUAL, HANGS_S)
    begun, refused, failure, place = time.process_time(), False, "", ""
    try:
        target.read(text)
    except target.refuses:
        refused = True
    except _HangError:
        failure, place = f"hangs: over {HANGS_S} s", "hang"
    except Exception as error:  # noqa: BLE001 - whatever else is raised is what is looked for
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{type(error).__name__} at {last.filename.rpartition('/')[2]}:{last.lineno}"
        failure = f"{place}: {str(error)[:120]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return Outcome(refused, time.process_time() - begun, failure, place)


def judged(target: Target, text: str) -> Outcome:
    """Read it; what seems slow is read three times more, and the fastest counts."""
    first = tried(target, text)
    if first.failure or first.elapsed_s <= target.limit_s(text):
        return first
    best = min(tried(target, text).elapsed_s for _ in range(3))
    if best <= target.limit_s(text):
        return Outcome(first.refused, best)
    rate = best / (len(text) / 1e6)
    return Outcome(first.refused, best, f"slow: {best:.3f} s, {rate:.1f} s/MB", "slow")


def least(text: str, fails: Callable[[str], bool]) -> str:
    """A shorter text that still fails: lines, then characters, are left out while it does."""
    for pieces in (text.splitlines(keepends=True), None):
        parts = list(text) if pieces is None else pieces
        text = "".join(_reduced(parts, fails))
        if len(text) > 4_000:
            break
    return text


def _reduced(parts: list[str], fails: Callable[[str], bool]) -> list[str]:
    step, steps = max(len(parts) // 2, 1), 0
    while step and steps < MOST_STEPS:
        at = 0
        while at < len(parts) and steps < MOST_STEPS:
            steps += 1
            without = parts[:at] + parts[at + step :]
            if without and fails("".join(without)):
                parts = without
            else:
                at += step
        step //= 2
    return parts
