"""The map of heat as squares: the slower a pair, the redder; its share stands in each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from preflight.model import Report
from preflight.printable import printable
from preflight.reports.heat import Heat, chosen, heat_of, legend
from preflight.reports.machine.svg_grid import head
from preflight.reports.svg_shapes import (
    FAINT,
    FAULT,
    INK,
    WIDTH,
    Shape,
    box,
    fitted,
    letters,
    text,
)

#: From so much of the healthy level on, the fill; colour is only an aid to the number.
_FILLS = (
    (0.95, "#ffffff"), (0.90, "#fff1e0"), (0.80, "#fddbb4"), (0.70, "#f9b983"), (0.50, "#f08a5d"),
    (0.0, "#d9534f"),
)  # fmt: skip
_LARGEST, _SMALLEST = 34.0, 18.0
#: Hosts that one map shows.
_MOST = 64


def heats(report: Report) -> list[tuple[str, Heat]]:
    """The maps of a report, each with its title."""
    told = ((str(table.get("table", "")), heat_of(table)) for table in report.measurements)
    return [(title, heat) for title, heat in told if heat]


def heat_map(title: str, heat: Heat, left: float, top: float) -> Iterator[Shape]:
    """One map below `top`."""
    yield text(left, top + 16, title, size=18, weight="bold")
    hosts = chosen(heat, _MOST)
    broad = max(letters(fitted(heat.hosts[at], 160, 10), 10) for at in hosts) + 16
    side = max(min((WIDTH - left - broad) / len(hosts), _LARGEST), _SMALLEST)
    y = top + 110
    for column, at in enumerate(hosts):
        yield head(left + broad + side * (column + 0.5), y - 5, heat.hosts[at], _ink(heat, at))
    for a in hosts:
        name = fitted(heat.hosts[a], 160, 10)
        weight = "bold" if heat.is_culprit(a) else "normal"
        yield text(left + broad - 6, y + 14, name, size=10, anchor="end", fill=_ink(heat, a),
                   weight=weight)  # fmt: skip
        for column, b in enumerate(hosts):
            yield from _square(heat, a, b, left + broad + side * column, y, side)
        y += 20
    for line in _below(heat, hosts, int((WIDTH - left) / letters("n", 11))):
        y += 16
        yield text(left, y, line, size=11, fill=FAINT)


def _below(heat: Heat, hosts: Sequence[int], most: int) -> Iterator[str]:
    """What the squares mean, in lines that fit."""
    first, *rest = legend(heat, hosts)
    first = f"{first.partition(':')[0]}, in percent; ? not measured; red: found slow"
    for line in (first, *rest):
        yield from textwrap.wrap(printable(line), most)


def _square(heat: Heat, a: int, b: int, x: float, y: float, side: float) -> Iterator[Shape]:
    share = heat.share(a, b)
    guilty = a != b and heat.is_culprit(a, b)
    stroke, thick = (FAULT, 2.0) if guilty else ("#d0d7de", 1.0)
    yield box(x, y, side, 20, fill=_fill(share), stroke=stroke, thick=thick)
    told = "-" if a == b else "?" if share is None else f"{100 * share:.0f}"
    yield text(x + side / 2, y + 13.5, told, size=8, anchor="middle", mono=True)


def _fill(share: float | None) -> str:
    if share is None:
        return "#f6f8fa"
    return next(fill for least, fill in _FILLS if share >= least or least == 0.0)


def _ink(heat: Heat, at: int) -> str:
    return FAULT if heat.is_culprit(at) else INK
