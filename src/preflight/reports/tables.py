"""Measured tables in text: aligned where they fit, else with a broken last column, else row by
row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from preflight.printable import printable
from preflight.reports.blocks import View
from preflight.reports.heat import heat_of
from preflight.reports.heat_text import heat_lines
from preflight.reports.layout import Line, Span, cells, flow
from preflight.reports.wording import value
from preflight.units import number

#: A last column of text is broken where it has this room.
_LEAST_TEXT = 30
#: 100,000 and more.
_LARGE, _MILLION = re.compile(r"-?\d{3},\d{3}|-?\d{1,3}(,\d{3}){2,}"), 999_500


def gridded(table: dict[str, Any]) -> tuple[str, list[str], list[list[str]]]:
    """One entry of `measurements` as it is shown: its name with its host, columns, rows."""
    name = " on ".join(_cell(table[key]) for key in ("table", "host") if table.get(key))
    rows = _rows(table)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return name, columns, [[_cell(row.get(column)) for column in columns] for row in rows]


def measurement(table: dict[str, Any], view: View) -> Iterator[Line]:
    """One entry of `measurements`: its name, its host, its rows."""
    name, columns, grid = gridded(table)
    yield from flow([], [Span(name, "bold")], hang=2, width=view.width)
    if (heat := heat_of(table)) is not None:
        yield from heat_lines(heat, view.width)
        return
    yield from _told(above(table), view)
    rows = _rows(table)
    if _too_wide(columns, grid, view.width):
        grid = [list(map(_in_short, line)) for line in grid]
    widths = [max(map(cells, column)) for column in zip(columns, *grid, strict=True)]
    texts = [any(isinstance(row.get(column), str) for row in rows) for column in columns]
    before = sum(widths[:-1]) + 2 * len(widths)
    fits = before + sum(widths[-1:]) <= view.width
    if fits or (texts and texts[-1] and view.width - before >= _LEAST_TEXT):
        for line in _aligned([columns, *grid], widths, texts):
            yield from [line] if fits else _broken(line, before, view.width)
    else:
        for row in grid:
            text = ", ".join(f"{column} {told}" for column, told in zip(columns, row, strict=True))
            yield from flow([Span("  ")], [Span(text)], hang=4, width=view.width)
    yield from _told(notes(table), view)


def _too_wide(columns: Sequence[str], grid: Sequence[Sequence[str]], width: int) -> bool:
    taken = (2 + max(map(cells, column)) for column in zip(columns, *grid, strict=True))
    return sum(taken) > width


def _in_short(told: str) -> str:
    """17.1M for 17,110,000: of so many digits the first three are what is compared."""
    if not _LARGE.fullmatch(told):
        return told
    count = float(told.replace(",", ""))
    power = 2 if count >= _MILLION else 1
    return f"{number(count / 1000**power)}{' kM'[power]}"


def _told(texts: Sequence[str], view: View) -> Iterator[Line]:
    for said in texts:
        yield from flow([Span("  ")], [Span(said)], hang=4, width=view.width, advice=True)


def above(table: dict[str, Any]) -> list[str]:
    """What is said above the rows: how far they can be relied on."""
    return [printable(str(one)) for one in table.get("above") or ()]


def notes(table: dict[str, Any]) -> list[str]:
    """What is said below the rows."""
    return [printable(str(one)) for one in table.get("notes") or ()]


def _rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in table.get("rows") or () if isinstance(row, dict)]


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


def _broken(line: Line, before: int, width: int) -> Iterator[Line]:
    """The last column goes on below itself; `before`: columns of the terminal in front of it."""
    [(text, style)] = line
    head, rest = _at(text, before)
    return flow([Span(head, style)], [Span(rest, style)], hang=before, width=width)


def _at(text: str, columns: int) -> tuple[str, str]:
    """Both parts of a text, the first with so many columns."""
    end, used = 0, 0
    while end < len(text) and used < columns:
        used += cells(text[end])
        end += 1
    return text[:end], text[end:]
