"""The job of one srun as Slurm's queue has it: pending and why, or running and where."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from preflight import nodesets
from preflight.errors import UsageError


class Job(Struct, frozen=True):
    """A line of squeue. All empty: the queue has no such job."""

    number: str = ""
    state: str = ""
    reason: str = ""
    nodes: tuple[str, ...] = ()

    @property
    def waits(self) -> str:
        """That it is queued, with Slurm's reason; empty where it is not."""
        return f"job {self.number} waits ({self.reason})" if self.state == "PENDING" else ""

    @property
    def never(self) -> str:
        """What to type where it waits for what no time brings; else empty."""
        found = (hint for pattern, hint in _NEVER if re.search(pattern, self.reason))
        return next(found, "") if self.waits else ""


def squeue(name: str) -> Sequence[str]:
    """What to run for the job of that name; the reason last, for it may hold anything."""
    return ("squeue", "-h", "-t", "all", f"--name={name}", "-o", "%i|%T|%N|%r")


def read_job(text: str) -> Job:
    """The last job of what `squeue` printed."""
    lines = [line.split("|", 3) for line in text.splitlines()]
    for number, state, nodes, reason in (words for words in reversed(lines) if len(words) == 4):
        try:
            listed = tuple(nodesets.expand(nodes)) if nodes.strip() else ()
        except UsageError:
            listed = ()
        return Job(number.strip(), state.strip(), reason.strip("() "), listed)
    return Job()


#: Reasons that only another request or an administrator ends -> what to type; see "JOB REASON
#: CODES" in squeue(1). Limits on what a user has at a time (QOSMaxJobsPerUserLimit) end unaided.
_NEVER = (
    (r"^PartitionTimeLimit|MaxWallDurationPerJob",
     "sinfo -o '%P %l' shows the longest times; ask for less: --slurm-args '-t 00:10:00 ...'"),
    (r"^Partition(Down|Inactive|Config)",
     "sinfo -s shows which partitions are up; name one: --slurm-args '-p NAME ...'"),
    (r"^PartitionNodeLimit",
     "sinfo -o '%P %D %s' shows how many nodes a job may have; ask for as many"),
    (r"^ReqNodeNotAvail.*UnavailableNodes",
     "sinfo -R -N -l tells why they are not available; leave them out"),
    (r"PerJob(Limit)?$|PerNode(Limit)?$|MinCpuNotSatisfied|QOSMin",
     "sacctmgr show qos; ask for what the limit allows"),
    (r"Invalid(Account|QOS)|NotAllowed|Grp\w*(Minutes|RunMinutes)Limit",
     "sacctmgr show assoc user=$USER; name another: --slurm-args '-A ACCOUNT -q QOS ...'"),
    (r"^(BadConstraints|Reservation$|ReservationDeleted|DependencyNeverSatisfied|JobHeld)",
     "scontrol show job; ask for something else with --slurm-args"),
)  # fmt: skip
