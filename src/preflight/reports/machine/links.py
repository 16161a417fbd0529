"""The table of links as lines: in few words where all are alike, else as tables that fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from preflight.model import LinkTable, Map, MapNode
from preflight.nodesets import fold
from preflight.printable import printable
from preflight.reports.layout import Line, Span, cells, flow, padded
from preflight.reports.machine.tree import ADDRESS
from preflight.reports.wording import plural

#: What the words say, best first (nvidia-smi topo, its legend).
_LEGEND = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "a host bridge",
    "NODE": "within a NUMA node",
    "SYS": "between NUMA nodes",
    "?": "not known",
}
_NUMBERED = re.compile(r"([^:]*?)(\d+)")
_NVLINKS = re.compile(r"NV\d+")


class _Grid(Struct, frozen=True):
    """Some rows of the table by some of its columns."""

    what: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def link_lines(map_: Map, *, width: int, verbose: int = 0) -> Iterator[Line]:
    """Between GPUs, from GPUs to adapters, with `verbose` between adapters; then what the words
    mean."""
    table = map_.table
    if table is None:
        yield from _domains(map_, width)
        return
    yield from _domains(map_, width)
    if not verbose and any(map(ADDRESS.fullmatch, table.names)):
        return  # without a driver there is only the way on PCI: the tree has told it
    at = {name: number for number, name in enumerate(table.names)}
    gpus = gpu_names(map_, table)
    nics = tuple(name for name in table.names if name not in gpus)
    grids = [_Grid("GPU to GPU", gpus, gpus), _Grid("GPU to NIC", gpus, nics)]
    if verbose or not gpus:
        grids.append(_Grid("NIC to NIC", nics, nics))
    seen: dict[str, None] = {}
    for grid in grids:
        cells_ = [[table.cells[at[a]][at[b]] for b in grid.columns] for a in grid.rows]
        told = {cell for row in cells_ for cell in row} - {"X"}
        if told:
            seen |= dict.fromkeys(told)
            yield from _shown(grid, cells_, told, width, verbose)
    yield from _legend(list(seen), width)


def gpu_names(map_: Map, table: LinkTable) -> tuple[str, ...]:
    """Those of the table that are GPUs."""
    kinds = {node.name: node.kind for node in _every(map_.nodes)}
    return tuple(name for name in table.names if name.startswith("gpu") or kinds.get(name) == "gpu")


def _every(nodes: Sequence[MapNode]) -> Iterator[MapNode]:
    for node in nodes:
        yield node
        yield from _every(node.below)


def _domains(map_: Map, width: int) -> Iterator[Line]:
    if map_.domains:
        told = "; ".join(fold(each) for each in map_.domains)
        word = "NVLink domain" if len(map_.domains) == 1 else "NVLink domains"
        yield from flow([], [Span(f"{word}: {told}")], hang=2, width=width)


def _shown(
    grid: _Grid, told: list[list[str]], kinds: set[str], width: int, verbose: int
) -> Iterator[Line]:
    if len(kinds) == 1 and not verbose:
        one = "from" if len(grid.rows) == 1 else "from every one of"
        pairs = "every pair of" if grid.rows == grid.columns else one
        to = "" if grid.rows == grid.columns else f" to {fold(grid.columns)}"
        text = f"{grid.what}: {next(iter(kinds))}, {pairs} {fold(grid.rows)}{to}"
        yield from flow([], [Span(text)], hang=2, width=width)
        return
    heads, said = _heads(grid.columns)
    yield from flow([], [Span(f"{grid.what}{said}")], hang=2, width=width)
    rows = _folded(grid, told) if not verbose else list(zip(grid.rows, told, strict=True))
    broad = max(cells(name) for name, _ in rows)
    cell = max(max(map(len, heads)), *(len(each) for row in told for each in row)) + 1
    room = max((width - broad - 2) // cell, 1)
    for first in range(0, len(heads), room):
        part = slice(first, first + room)
        yield (Span(" " * (broad + 2) + "".join(f"{head:>{cell}}" for head in heads[part]), "dim"),)
        for name, row in rows:
            text = "".join(f"{_cell(each):>{cell}}" for each in row[part])
            yield (Span(f"  {padded(name, broad)}"), Span(text))


def _cell(text: str) -> str:
    return "-" if text == "X" else printable(text)


def _heads(names: Sequence[str]) -> tuple[list[str], str]:
    """Heads of columns that are short, and what they stand for: numbers where nothing else
    differs."""
    found = [_NUMBERED.fullmatch(name) for name in names]
    stems = {match[1] for match in found if match}
    if all(found) and len(stems) == 1:
        said = f", by the number of {printable(stems.pop())}N"
        return [match[2] for match in found if match], said
    heads = [f"n{number}" for number in range(len(names))]
    told = (f"{head} {printable(name)}" for head, name in zip(heads, names, strict=True))
    return heads, f": {', '.join(told)}"


def _folded(grid: _Grid, told: list[list[str]]) -> list[tuple[str, list[str]]]:
    """Rows that are equal under one name."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, row in zip(grid.rows, told, strict=True):
        alike.setdefault(tuple(row), []).append(name)
    return [(fold(names), list(row)) for row, names in alike.items()]


def _legend(seen: Sequence[str], width: int) -> Iterator[Line]:
    bonds = [cell for cell in seen if _NVLINKS.fullmatch(cell)]
    told = [f"{cell}: {plural(int(cell[2:]), 'NVLink')}" for cell in bonds[:1]]
    told += [f"{word}: {text}" for word, text in _LEGEND.items() if word in seen]
    if told:
        yield from flow([], [Span("; ".join(told), "dim")], hang=2, width=width)
