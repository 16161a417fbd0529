"""How far a run over many hosts has come, on one line of a terminal."""

from __future__ import annotations

from preflight.printable import printable
from preflight.reports.layout import cells, cropped
from preflight.transports.progress import Progress
from preflight.units import format_duration

#: A line of a terminal, less the column where some wrap.
_COLUMNS = 99


def progress_line(progress: Progress, limit_s: float, news: str = "") -> str:
    """`87 of 128 hosts done; slowest node-07 (nvidia-smi, 23 s); at most 37 s left`.

    `limit_s`: the most time that one host may take. `news`: what goes on there, of work that all of
    them do together: `4 hosts, 23 s: tests 3 to 4 of 6: h1 and h2, h3 and h4`.
    """
    head = f"{progress.done:,} of {progress.hosts:,} hosts done"
    if progress.done >= progress.hosts or not progress.slowest:
        return head
    if news:
        done = f"{head}; " if progress.done else f"{progress.hosts:,} hosts, "
        return cropped(f"{done}{_whole(progress.slowest_s)}: {printable(news)}", _COLUMNS)
    left_s = max(0.0, limit_s - progress.slowest_s)
    waits = printable(progress.waits_for) or "connecting"
    tail = f" ({cropped(waits, 24)}, {_whole(progress.slowest_s)}); at most {_whole(left_s)} left"
    name = cropped(printable(progress.slowest), _COLUMNS - cells(f"{head}; slowest {tail}"))
    return cropped(f"{head}; slowest {name}{tail}", _COLUMNS)


def _whole(seconds: float) -> str:
    return format_duration(round(seconds)) if seconds >= 0.5 else "0 s"
