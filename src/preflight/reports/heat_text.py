"""The map of heat in text and Markdown: hosts by hosts, a character for each pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.printable import printable
from preflight.reports.heat import ITSELF, SOUND, Heat, chosen, legend, shown
from preflight.reports.layout import Line, Span, Style, cells, cropped, flow, padded

#: Columns of a row's name; and of a pair.
_NAME_COLUMNS, _CELL = 24, 2
#: So many hosts have their numbers in the cells, where these fit; more have a character.
_NUMBERED = 12
_NUMBER = 7
#: Rows that a person reads at a glance.
_ROWS = 40
_BAD = 0.70


def heat_lines(heat: Heat, width: int) -> Iterator[Line]:
    """The map, at most `width` wide, and below it what it means."""
    broad = min(max(cells(printable(name)) for name in heat.hosts), _NAME_COLUMNS)
    label = len(str(len(heat.hosts)))
    left = 2 + label + 1 + broad + 2
    fits = len(heat.hosts) <= min((width - left) // _NUMBER, _NUMBERED)
    wide = _NUMBER if fits else _CELL
    hosts = chosen(heat, max(min((width - left) // wide, _ROWS), 2))
    for digits in _head(hosts, label, upright=not fits):
        yield (Span(" " * left + "".join(f"{one:>{wide}}" for one in digits), "dim"),)
    for a in hosts:
        mark = "*" if heat.is_culprit(a) else " "
        name = padded(cropped(printable(heat.hosts[a]), broad), broad)
        row = [_cell(heat, a, b, wide, numbers=fits) for b in hosts]
        style: Style = "fail" if heat.is_culprit(a) else ""
        yield (Span(f"  {a + 1:>{label}} {name} {mark}", style), *row)
    for text in legend(heat, hosts):
        yield from flow([Span("  ")], [Span(text)], hang=4, width=width)


def _head(hosts: Sequence[int], label: int, *, upright: bool) -> list[list[str]]:
    """The numbers of the columns, in narrow ones a digit above the other."""
    numbers = [f"{at + 1:>{label}}" for at in hosts]
    return [[number[at] for number in numbers] for at in range(label)] if upright else [numbers]


def _cell(heat: Heat, a: int, b: int, wide: int, *, numbers: bool) -> Span:
    share, told = heat.share(a, b), shown(heat, a, b)
    if numbers and share is not None:
        told = f"{heat.gbps[min(a, b), max(a, b)]:.3g}"
    told = f"*{told}" if a != b and heat.is_culprit(a, b) else told
    return Span(f"{told:>{wide}}", _style(share, told))


def _style(share: float | None, told: str) -> Style:
    if share is None:
        return "dim" if told == ITSELF else "error"
    return "" if share >= SOUND else "warn" if share >= _BAD else "fail"


def heat_rows(heat: Heat, most: int = _ROWS) -> tuple[list[str], list[list[str]], list[str]]:
    """For Markdown: the head, the rows, and what they mean."""
    hosts = chosen(heat, most)
    grid = [[_named(heat, a), *(_told(heat, a, b) for b in hosts)] for a in hosts]
    return ["GB/s", *(_named(heat, b) for b in hosts)], grid, legend_of_shares(heat, hosts)


def legend_of_shares(heat: Heat, hosts: Sequence[int]) -> list[str]:
    """The same with shares in place of characters."""
    first, *rest = legend(heat, hosts)
    return [first.partition(":")[0] + "; * found slow", *rest]


def _named(heat: Heat, a: int) -> str:
    return f"{heat.hosts[a]} *" if heat.is_culprit(a) else heat.hosts[a]


def _told(heat: Heat, a: int, b: int) -> str:
    share = heat.share(a, b)
    if share is None:
        return shown(heat, a, b)
    mark = " *" if heat.is_culprit(a, b) else ""
    return f"{heat.gbps[min(a, b), max(a, b)]:.3g} ({share:.0%}){mark}"
