"""`0-3,8` to the numbers of processors and back, as the kernel writes them (cpuset(7))."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: One more than the largest number that is read: far above the kernel's own limit, 8192.
MOST_CPUS = 65_536

#: 0-3, and 0-31:2/4: of each four processors the first two.
_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6})(?::([1-9][0-9]{0,5})/([1-9][0-9]{0,5}))?)?")


def parse(text: str) -> tuple[int, ...]:
    """The numbers in their order, each once; none for an empty text. Raises ValueError where the
    text is no list of processors."""
    if not text.strip():
        return ()
    found: set[int] = set()
    for part in text.strip().split(","):
        found.update(_range(part.strip()))
    return tuple(sorted(found))


def _range(part: str) -> Iterable[int]:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise ValueError(f"not a list of processors such as 0-3,8: {part[:60]!r}")
    first = int(match[1])
    last = int(match[2] or first)
    if not first <= last < MOST_CPUS:
        raise ValueError(f"not a range of processors: {part!r}")
    used, group = int(match[3] or 1), int(match[4] or 1)
    return (cpu for cpu in range(first, last + 1) if (cpu - first) % group < used)


def fold(cpus: Iterable[int]) -> str:
    """The numbers in the shortest form, in their order: `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
