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
    r"_perf: (?:error while loading shared libraries|command not found)\b",
    r"_perf: No such file or directory",
    r"mpirun was unable to (?:find|launch) the specified",
    r"srun: error: Unable to (?:create step|allocate resources)",
    r"execvp? error on file ",
)
_FAILED = (
    r"Test (?:NCCL|CUDA) failure \S{1,200}:\d",
    r"Test timeout \(",
    r"CUDA failure common\.cu:\d",
    r"Watchdog caught collective operation timeout",
    r"(?:slurmstepd|srun): error: [^\n]{0,200}(?:DUE TO TIME LIMIT|Killed|Terminated)",
    r"exited on signal \d",
    r"Segmentation fault",
)
_LONGEST = 2000
#: What the benchmark's own lines begin with: the longest part of a log, and no trouble.
_OWN = re.compile(r"\s*[#\d]")


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"(?P<never>{'|'.join(_NEVER)})|{'|'.join(_FAILED)}")


def trouble_of(text: str) -> Trouble | None:
    """What a line says went wrong, in its words; None where it says nothing of that kind."""
    found = None if _OWN.match(text) else _pattern().search(text, 0, _LONGEST)
    if found is None:
        return None
    told = " ".join(text.split())[:200]
    if found["slots"]:  # the sentence goes on in the next line
        told = f"Open MPI has not enough slots for {found['slots']} processes"
    return Trouble(told, bool(found["never"]))
