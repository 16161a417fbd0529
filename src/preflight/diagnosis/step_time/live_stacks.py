"""What a rank does, by the stacks of its first thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from preflight.diagnosis.frames import COLLECTIVES, LOADERS, SAVES
from preflight.facts.hangs import Stack
from preflight.facts.process import ProcessLook
from preflight.model import Known, Missing

#: What stands in a frame -> what the thread is at; the first row that any frame fits.
_AT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("save", SAVES),
    ("data", LOADERS),
    ("communication", COLLECTIVES),
)
_BACKWARD = "_engine_run_backward ("
#: Fewer stacks of one rank tell too little.
ENOUGH = 4


class Place(Struct, frozen=True):
    """Where samples mostly are: the frame of the user's own code, and a line of the raw."""

    frame: str
    line: int


class At(Struct, frozen=True):
    """Of the samples of a rank's first thread: shares, 0 to 1. `waits`: for others, in a collective
    or idle under a backward pass. `still`: all samples are at one place of the
    user's program."""

    samples: int
    shares: dict[str, float]
    waits: float
    still: bool
    line: int
    frame: str  # of the user's own code, the most frequent
    places: dict[str, Place]  # the same of each kind of share
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
    shares = {kind: n / len(main) for kind, n in count.items()}
    places = {kind: _place([one for one, of in zip(main, kinds, strict=True) if of == kind])
              for kind in count}  # fmt: skip
    common = _place(main)
    return At(
        len(main), shares, _waits(shares, process.asleep_percent),
        len({own_frame(one) for one in main}) == 1, common.line, common.frame, places,
        any("_SingleProcessDataLoaderIter" in f for one in main for f in one.frames),
    )  # fmt: skip


def _place(stacks: Sequence[Stack]) -> Place:
    common = Counter(own_frame(one) for one in stacks).most_common(1)[0][0]
    return Place(common, next(one.line for one in stacks if own_frame(one) == common))


def _kind(stack: Stack) -> str:
    if "gc.collect(" in stack.code:
        return "gc"
    for kind, marks in _AT:
        if any(mark in frame for frame in stack.frames for mark in marks):
            return kind
    return "backward" if any(_BACKWARD in frame for frame in stack.frames) else "other"


def _waits(shares: dict[str, float], asleep_percent: Known[float]) -> float:
    """In collectives, and under a backward pass as long as nothing else explains that it sleeps."""
    asleep = 0.0 if isinstance(asleep_percent, Missing) else asleep_percent / 100
    known = sum(shares.get(kind, 0) for kind in ("communication", "data", "save"))
    idle = min(shares.get("backward", 0), max(asleep - known, 0))
    return shares.get("communication", 0) + idle


#: Frames of libraries, which do not name the place in the user's program.
_LIBRARIES = ("/site-packages/", "/lib/python", "<frozen", "/dist-packages/")


def own_frame(stack: Stack) -> str:
    """The innermost frame of the user's program."""
    own = [one for one in stack.frames if not any(mark in one for mark in _LIBRARIES)]
    return (own or list(stack.frames))[0]
