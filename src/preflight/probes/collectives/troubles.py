"""Lines that say why a benchmark of collectives ended, or did not begin."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class Trouble(NamedTuple):
    """`text`: the tool's own words. `never_ran`: the launcher's, who started nothing."""

    text: str
    never_ran: bool


#: What a launcher or the loader says before a rank has run, and what to type.
_TYPED = (
    (r"Permission denied \((?:publickey|password|keyboard|gssapi)",
     "mpirun takes ssh to reach hosts: `ssh -o BatchMode=yes HOST true` must work; ssh-copy-id"),
    (r"Host key verification failed",
     "mpirun takes ssh to reach hosts: `ssh HOST true` once by hand takes its key"),
    (r"ssh: (?:connect to host|Could not resolve hostname) ",
     "mpirun takes ssh to reach hosts: `ssh HOST true` must work, by the same name"),
    (r"(?:orted|prted|hydra_\w{2,12}_proxy|pmi_proxy): (?:command )?(?:not found|No such file)",
     "the MPI of this machine has to be on every host, under the same path"),
    (r"(?:orted|prted|_perf): error while loading shared libraries",
     "export LD_LIBRARY_PATH=FOLDER of that library; the same on every host"),
    (r"HYDU_sock_connect .{0,80}unable to (?:get host address|connect)",
     "each host has to reach this machine by its name: `getent hosts NAME` there, or --interface"),
    (r"srun: error: (?:Invalid MPI type|[Cc]ouldn't find the specified plugin name for mpi)",
     "another of those that `srun --mpi=list` shows: export SLURM_MPI_TYPE=pmi2"),
)  # fmt: skip
#: Of launchers, then of the tests themselves (nccl-tests, src/common.h: NCCLCHECK, CUDACHECK, the
#: time-out of -T) and of those who end them.
_NEVER = (
    r"There are not enough slots available in the system to satisfy the (?P<slots>\d{1,7})\b",
    r"_perf: (?:error while loading shared libraries|command not found)\b",
    r"_perf: No such file or directory",
    r"mpirun was unable to (?:find|launch) the specified",
    r"srun: error: Unable to (?:create step|allocate resources)",
    r"execvp? error on file ",
    r"srun: error: task \d{1,7} launch failed",
    r"ORTE was unable to reliably start one or more daemons",
    r"PRTE was unable to",
    *(pattern for pattern, _ in _TYPED),
)
#: A process ended with a status other than 0, as launchers tell it: that of a test which measured
#: too little, too.
_STATUS = (
    r"[Ee]xited with (?:non-zero status|exit code [1-9])",
    r"(?:but \d{1,7} process(?:es)?|one or more processes) (?:have )?(?:returned|exited)",
    r"a non-zero exit code",
)
_FAILED = (
    r"Test (?:NCCL|CUDA) failure \S{1,200}:\d",
    r"Test timeout \(",
    r"CUDA failure common\.cu:\d",
    r"(?:Cuda failure|CUDA error)\b[^\n]{0,80}(?:ECC|illegal|misaligned|launch|NVLink|hardware)",
    r"Watchdog caught collective operation timeout",
    r"(?:slurmstepd|srun): error: [^\n]{0,200}(?:DUE TO |CANCELLED|Killed|Terminated|Aborted"
    r"|Out Of Memory|oom.kill|Bus error|Segmentation fault|Floating point exception)",
    r"exited on signal \d|mpirun: abort is already in progress",
    r"(?:ORTE|PRTE) has lost communication with a remote daemon",
    r"Segmentation fault|Bus error \(|Aborted \(core dumped\)|\*\*\* Process received signal",
    r"terminate called (?:after throwing|without)|double free or corruption|munmap_chunk\(\)",
    r"Caught signal \d{1,2} \(|BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    *_STATUS,
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
        told = (
            f"Open MPI has not enough slots for {found['slots']} processes; one for each GPU: "
            "-H node-01:8,node-02:8, or `node-01 slots=8` in the hostfile"
        )
    hint = next((hint for pattern, hint in _TYPED if re.search(pattern, told)), "")
    told = f"{told}; {hint}" if hint else told
    return Trouble(told, bool(found["never"]))


def is_status(told: str) -> bool:
    """Whether a trouble says no more than that a process ended with a status other than 0."""
    return any(re.search(pattern, told) for pattern in _STATUS)
