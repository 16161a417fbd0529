"""Lines that say why a benchmark of collectives ended, or did not begin."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class Trouble(NamedTuple):
    """`text`: the tool's own words. `never_ran`: the launcher's, who started nothing."""

    text: str
    never_ran: bool


#: Of launchers, then of the tests themselves (nccl-tests, src/common.h: NCCLCHECK, CUDACHECK, the
#: time-out of -T) and of those who end them.
_NEVER = (
    r"There are not enough slots available in the system to satisfy the (?P<slots>\d{1,7})\b",
    r"(?:bash: (?:line \d+: )?)?[\w./-]{0,200}_perf: (?:error while loading shared libraries"
    r"|command not found|No such file or directory)\b",
    r"mpirun was unable to (?:find|launch) the specified",
    r"srun: error: Unable to (?:create step|allocate resources)",
    r"execvp? error on file ",
)
_FAILED = (
    r"(?:\S{1,255}: )?Test (?:NCCL|CUDA) failure \S{1,200}:\d",
    r"(?:\S{1,255}: )?Test timeout \(",
    r"CUDA failure common\.cu:\d",
    r"[^\n]{0,200}Watchdog caught collective operation timeout",
    r"(?:slurmstepd|srun): error: [^\n]{0,200}(?:DUE TO TIME LIMIT|Killed|Terminated)",
    r"[^\n]{0,120}exited on signal \d",
    r"[^\n]{0,120}Segmentation fault",
)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"\s*(?:(?P<never>{'|'.join(_NEVER)})|(?:{'|'.join(_FAILED)}))")


def trouble_of(text: str) -> Trouble | None:
    """What a line says went wrong, in its words; None where it says nothing of that kind."""
    found = _pattern().match(text)
    if found is None:
        return None
    told = " ".join(text.split())[:200]
    if found["slots"]:  # the sentence goes on in the next line
        told = f"Open MPI has not enough slots for {found['slots']} processes"
    return Trouble(told, bool(found["never"]))
