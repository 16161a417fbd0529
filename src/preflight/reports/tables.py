"""Measured tables in text: aligned where they fit, else row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from preflight.printable import printable
from preflight.reports.blocks import View
from preflight.reports.layout import Line, Span, cells, flow
from preflight.reports.wording import value


def measurement(table: dict[str, Any], view: View) -> Iterator[Line]:
    """One entry of `measurements`: its name, its host, its rows."""
    name = " on ".join(_cell(table[key]) for key in ("table", "host") if table.get(key))
    yield from flow([], [Span(name, "bold")], hang=2, width=view.width)
    rows = [row for row in table.get("rows") or () if isinstance(row, dict)]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    grid = [columns, *([_cell(row.get(column)) for column in columns] for row in rows)]
    widths = [max(cells(row[at]) for row in grid) for at in range(len(columns))]
    if sum(widths) + 2 * len(widths) <= view.width:
        texts = [any(isinstance(row.get(column), str) for row in rows) for column in columns]
        yield from _aligned(grid, widths, texts)
        return
    for row in grid[1:]:
        text = ", ".join(f"{column} {told}" for column, told in zip(columns, row, strict=True))
        yield from flow([Span("  ")], [Span(text)], hang=4, width=view.width)


def _cell(told: Any) -> str:
    plain = isinstance(told, (bool, int, float, str)) or told is None
    return printable(value(told) if plain else str(told))


def _aligned(
    grid: Sequence[Sequence[str]], widths: Sequence[int], texts: Sequence[bool]
) -> Iterator[Line]:
    """Numbers end below each other, texts begin there."""
    for at, row in enumerate(grid):
        found = [
            f"  {told}{' ' * (width - cells(told))}"
            if is_text
            else f"  {' ' * (width - cells(told))}{told}"
            for told, width, is_text in zip(row, widths, texts, strict=True)
        ]
        yield (Span("".join(found).rstrip(), "" if at else "dim"),)
