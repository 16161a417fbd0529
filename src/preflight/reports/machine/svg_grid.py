"""The table of links as squares: the better the path, the darker; its word stands in each."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.model import Map
from preflight.reports.machine.links import gpu_names
from preflight.reports.svg_shapes import FAINT, WIDTH, Shape, box, fitted, letters, text

#: Best first, as PATHS of facts/topology.py; the colour is only an aid to the word.
_SHADES = {
    "NV": "#8fcf80", "PIX": "#9cc7f2", "PXB": "#bcd9f6", "PHB": "#d9e8f8", "NODE": "#eef3f8",
    "SYS": "#ffffff",
}  # fmt: skip
_LARGEST, _SMALLEST = 34.0, 24.0


def grid(map_: Map, left: float, top: float) -> Iterator[Shape]:
    """GPUs by all devices; nothing without a table."""
    table = map_.table
    if table is None:
        return
    rows = gpu_names(map_, table) or table.names
    broad = max(letters(name, 10) for name in rows) + 10
    side = max(min((WIDTH - left - broad) / len(table.names), _LARGEST), _SMALLEST)
    y = top + 46
    for column, name in enumerate(table.names):
        yield head(left + broad + side * (column + 0.5), y - 5, name)
    for name in rows:
        told = table.cells[table.names.index(name)]
        yield text(left + broad - 6, y + 14, name, size=10, anchor="end")
        for column, cell in enumerate(told):
            x = left + broad + side * column
            yield box(x, y, side, 20, fill=_shade(cell), stroke="#d0d7de")
            shown = "-" if cell == "X" else fitted(cell, side, 8)
            yield text(x + side / 2, y + 13.5, shown, size=8, anchor="middle", mono=True)
        y += 20


def head(x: float, y: float, name: str, fill: str = FAINT) -> Shape:
    """A name that leans, so that sixteen fit beside each other."""
    told = text(0, 0, fitted(name, 90, 9), size=9, fill=fill)
    turned = f'<g transform="translate({x:g} {y:g}) rotate(-40)">{told.markup}</g>'
    return Shape(turned, x + 0.77 * told.right, y)


def _shade(cell: str) -> str:
    return _SHADES.get(cell[:2] if cell[:2] == "NV" else cell, "#ffffff")
