"""What srun says of nodes, of its step and of its own errors: pure functions, from its lines."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator

from msgspec import Struct

from preflight import nodesets
from preflight.errors import UsageError
from preflight.faults import fault
from preflight.model import Missing

#: srun tells that a task ended on another connection than what the task said: so long it may lag.
_LAG_S = 0.5
#: Lines of srun's own that are kept, to tell why it failed.
_LINES = 40


class Ended(Struct, frozen=True):
    """A node of which srun says that its part is over; `relaunch` where that ended all others.
    `task` is the number of its task, where the line has it."""

    node: str
    missing: Missing
    relaunch: bool = False
    task: int | None = None


#: srun's lines on nodes -> the fault. The first group is the node or the nodes, folded; the second,
#: if any, their tasks. As Slurm 22.05 writes them.
_ENDINGS = (
    (re.compile(r"srun: error: Node failure on (\S+)"), "node-failed", False),
    (
        re.compile(r"srun: error: Task launch for \S+ failed on node (\S+?): .*"),
        "node-failed",
        True,
    ),
    (re.compile(r"srun: (?:error: )?Prolog failure on node (\S+)"), "node-failed", True),
    (re.compile(r"srun: error: (\S+): tasks? ([\d,\[\]-]+): .+"), "died", False),
)
#: After these srun ends all tasks by itself, though nothing is wrong with most of their nodes.
_LAUNCH = re.compile(r"srun: error: (Application launch failed|timeout waiting for task launch)")
#: The tasks are ended all at once, by srun or by Slurm.
_OVER = re.compile(
    r"srun: (Job step aborted|Force Terminated |(error: )?Job allocation \d+ has been revoked"
    r"|forcing job termination)"
)
_NOT_READY = re.compile(r"srun: (?:error: )?Nodes (\S+) are still not ready")
#: Of the daemon of the step, in what its tasks say on stderr.
_CANCELLED = re.compile(r"slurmstepd\S*: error: \*\*\* ((?:STEP|JOB) .+?) \*\*\*")


def endings(line: str) -> Iterator[Ended]:
    """What a line of srun's tells of nodes; nothing where it is of another kind."""
    for pattern, name, relaunch in _ENDINGS:
        match = pattern.match(line)
        if match is None:
            continue
        nodes = _expanded(match[1].rstrip(","))
        tasks = _numbers(match[2]) if pattern.groups > 1 else []
        said = re.sub(r"^srun: (error: )?", "", line).strip()
        for at, node in enumerate(nodes):
            task = tasks[at] if len(tasks) == len(nodes) else None
            yield Ended(node, fault(name, f"srun says: {said}"), relaunch, task)
        return


def _expanded(folded: str) -> list[str]:
    try:
        return nodesets.expand(folded)
    except UsageError:
        return []


def _numbers(folded: str) -> list[int]:
    """The tasks of `1`, `1-3` or `[0,2-3]`."""
    found = _expanded(f"t[{folded.strip('[]')}]")
    return [int(one[1:]) for one in found]


class Told:
    """srun's own lines as they come, and what they tell."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=_LINES)
        #: srun ended all tasks for the sake of one node.
        self.relaunch = False
        #: All tasks were ended at once.
        self.over = False
        #: Slurm's words on who ended the step, and when.
        self.cancelled = ""
        #: The nodes that srun has named as its own.
        self.nodes: tuple[str, ...] = ()
        self._ended: deque[tuple[float, Ended]] = deque()

    def hear(self, text: str, now_s: float) -> None:
        """Lines of srun itself."""
        for line in text.splitlines():
            self.lines.append(line)
            self.hear_step(line)
            self.relaunch |= bool(_LAUNCH.match(line))
            self.over |= bool(_OVER.match(line))
            if found := _NOT_READY.match(line):
                self.nodes = tuple(_expanded(found[1]))
            for ended in endings(line):
                self.relaunch |= ended.relaunch
                self._ended.append((now_s + _LAG_S, ended))

    def hear_step(self, text: str) -> None:
        """What a task said on stderr, where the daemon of the step speaks too."""
        if found := _CANCELLED.search(text):
            self.cancelled = found[1]

    def named(self) -> list[str]:
        """The nodes whose end was told and is not yet taken."""
        return [ended.node for _, ended in self._ended]

    def due(self, now_s: float) -> Iterator[Ended]:
        """The ends that were told a while ago, so that what the tasks said is here; taken."""
        while self._ended and self._ended[0][0] <= now_s:
            yield self._ended.popleft()[1]

    def last_words(self) -> str:
        """The last lines; `nothing` without any."""
        return "; ".join(list(self.lines)[-3:]) or "nothing"

    def waits_for_room(self) -> bool:
        """Whether the last word is that the step waits for other steps of the allocation."""
        return bool(self.lines) and bool(re.search(r"Step creation .*retrying", self.lines[-1]))


#: In srun's or sinfo's words -> what to type.
_HINTS = (
    ("contact slurm controller", "scontrol ping; is slurmctld up?"),
    ("configuration source", "export SLURM_CONF=/etc/slurm/slurm.conf, or run it on a login node"),
    ("invalid partition", "sinfo -s shows the partitions; name one: --slurm-args '-p NAME -N 4'"),
    ("invalid node name", "sinfo -N -l shows the nodes"),
    ("invalid account", "sacctmgr show assoc user=$USER; name one: --slurm-args '-A ACCOUNT ...'"),
    ("node configuration is not available", "sinfo -o '%P %D %G'; ask for what there is"),
    ("more processors requested", "srun -N COUNT hostname; ask for fewer nodes"),
    ("invalid job", "the allocation is over: unset SLURM_JOB_ID; salloc -N 4, then again"),
    ("munge", "systemctl status munge"),
    ("unrecognized option", "srun --help"),
    ("invalid option", "srun --help"),
)
_HINT = "scontrol ping; sinfo -s; then the same by hand: srun -N 1 hostname"


def refused(tool: str, said: Iterable[str]) -> UsageError:
    """That a tool of Slurm's did nothing: in its own words, and what to type."""
    lines = [line.strip() for line in said if line.strip()]
    errors = [line for line in lines if "error" in line or "fatal" in line] or lines
    words = "; ".join(
        dict.fromkeys(re.sub(rf"^{tool}: (error: |fatal: )?", "", line) for line in errors[:4])
    )
    hint = next((hint for part, hint in _HINTS if part in " ".join(lines).lower()), _HINT)
    return UsageError(f"{tool} failed: {words or 'it said nothing'}", hint)
