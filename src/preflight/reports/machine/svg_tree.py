"""The tree of a machine, drawn from left to right: socket, root port, switch, device."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from preflight.expect.pcie import link_gbps
from preflight.model import Map, MapNode
from preflight.nodesets import fold
from preflight.reports.machine.tree import named
from preflight.reports.svg_shapes import (
    FAINT,
    FAULT,
    INK,
    WIDTH,
    Shape,
    box,
    fitted,
    letters,
    path,
    text,
)

_ROW, _BOX, _GAP = 30.0, 22.0, 14.0
_INDENT, _LINK_ROOM = 150.0, 104.0
#: A device's box, and the room of what stands behind it.
_DEVICE = 330.0
_FILLS = {
    "numa": "#f6f8fa", "root": "#eaeef2", "switch": "#e6e0f3", "bridge": "#eaeef2",
    "gpu": "#d8efd3", "nvswitch": "#c4e5bb", "nic": "#d6e6fa", "nvme": "#fbeccb",
}  # fmt: skip
_NVLINK = "#3f8f2f"
_SPEEDS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
_LINK = re.compile(r"gen(\d) x(\d+)")
#: The width of a line by the link's GB/s: gen5 x16, 63 GB/s, is the widest.
_THINNEST, _WIDEST, _MOST_GBPS = 1.0, 6.0, 63.0


class _Place(Struct):
    """A part where it is drawn: its box begins at (x, y); rows are counted from the top."""

    node: MapNode
    depth: int
    y: float
    below: list[_Place] = field(default_factory=list)


def tree(map_: Map, left: float, top: float) -> Iterator[Shape]:
    """A box for each socket with all that hangs on it, then the NVLink domains beside the GPUs."""
    y, found = top, list[_Place]()
    deepest = max((_depth(each) for node in map_.nodes for each in node.below), default=1)
    device_x = left + 14 + (deepest - 1) * (_INDENT + _LINK_ROOM) + _LINK_ROOM
    right = device_x + _DEVICE
    for node in map_.nodes:
        socket_top = y
        y += 30
        places = []
        for each in node.below:
            place, y = _placed(each, 1, y)
            places.append(place)
        height = max(y - socket_top, 34.0)
        yield box(left, socket_top, right + 16 - left, height, fill=_FILLS["numa"])
        title = f"{node.name}: {node.label}" if node.label else node.name
        yield text(left + 12, socket_top + 19, title, weight="bold")
        for place in places:
            yield from _drawn(place, None, left + 14, device_x)
        found += places
        y = socket_top + height + _GAP
    yield from _domains(map_, [each for place in found for each in _leaves(place)], right)


def _depth(node: MapNode) -> int:
    return 1 + max((_depth(each) for each in node.below), default=0)


def _placed(node: MapNode, depth: int, y: float) -> tuple[_Place, float]:
    """The part with its place, and where the next one begins."""
    place, top = _Place(node, depth, y), y
    for each in node.below:
        below, y = _placed(each, depth + 1, y)
        place.below.append(below)
    if not node.below:
        return place, y + _ROW
    place.y = (place.below[0].y + place.below[-1].y) / 2
    return place, max(y, top + _ROW)


def _leaves(place: _Place) -> Iterator[_Place]:
    if not place.below:
        yield place
    for each in place.below:
        yield from _leaves(each)


def _drawn(
    place: _Place, above: tuple[float, float] | None, left: float, device_x: float
) -> Iterator[Shape]:
    node, leaf = place.node, not place.below
    x = device_x if leaf else left + (place.depth - 1) * (_INDENT + _LINK_ROOM)
    width = _DEVICE if leaf else _INDENT
    middle = place.y + _BOX / 2
    if above:
        yield from _link(node, above, (x, middle))
    yield box(
        x, place.y, width, _BOX, fill=_FILLS.get(node.kind, "#ffffff"),
        stroke=FAULT if node.fault else INK, thick=2 if node.fault else 1,
    )  # fmt: skip
    yield from _written(node, x, place.y, width, leaf, linked=above is not None)
    for each in place.below:
        yield from _drawn(each, (x + width, middle), left, device_x)


def _written(
    node: MapNode, x: float, y: float, width: float, leaf: bool, *, linked: bool
) -> Iterator[Shape]:
    """The name in its box, and the label where there is room: beside it or below."""
    name = fitted(named(node), width - 12, 11)
    yield text(x + 6, y + 15, name, size=11, weight="bold" if leaf else "normal")
    used = letters(name, 11, bold=leaf) + 14
    if leaf and node.label and width - used > 40:
        yield text(x + used, y + 15, fitted(node.label, width - used - 4, 10), size=10)
    elif node.label:
        yield text(x, y + _BOX + 11, fitted(node.label, width, 9), size=9, fill=FAINT)
    if node.fault and not linked:
        yield text(x + 6, y - 3, f"! {node.fault}", size=10, fill=FAULT, weight="bold")


def _link(node: MapNode, start: tuple[float, float], end: tuple[float, float]) -> Iterator[Shape]:
    """The line above a part, as wide as its rate, with its name; a fault in red with a mark."""
    bend = start[0] + 12
    colour = FAULT if node.fault else FAINT
    thick = _thickness(node.link)
    yield path([start, (bend, start[1]), (bend, end[1])], stroke=FAINT, thick=thick)
    yield path([(bend, end[1]), end], stroke=colour, thick=thick, dashed=bool(node.fault))
    at, above = bend + 6, end[1] - 5
    if node.link:
        yield text(at, above, node.link, size=9, fill=colour)
    if node.fault:
        yield text(at, end[1] + 13, f"! {node.fault}", size=10, fill=FAULT, weight="bold")


def _thickness(link: str) -> float:
    match = _LINK.match(link)
    if match is None or int(match[1]) not in _SPEEDS:
        return _THINNEST
    share = min(link_gbps(_SPEEDS[int(match[1])], int(match[2])) / _MOST_GBPS, 1.0)
    return round(_THINNEST + share * (_WIDEST - _THINNEST), 1)


def _domains(map_: Map, leaves: Sequence[_Place], right: float) -> Iterator[Shape]:
    """A band beside the GPUs of each domain, with a line to each of them."""
    x = right + 34
    for domain in map_.domains:
        ys = [each.y + _BOX / 2 for each in leaves if each.node.name in domain]
        if not ys:
            continue
        top, bottom = min(ys) - _BOX / 2, max(ys) + _BOX / 2
        for y in ys:
            yield path([(right, y), (x, y)], stroke=_NVLINK, thick=4)
        yield box(x, top, 26, bottom - top, fill="#d8efd3", stroke=_NVLINK, thick=2)
        words = " ".join(filter(None, ("NVLink", _bond(map_, domain))))
        told = [words, fold(domain)]
        for at, line in enumerate(told):
            yield text(x + 34, (top + bottom) / 2 + 14 * at, fitted(line, WIDTH, 11), size=11)
        x += 40 + max(letters(line, 11) for line in told)


def _bond(map_: Map, domain: Sequence[str]) -> str:
    """NV18, where all pairs have it; else the range: NV1 to NV2."""
    if map_.table is None:
        return ""
    at = {name: number for number, name in enumerate(map_.table.names)}
    inside = [at[name] for name in domain if name in at]
    cells = {map_.table.cells[a][b] for a in inside for b in inside if a != b}
    numbers = sorted(int(cell[2:]) for cell in cells if cell[:2] == "NV" and cell[2:].isdecimal())
    if not numbers:
        return ""
    low, high = numbers[0], numbers[-1]
    return f"NV{low}" if low == high else f"NV{low} to NV{high}"
