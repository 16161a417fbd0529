"""Hosts by domains: which hosts are alike, and where it is that they are not well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from preflight.model import SEVERITY, HostReport, Report, Result, Status
from preflight.nodesets import fold
from preflight.printable import printable
from preflight.reports.blocks import STYLES, View
from preflight.reports.layout import Line, Span, cells, cropped, flow, padded
from preflight.reports.silent import answered, machines, unverified
from preflight.reports.wording import DOMAINS, plural
from preflight.verdict import named

#: Rows that a person reads at a glance; the others with -v.
_ROWS = 12
#: Columns of a row's name; longer ones are counted.
_NAME_COLUMNS = 34
_HEAD_COLUMNS = 10
_WORDS = {Status.ERROR: "ERR", Status.SKIP: "-"}
_SEVERITY = {status: at for at, status in enumerate(SEVERITY)}

Marks = dict[str, Status]


class Row(Struct):
    """Hosts with one status in every domain; without `marks` they gave no answer. SKIP is the
    mark of a domain in which nothing was verified."""

    hosts: list[str]
    marks: Marks


def matrix(report: Report, view: View) -> Iterator[Line]:
    """Of several hosts a line for each kind of them, the worst first."""
    rows = kinds(report)
    if sum(len(row.hosts) for row in rows) < 2:
        return
    shown = rows[:_ROWS] if len(rows) > _ROWS + 1 and not view.verbose else rows
    names = [_name(row, row is rows[-1], view) for row in shown]
    broad = max(map(cells, names))
    columns = _chosen(rows, view.width - broad)
    quiet = [name for name in order(rows) if name not in columns]
    for band in _bands(columns, view.width - broad):
        yield from _band(band, shown, names, broad)
    for text in (_left(rows[len(shown) :]), *_told_of(quiet, rows)):
        if text:
            yield from flow([], [Span(text, "dim")], hang=2, width=view.width)


def _left(rows: Sequence[Row]) -> str:
    hosts = sum(len(row.hosts) for row in rows)
    return f"and {len(rows):,} more kinds, {plural(hosts, 'host')} (-v lists them)" if rows else ""


def _told_of(quiet: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """What columns that were left out would have shown."""
    seen = [name for name in quiet if any(row.marks.get(name) is Status.PASS for row in rows)]
    unseen = [name for name in quiet if name not in seen]
    if seen:
        yield f"nothing wrong was found in {', '.join(seen)}"
    if unseen:
        yield f"nothing was judged in {', '.join(unseen)}"


def kinds(report: Report) -> list[Row]:
    """Hosts that are alike in all domains as one row, the worst first, then the fewest."""
    domains: dict[str, str] = {}  # of a check: told once for a million results
    over_all = named(report.fleet, {host.host for host in report.hosts}, SEVERITY)
    alike: dict[tuple[tuple[str, Status], ...], Row] = {}
    for host in machines(report.hosts):
        marks = _marks(host, domains)
        if answered(host):
            _add_compared(marks, host, over_all.get(host.host, ()))
        row = alike.setdefault(tuple(sorted(marks.items())), Row([], marks))
        row.hosts.append(host.host)
    return sorted(alike.values(), key=_urgency)


def _urgency(row: Row) -> tuple[int, int, int]:
    if not row.marks:
        return _SEVERITY[Status.ERROR], -len(DOMAINS), len(row.hosts)
    found = [_SEVERITY[status] for status in row.marks.values()]
    worst = min(found)
    return worst, -found.count(worst) if worst < _SEVERITY[Status.PASS] else 0, len(row.hosts)


def _marks(host: HostReport, domains: dict[str, str]) -> Marks:
    marks: Marks = {}
    for result in host.results:
        name = domains.get(result.check) or domains.setdefault(
            result.check, result.check.partition(".")[0]
        )
        status = result.status
        if marks.get(name) is not status:
            marks[name] = _worse(marks.get(name), status)
    return marks


def _worse(one: Status | None, other: Status) -> Status:
    return other if one is None or _SEVERITY[other] < _SEVERITY[one] else one


def _add_compared(marks: Marks, host: HostReport, over_all: Iterable[Result]) -> None:
    """What the comparisons say of it; that the others are alike is nothing verified of it."""
    unseen = bool(host.results) and unverified(host)
    for result in over_all:
        if not (unseen and result.status is Status.PASS):
            name = result.check.partition(".")[0]
            marks[name] = _worse(marks.get(name), result.status)
    if not marks:  # its verdict holds whether it was compared
        marks["fleet"] = host.verdict


def order(rows: Iterable[Row]) -> list[str]:
    """The domains that any row has, as a person looks for them."""
    places = {name: at for at, name in enumerate(DOMAINS)}
    found = dict.fromkeys(name for row in rows for name in row.marks)
    return sorted(found, key=lambda name: (places.get(name, len(places)), name))


def _chosen(rows: Sequence[Row], room: int) -> list[str]:
    """The columns; where they do not fit without those that say nothing, then without those in
    which nothing is wrong. All of them where nothing else would be left."""
    columns = order(rows)
    for telling in (_SEVERITY[Status.PASS], _SEVERITY[Status.WARN]):
        if _columns_wide(columns) > room:
            kept = [name for name in columns if _worst_in(name, rows) <= telling]
            columns = kept or columns
    return columns


def _worst_in(name: str, rows: Sequence[Row]) -> int:
    return min(_SEVERITY[row.marks.get(name, Status.SKIP)] for row in rows)


def _name(row: Row, last: bool, view: View) -> str:
    most = min(_NAME_COLUMNS, view.width // 2)
    names = printable(fold(row.hosts))
    if cells(names) <= most:
        return names
    if len(row.hosts) > 1:
        return f"{'the other ' if last else ''}{plural(len(row.hosts), 'host')}"
    return cropped(names, most)


def _head(name: str) -> str:
    return cropped(printable(name), _HEAD_COLUMNS)


def _wide(name: str) -> int:
    return max(cells(_head(name)), len("PASS")) + 2


def _columns_wide(names: Iterable[str]) -> int:
    return sum(map(_wide, names))


def _bands(names: Sequence[str], room: int) -> Iterator[list[str]]:
    """The columns in as few parts as fit; at least one in each."""
    band: list[str] = []
    for name in names:
        if band and _columns_wide([*band, name]) > room:
            yield band
            band = []
        band.append(name)
    yield band


def _band(
    columns: Sequence[str], rows: Sequence[Row], names: Sequence[str], broad: int
) -> Iterator[Line]:
    head = "".join(f"  {padded(_head(name), _wide(name) - 2)}" for name in columns)
    yield (Span(" " * broad), Span(head.rstrip(), "dim"))
    for row, name in zip(rows, names, strict=True):
        marks = [*_cells(row, columns)]
        marks[-1:] = [Span(span.text.rstrip(), span.style) for span in marks[-1:]]
        yield (Span(padded(name, broad)), *marks)


def _cells(row: Row, columns: Sequence[str]) -> Iterator[Span]:
    if not row.marks:
        yield Span("  gave no answer", "error")
        return
    for column in columns:
        status = row.marks.get(column, Status.SKIP)
        word = _WORDS.get(status, status.value)
        yield Span(f"  {word:<{_wide(column) - 2}}", STYLES[status])
