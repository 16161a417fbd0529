"""What a rank does, by the stacks of its first thread."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from preflight.diagnosis.frames import COLLECTIVES, LOADERS, SAVES
from preflight.facts.hangs import Stack
from preflight.facts.process import ProcessLook
from preflight.model import Missing

#: What stands in a frame -> what the thread is at; the first row that any frame fits.
_AT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("save", SAVES),
    ("data", LOADERS),
    ("communication", COLLECTIVES),
)
_BACKWARD = "_engine_run_backward ("
#: Fewer stacks of one rank tell too little.
ENOUGH = 4


class At(Struct, frozen=True):
    """Of the samples of a rank's first thread: shares, 0 to 1. `waits`: for others, in a collective
    or idle under a backward pass. `still`: all samples are the same stack."""

    samples: int
    shares: dict[str, float]
    waits: float
    still: bool
    line: int
    frame: str  # of the user's own code, the most frequent
    inline: bool  # it loads data itself


def at_of(process: ProcessLook) -> At | None:
    """None where there are no stacks, or too few."""
    if isinstance(process.stacks, Missing):
        return None
    main = [one for one in process.stacks if one.main and one.frames]
    if len(main) < ENOUGH:
        return None
    kinds = [_kind(one) for one in main]
    count = Counter(kinds)
    waits = sum(_waits(one, kind) for one, kind in zip(main, kinds, strict=True))
    common = Counter(_own(one) for one in main).most_common(1)[0][0]
    first = next(one for one in main if _own(one) == common)
    return At(
        len(main), {kind: n / len(main) for kind, n in count.items()}, waits / len(main),
        len({one.frames for one in main}) == 1, first.line, common,
        any("_SingleProcessDataLoaderIter" in f for one in main for f in one.frames),
    )  # fmt: skip


def _kind(stack: Stack) -> str:
    for kind, marks in _AT:
        if any(mark in frame for frame in stack.frames for mark in marks):
            return kind
    return "backward" if any(_BACKWARD in frame for frame in stack.frames) else "other"


def _waits(stack: Stack, kind: str) -> bool:
    return kind == "communication" or (kind == "backward" and stack.state == "idle")


#: Frames of libraries, which do not name the place in the user's program.
_LIBRARIES = ("/site-packages/", "/lib/python", "<frozen", "/dist-packages/")


def _own(stack: Stack) -> str:
    own = [one for one in stack.frames if not any(mark in one for mark in _LIBRARIES)]
    return (own or list(stack.frames))[0]
