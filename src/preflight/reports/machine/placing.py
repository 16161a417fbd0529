"""The advice as lines: groups, seats, exports that can be pasted, launch snippets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from preflight.model import Advice, Export, Group, Seat
from preflight.nodesets import fold
from preflight.printable import printable
from preflight.reports.layout import Line, Span, cells, flow, padded

#: Values that every shell takes as they are: zsh makes a path of what begins with `=`.
_PLAIN = re.compile(r"[\w@%+:,./^-][\w@%+=:,./^-]*", re.ASCII)
_HEADS = ("rank", "gpu", "numa", "nic", "cpus", "start it with")


def is_some(advice: Advice) -> bool:
    """Whether it says how to start a job; otherwise at most why it does not."""
    return bool(advice.groups or advice.seats or advice.exports or advice.snippets)


def advice_lines(advice: Advice, *, width: int, verbose: int = 0) -> Iterator[Line]:
    """All of it, none wider than `width` but for what is to be pasted as it is: exports, and, with
    `verbose`, snippets."""
    for group in advice.groups:
        yield from _group(group, width)
    yield from seat_lines(advice.seats, width)
    yield from ((Span(line),) for line in export_lines(advice.exports))
    for text in notes(advice):
        yield from flow([Span("note  ", "dim")], [Span(text)], hang=6, width=width)
    if not verbose and advice.snippets:
        kinds = ", ".join(printable(one.kind) for one in advice.snippets)
        told = Span(f"-v shows how to start it: {kinds}", "dim")
        yield from flow([], [told], hang=2, width=width)
        return
    for snippet in advice.snippets:
        yield ()
        yield (Span(printable(snippet.kind), "bold"),)
        # From the first column, for sbatch reads no #SBATCH that is indented.
        yield from ((Span(printable(line)),) for line in snippet.text.splitlines())


def _group(group: Group, width: int) -> Iterator[Line]:
    members = fold(group.members)
    yield from flow([Span(f"group {printable(members)}  ")], [Span(group.why)], hang=2, width=width)


def seat_lines(seats: Sequence[Seat], width: int) -> Iterator[Line]:
    """A line for each local rank; what all lack is left out, and the processors where they stand in
    the command too and would not fit."""
    if not seats:
        return
    rows = [_HEADS, *map(_cells, seats)]
    kept = [at for at in range(len(_HEADS)) if any(row[at] for row in rows[1:])]
    if _broad(rows, kept) > width and 4 in kept and 5 in kept:
        kept.remove(4)
    widths = [max(cells(row[at]) for row in rows) for at in kept]
    for number, row in enumerate(rows):
        text = "  ".join(padded(row[at], room) for at, room in zip(kept, widths, strict=True))
        yield (Span(f"  {text}".rstrip(), "" if number else "dim"),)
    for why in dict.fromkeys(seat.why for seat in seats if seat.why):
        yield from flow([Span("  ")], [Span(why, "dim")], hang=2, width=width)


def _cells(seat: Seat) -> tuple[str, ...]:
    node = "" if seat.numa_node is None else str(seat.numa_node)
    told = (str(seat.local_rank), seat.gpu, node, fold(seat.nics), seat.cpus, seat.bind)
    return tuple(map(printable, told))


def _broad(rows: Sequence[Sequence[str]], kept: Sequence[int]) -> int:
    return 2 + sum(2 + max(cells(row[at]) for row in rows) for at in kept)


def export_lines(exports: Sequence[Export]) -> Iterator[str]:
    """Lines for a shell, and nothing else: the prompt of zsh takes no comments, and would run what
    stands in them."""
    for one in exports:
        value = printable(one.value)
        quoted = value if _PLAIN.fullmatch(value) else _quoted(value)
        yield f"export {printable(one.name)}={quoted}"


def notes(advice: Advice) -> tuple[str, ...]:
    """Why each of these is set, then what is left to NCCL."""
    return (*(f"{one.name}: {one.why}" for one in advice.exports if one.why), *advice.left)


def _quoted(value: str) -> str:
    return f"'{value}'" if value[:1] == "=" and "'" not in value else shlex.quote(value)
