"""A node's processors divided among the ranks that share it."""

from __future__ import annotations

from preflight import cpulists


def share(cpus: str, rank: int, ranks: int) -> str:
    """The part of one of `ranks`: the same slice of each range of the list, because the kernel
    mostly numbers the second threads of the cores as a range of their own: of 0-47,96-143 the first
    of four gets 0-11,96-107. "" where the ranges cannot be divided evenly, or the text is no list.
    """
    try:
        ranges = _ranges(cpulists.parse(cpus))
    except ValueError:
        return ""
    if not ranges or ranks < 1 or any((last - first + 1) % ranks for first, last in ranges):
        return ""
    mine: list[int] = []
    for first, last in ranges:
        size = (last - first + 1) // ranks
        mine.extend(range(first + rank * size, first + (rank + 1) * size))
    return cpulists.fold(mine)


def count(cpus: str) -> int:
    """How many processors a list names; 0 where it is none."""
    try:
        return len(cpulists.parse(cpus))
    except ValueError:
        return 0


def _ranges(cpus: tuple[int, ...]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for cpu in cpus:
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1] = (ranges[-1][0], cpu)
        else:
            ranges.append((cpu, cpu))
    return ranges
