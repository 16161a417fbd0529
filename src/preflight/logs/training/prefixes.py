"""What launchers, schedulers and journals write before a line."""

from __future__ import annotations

import re

from preflight.logs.training.shape import place_of

#: At most so many stand before one line.
_MOST = 4
#: In turn: torch, mpirun; srun --label; ray; pdsh; kubectl --prefix, --timestamps; journald.
_PREFIX = re.compile(
    r"\s*(?:\[(?:rank|default)(?P<a>\d+)\]: ?|\[\d+,(?P<b>\d+)\]<std(?:out|err)>: ?"
    r"|(?P<c>\d{1,5}): (?=\D)"
    r"|\[[Rr]ank (?P<d>\d+)\] ?"
    r"|\(\w+ pid=(?P<e>\d+)[,)](?: ip=[\w.:]+\))? ?"
    r"|[A-Za-z][\w.-]{0,60}\d[\w.-]{0,60}: (?=\D)"
    r"|\[pod/[^\]]+\] "
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* "
    r"|[A-Z][a-z]{2} +\d\d? \d\d:\d\d:\d\d [\w.-]+ [\w./-]+\[\d+\]: ?)"
)


def past(text: str) -> tuple[str, list[tuple[int, str]]]:
    """The line with blanks where its prefixes stood, so that all else stays in its place; where
    ranks stand in them, and how they read."""
    end, ranks = 0, []
    for _ in range(_MOST):
        found = _PREFIX.match(text, end)
        if found is None:
            break
        end = found.end()
        ranks += [(found.start(name), one) for name, one in found.groupdict().items() if one]
    return " " * end + text[end:], ranks


def rank_figure(line: bytes, ranks: list[tuple[int, str]]) -> int | None:
    """Which figure of the line is its rank's: the first that a prefix tells."""
    return place_of(line, *ranks[0]) if ranks else None
