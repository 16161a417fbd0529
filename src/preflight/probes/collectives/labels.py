"""What launchers put before each line, and the rank that it tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

#: `3: ` of srun --label, `[1,3]<stdout>:` of mpirun --tag-output, `[default3]:` of torchrun, and
#: `[rank3]: ` of torch.
_LABEL = re.compile(
    r"[ \t]*(?:(?P<srun>\d{1,6}): ?|\[\d{1,9},(?P<mpi>\d{1,6})\]<std\w{2,4}>: ?"
    r"|\[(?:default|rank)(?P<torch>\d{1,6})\]: ?)"
)


class Labelled(NamedTuple):
    """A line without its label; rank -1: there is none."""

    number: int
    rank: int
    text: str


def labelled(text: str) -> Iterator[Labelled]:
    """All lines that are not blank, numbered from 1."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line or line.isspace():
            continue
        found = _LABEL.match(line)
        told = next((part for part in found.groups() if part), "-1") if found else "-1"
        yield Labelled(number, int(told), line[found.end() :] if found else line)
