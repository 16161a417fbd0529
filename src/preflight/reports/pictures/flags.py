"""Marks along a series: a line at each, and as many of their words as have room above."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from preflight.reports.pictures.axis import Axis, drawable
from preflight.reports.pictures.words import wide, word
from preflight.reports.svg_shapes import FAINT, FAULT, Shape
from preflight.units import number

#: `trouble`: something goes wrong from here on; `checkpoint`: what a run can go on from.
Kind = Literal["trouble", "event", "checkpoint"]
_LANES, LANE, _SIZE = 5, 13.0, 9.0
#: A word has so much room, and its like stand so far from each other.
_ROOM, _APART = 190.0, 130.0
_COLOURS: dict[Kind, str] = {"trouble": FAULT, "event": FAINT, "checkpoint": "#1a6dae"}
_DASHES: dict[Kind, str] = {"trouble": "", "event": "6 3", "checkpoint": "1.5 3"}
_LINES: dict[Kind, str] = {"trouble": "solid", "event": "dashed", "checkpoint": "dotted"}
#: A label that comes more often waits until the others have their room.
_SELDOM = 8
#: Labels that are told below.
_TOLD = 10


#: What a mark is by its words; others are events.
_SAVED = ("save", "checkpoint")
_TROUBLE = ("shift", "drift", "spike", "jump", "diverg", "finite", "loss-", "frozen",
            "at-chance", "oscillation", "gradient-growth")  # fmt: skip


def kind_of(label: str) -> Kind:
    """Of the words of a mark."""
    if label.startswith(_SAVED):
        return "checkpoint"
    return "trouble" if any(word in label.lower() for word in _TROUBLE) else "event"


class Flag(Struct, frozen=True):
    """A mark at a place of the axis."""

    at: float
    label: str
    kind: Kind = "event"


class Placed(Struct, frozen=True):
    """A flag whose word stands in a lane; 0 is nearest to the chart. `left`, `right`: its room."""

    flag: Flag
    lane: int
    x: float
    left: float
    right: float


def within(flags: Sequence[Flag], axis: Axis) -> list[Flag]:
    """Those that have a place on the axis, each once."""
    known = (one for one in flags if drawable(one.at) and axis.low <= one.at <= axis.high)
    return list(dict.fromkeys(known))


def placed(flags: Sequence[Flag], axis: Axis) -> list[Placed]:
    """Those whose words have room: what comes seldom first, then checkpoints and the like. No word
    lies on another, nor on the line from a word down to the chart: so those to the right have the
    lower lanes."""
    counts = Counter(one.label for one in flags)
    often = {one.label for one in flags if one.kind == "checkpoint" or counts[one.label] > _SELDOM}
    order = sorted(flags, key=lambda one: (one.label in often, -one.at))
    found: list[Placed] = []
    labelled: dict[str, list[float]] = {}
    for flag in order:
        x = axis.place(flag.at)
        like = labelled.setdefault(flag.label, [])
        if len(like) > 40 or any(abs(x - other) < _APART for other in like):
            continue
        one = _lane(flag, x, axis, found)
        if one is not None:
            found.append(one)
            like.append(x)
    return found


def _lane(flag: Flag, x: float, axis: Axis, found: Sequence[Placed]) -> Placed | None:
    room = min(wide(told(flag), _SIZE), _ROOM) + 8
    for left in (x, x - room):  # to the right of its line, or to the left
        if left < axis.begin - 70 or left + room > axis.end + 10:
            continue
        for lane in range(_LANES):
            one = Placed(flag, lane, x, left, left + room)
            if not any(_collide(one, other) for other in found):
                return one
    return None


def _collide(one: Placed, other: Placed) -> bool:
    if one.lane == other.lane:
        return one.left < other.right and other.left < one.right
    low, high = sorted((one, other), key=lambda each: each.lane)
    return low.left - 2 < high.x < low.right + 2  # the line of the higher one goes through it


def told(flag: Flag) -> str:
    """save 1,200."""
    at = int(flag.at) if flag.at == int(flag.at) else flag.at
    return f"{flag.label} {number(at)}"


def height(found: Sequence[Placed]) -> float:
    """What the words take above the chart."""
    return LANE * (1 + max((one.lane for one in found), default=-1))


def words(found: Sequence[Placed], bottom: float) -> Iterator[Shape]:
    """The words above `bottom`, each with a line down to it."""
    for one in found:
        y = bottom - LANE * one.lane - 4
        colour = _COLOURS[one.flag.kind]
        yield line(round(one.x), y - 8, bottom, one.flag.kind)
        x, anchor = (one.x + 4, "start") if one.left >= one.x else (one.x - 4, "end")
        yield word(x, y, told(one.flag), size=_SIZE, fill=colour, anchor=anchor, room=_ROOM)


def lines(flags: Sequence[Flag], axis: Axis, top: float, bottom: float) -> Iterator[Shape]:
    """A line for each; those on one point are one."""
    seen = dict.fromkeys((round(axis.place(one.at)), one.kind) for one in flags)
    for x, kind in seen:
        yield line(x, top, bottom, kind)


def line(x: float, top: float, bottom: float, kind: Kind) -> Shape:
    dashes = f' stroke-dasharray="{_DASHES[kind]}"' if _DASHES[kind] else ""
    markup = (
        f'<path d="M{x:g} {top:g}V{bottom:g}" fill="none" stroke="{_COLOURS[kind]}" '
        f'stroke-width="1"{dashes}/>'
    )
    return Shape(markup, x, bottom)


def summary(flags: Sequence[Flag], found: Sequence[Placed], beyond: int) -> str:
    """What the lines are, and how many: words may lack for want of room."""
    counts = Counter((one.label, one.kind) for one in flags)
    listed = [f"{label} ({count:,}, {_LINES[kind]})" for (label, kind), count in
              counts.most_common(_TOLD)]  # fmt: skip
    more = len(counts) - _TOLD
    listed += [f"{more:,} other words"] if more > 0 else []
    wordless = len(flags) - len(found)
    listed += [f"{wordless:,} without their words, for lack of room"] if wordless else []
    listed += [f"{beyond:,} beyond what is drawn"] if beyond else []
    return f"marks: {', '.join(listed)}" if listed else ""
