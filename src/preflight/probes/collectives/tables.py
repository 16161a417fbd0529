"""The tables of nccl-tests: which lines are of one run, and what stands in each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from msgspec import Struct, field

from preflight.facts.collectives import Side, SizeRow
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.collectives.labels import Labelled, labelled
from preflight.probes.collectives.troubles import trouble_of

_STARTS = re.compile(r"#\s*Collective test starting:\s+(\w{1,40}?)_perf\b")
_SETTINGS = re.compile(r"#\s*nThreads? \d")
_SETTING = re.compile(r"(minBytes|maxBytes|nGpus|validation):? (\d{1,18})\b")
_RANK = re.compile(
    r"#\s+Rank\s+(?P<rank>\d{1,7})(?:\s+Group\s+\d+)?\s+Pid\s+\d+ on\s+(?P<host>\S{1,255}) "
    r"device\s+(?P<device>\d{1,4}) \[(?P<bus>[^\]]{0,24})\][ \t]{0,9}(?P<product>\S.{0,120})?"
)
_HEADER = re.compile(r"#\s*size\s+count\s+type\b(.{1,300})")
_ROW = re.compile(r"\s*\d{1,18}\s+\d{1,18}\s+[a-z]\w{2,20}\s")
_BOUNDS = re.compile(r"#\s*Out of bounds values\s*:\s*(\d{1,18})\s*(OK|FAILED)?")
_AVERAGE = re.compile(r"#\s*Avg bus bandwidth\s*:\s*([\d.eE+-]{1,24})\s*(OK|FAILED)?")
_NO_SIDE = Missing("not-applicable", "nccl-tests prints N/A: this collective has no such side")
#: -c 0: what it then prints as the number of wrong results is none.
_NOT_CHECKED = Missing("not-asked", "ran without checking the results; all_reduce_perf -c 1 does")


class Run(Struct):
    """One table as it is read. `middle`: what stands between type and times."""

    line: int
    named: str = ""
    settings: dict[str, int] = field(default_factory=dict)
    ranks: dict[int, tuple[str, str]] = field(default_factory=dict)  # rank -> host, product
    first_ranks: int = 0  # processes that say that they are rank 0
    columns: list[str] = field(default_factory=list)
    middle: list[str] = field(default_factory=list)
    rows: list[SizeRow] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)  # lines of rows that are cut, or no numbers
    bounds: tuple[int, str] | None = None
    average: tuple[float, str] | None = None
    trouble: str = ""
    crashed: str = ""  # the first trouble that came after a size was measured
    never_ran: bool = False
    trouble_ranks: list[int] = field(default_factory=list)

    @property
    def checked(self) -> bool:
        """Whether the results were looked at."""
        return self.settings.get("validation", 1) > 0


def runs_of(lines: Iterable[Labelled]) -> list[Run]:
    """All runs in their order. Where the processes of one job write into each other, as those that
    were built without MPI do, they are one run as long as no table has come to its end."""
    found: list[Run] = []
    for line in lines:
        if not (trouble := trouble_of(line.text)):
            if _opens(line.text, found):
                found.append(Run(line.number))
            if found:
                _told(line, found[-1])
            continue
        # After a table's end what was never started is another run.
        if not found or (trouble.never_ran and found[-1].average is not None):
            found.append(Run(line.number))
        _troubled(found[-1], trouble.text, line.rank, never_ran=trouble.never_ran)
    return found


#: No run is longer: sizes, and ranks that print their devices.
_LINES = 20_000
#: Field of a run -> the line that shows it.
_SHOWN = {
    "wrong": _BOUNDS, "reaches_own_limit": _AVERAGE,
    "busbw_gbps": _ROW, "at_bytes": _ROW, "rough_gbps": _ROW, "ended": _ROW,
}  # fmt: skip


def locate(text: str, start: int, field: str) -> int:
    """The line of a field of the run that begins at `start`: its table's last row, or one of its
    closing lines; the line that tells of a trouble."""
    shown = _SHOWN.get(field)
    found, closed = start, False
    for line in labelled(text, start + 1):
        body = line.text.strip() if line.text.lstrip().startswith("#") else line.text
        if field == "ended" and trouble_of(line.text):
            return line.number
        if shown and shown.match(body) and not closed:
            found = line.number
        closed = closed or _AVERAGE.match(body) is not None
        # What stops a run may follow its last line.
        if (closed and field != "ended") or (found > start and _SETTINGS.match(body)):
            break
    return _first_wrong(text, start) if field == "wrong" and found == start else found


def _first_wrong(text: str, start: int) -> int:
    """The first row with wrong results, where no closing line tells their sum."""
    lines = islice(labelled(text, start), _LINES)
    rows = (row for run in runs_of(lines) if run.line == start for row in run.rows)
    return next(
        (row.line for row in rows if any(map(_has_wrong, (row.out_of_place, row.in_place)))), start
    )


def _has_wrong(side: Known[Side]) -> bool:
    return isinstance(side, Side) and isinstance(side.wrong, float) and side.wrong > 0


def _opens(text: str, found: list[Run]) -> bool:
    """Whether a run begins with this line."""
    if not text.lstrip().startswith("#"):
        return False
    begins = _STARTS.match(text) or _SETTINGS.match(text) or "Using devices" in text
    if not (begins or _HEADER.match(text) or _RANK.match(text)):
        return False
    if not found or found[-1].average is not None:
        return True
    return bool(begins and found[-1].rows and found[-1].first_ranks < 2)


def _told(line: Labelled, run: Run) -> None:
    """What one line adds to the run."""
    text = line.text.strip() if line.text.lstrip().startswith("#") else line.text
    if run.columns and _ROW.match(text):
        _row(text.split(), line.number, run)
    elif not text.startswith("#"):
        return
    elif match := _STARTS.match(text):
        run.named = match[1]
    elif _SETTINGS.match(text):
        run.settings.update((name, int(value)) for name, value in _SETTING.findall(text))
    elif match := _RANK.match(text):
        run.ranks.setdefault(int(match["rank"]), (match["host"], (match["product"] or "").rstrip()))
        run.first_ranks += match["rank"] == "0"
    elif match := _HEADER.match(text):
        run.columns = match[1].split()
    elif match := _BOUNDS.match(text):
        run.bounds = int(match[1]), match[2] or ""
    elif (match := _AVERAGE.match(text)) and (value := _number(match[1])) is not None:
        run.average = value, match[2] or ""


def _troubled(run: Run, text: str, rank: int, *, never_ran: bool) -> None:
    """The first trouble counts, the first that ends a measurement too, and all ranks that tell
    one."""
    if run.rows and not never_ran and not run.crashed:
        run.crashed = text
    if not run.trouble:
        run.trouble, run.never_ran = text, never_ran and not run.rows
    if rank >= 0 and rank not in run.trouble_ranks:
        run.trouble_ranks.append(rank)


def _row(cells: list[str], number: int, run: Run) -> None:
    """A line of the table: the columns of the times are told by the header, from the right."""
    if "time" not in run.columns:
        return
    at = run.columns.index("time")
    tail = run.columns[at:]
    times = cells[-len(tail) :]
    if not _is_whole(cells, tail, at, run):
        run.unread.append(number)
        return
    if not int(cells[0]):
        return  # nothing was sent
    if not run.rows:
        run.middle = cells[3 : -len(tail)]
    second = tail.index("time", 1) if "time" in tail[1:] else len(tail)
    out = _side(tail[:second], times[:second], run)
    inside = _side(tail[second:], times[second:], run)
    run.rows.append(SizeRow(int(cells[0]), out, inside, number))
    if any(isinstance(one, Missing) and one.kind == "unreadable" for one in (out, inside)):
        run.unread.append(number)


def _is_whole(cells: list[str], tail: list[str], at: int, run: Run) -> bool:
    """Whether a row has as many cells as those before it. In the first one that is cut the times,
    counted from the right, are no times; `at`: columns between type and time, of which some
    versions fill none."""
    more = len(cells) - 3 - len(tail)
    if run.rows or more < 0:
        return bool(run.rows) and more == len(run.middle)
    first = cells[-len(tail)]
    return more >= at or first == "N/A" or _number(first) is not None


def _side(names: list[str], cells: list[str], run: Run) -> Known[Side]:
    told = dict(zip(names, cells, strict=False))
    if told.get("time", "N/A") == "N/A":
        return _NO_SIDE if told else NOT_IN_INPUT
    values = [_number(told.get(name, "")) for name in ("time", "algbw", "busbw")]
    time_us, algbw, busbw = values
    if time_us is None or algbw is None or busbw is None:
        return Missing("unreadable", f"{' '.join(cells)[:60]!r} are no times")
    wrong = _number(told.get("#wrong", told.get("error", "")))
    return Side(time_us, algbw, busbw, _NOT_CHECKED if wrong is None else wrong)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
