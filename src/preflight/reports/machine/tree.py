"""The tree of a machine as lines: what hangs on what, with the link above each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from preflight.model import MapNode
from preflight.printable import printable
from preflight.reports.layout import Line, Span, cells, cropped, padded

#: How what hangs below is joined: a branch, the last one, what runs past, nothing.
ASCII = ("|- ", "`- ", "|  ", "   ")
BOX = ("├─ ", "└─ ", "│  ", "   ")
#: Words before what is called by its address alone.
_WORDS = {
    "gpu": "GPU", "nvswitch": "NVSwitch", "nic": "NIC", "nvme": "NVMe", "switch": "switch",
    "bridge": "bridge",
}  # fmt: skip
#: What is called so has no name by a driver.
ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
#: Of these several that are alike are one line.
_ALIKE = ("nvme", "nvswitch", "other")
_FAULT_MARK = "  <-- "


class _Row(NamedTuple):
    stem: str
    name: str
    label: str
    link: str
    fault: str


def tree(
    nodes: Sequence[MapNode], *, width: int, verbose: int = 0, box: bool = False
) -> Iterator[Line]:
    """A line for each part, none wider than `width`; with `verbose` nothing is put together."""
    marks = BOX if box else ASCII
    rows = [row for node in nodes for row in _rows(node, named(node), "", "", marks, verbose > 0)]
    room = max(width - max(map(_tail, rows), default=0), width // 2)
    broad = min(room, max((_wide(row) for row in rows), default=0))
    for row in rows:
        yield tuple(_spans(row, broad))


def _wide(row: _Row) -> int:
    return cells(row.stem) + cells(row.name) + (2 + cells(row.label) if row.label else 0)


def _tail(row: _Row) -> int:
    """The columns of what stands behind the name and the label."""
    told = (f"  {row.link}" if row.link else "", f"{_FAULT_MARK}{row.fault}" if row.fault else "")
    return sum(map(cells, told))


def _spans(row: _Row, broad: int) -> Iterator[Span]:
    room = broad - cells(row.stem)
    name = cropped(row.name, room)
    left = room - cells(name) - 2
    label = cropped(row.label, left) if left > 6 or cells(row.label) <= left else ""
    text = f"{name}  {label}" if label else name
    more = bool(row.link or row.fault)
    yield Span(row.stem, "dim")
    yield Span(name, "bold" if not row.stem else "")
    rest = padded(text, room)[len(name) :] if more else text[len(name) :]
    yield from [Span(rest)] if rest else []
    if row.link:
        yield Span(f"  {row.link}", "dim")
    if row.fault:
        yield Span(f"{_FAULT_MARK}{row.fault}", "fail")


def _rows(
    node: MapNode, name: str, stem: str, rest: str, marks: Sequence[str], whole: bool
) -> Iterator[_Row]:
    """A part and what is below it. `stem` stands before it, `rest` before what is below."""
    _, last = _chain(node)
    yield _Row(stem, name, printable(last.label), printable(last.link), printable(last.fault))
    below = _together(last.below) if not whole else [(each, 1) for each in last.below]
    names = [_counted(each, alike) for each, alike in below]
    broad = max((cells(name) for name, (each, _) in zip(names, below, strict=True)
                 if not each.below), default=0)  # fmt: skip
    for at, (each, _) in enumerate(below):
        end = at == len(below) - 1
        name = names[at] if each.below else padded(names[at], broad)
        yield from _rows(
            each, name, rest + marks[1 if end else 0], rest + marks[3 if end else 2], marks, whole
        )


def _counted(node: MapNode, count: int) -> str:
    name = " > ".join(_chain(node)[0])
    return f"{count} x {name}" if count > 1 else name


def _chain(node: MapNode) -> tuple[list[str], MapNode]:
    """The names from a part down to the first that branches, and that one."""
    names = [named(node)]
    while node.kind != "numa" and len(node.below) == 1 and not node.fault:
        (only,) = node.below
        if node.link not in ("", only.link):
            break
        node = only
        names.append(named(node))
    return names, node


def named(node: MapNode) -> str:
    """What a part is called: its name, or what it is and where."""
    word = _WORDS.get(node.kind, "") if ADDRESS.fullmatch(node.name) else ""
    return printable(f"{word} {node.name}".strip())


def _together(nodes: Sequence[MapNode]) -> list[tuple[MapNode, int]]:
    """Neighbours that differ in nothing but their names as one, with their number."""
    found: list[tuple[MapNode, int]] = []
    for node in nodes:
        alike = _alike(node)
        if found and alike and _alike(found[-1][0]) == alike:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((node, 1))
    return found


def _alike(node: MapNode) -> tuple[tuple[str, ...], ...]:
    """All but the names, down to the only part at the end; empty where each has a name that counts
    or a fault."""
    told = [(node.kind, node.label, node.link)]
    while len(node.below) == 1:
        node = node.below[0]
        told.append((node.kind, node.label, node.link))
    faulty = bool(node.fault) or bool(node.below)
    return () if faulty or node.kind not in _ALIKE else tuple(told)
