"""What Slurm says of nodes and of its own errors: pure functions, from its texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from preflight import nodesets
from preflight.errors import UsageError
from preflight.faults import fault
from preflight.model import Missing

#: One line for each node and partition; the reason last, for it may hold anything.
SINFO = ("sinfo", "-h", "-a", "-N", "-o", "%N|%T|%E")

#: The marks behind a state, such as * for "does not respond"; see "NODE STATE CODES" in sinfo(1).
_MARKS = "*~#!%$@^-+"
_DOWN = ("down", "fail", "failing", "error", "inval", "unknown", "future")
_DRAINED = ("drained", "drain")


class NodeState(Struct, frozen=True):
    """A node as Slurm sees it; `responds` is false for a state with a star."""

    state: str
    responds: bool
    reason: str


def read_states(text: str) -> dict[str, NodeState]:
    """What SINFO printed, by node."""
    found: dict[str, NodeState] = {}
    for line in text.splitlines():
        name, bar, rest = line.strip().partition("|")
        told, second, reason = rest.partition("|")
        if bar and second:
            state = told.strip().lower()
            why = "" if reason.strip() == "none" else reason.strip()
            found[name] = NodeState(state.rstrip(_MARKS), "*" not in state, why)
    return found


def not_asked(
    nodes: Iterable[str], states: Mapping[str, NodeState], job: str, job_nodes: Sequence[str]
) -> dict[str, Missing]:
    """Why some of the nodes are not waited for. `job`: the allocation we are in, if any. Its own
    nodes are asked while they drain: they are still there."""
    found: dict[str, Missing] = {}
    ours = set(job_nodes)
    for node in nodes:
        one = states.get(node)
        if one is None:
            found[node] = fault("node-unknown", f"sinfo shows no node {node}")
        elif job and node not in ours:
            text = f"job {job} has {nodesets.fold(job_nodes) or 'no nodes'}"
            found[node] = fault("node-elsewhere", text)
        elif is_down(one):
            found[node] = fault("node-down", told_of(one))
        elif one.state in _DRAINED or (one.state == "draining" and not job):
            found[node] = fault("node-drained", told_of(one))
    return found


def is_down(one: NodeState) -> bool:
    """Whether nobody answers there, as far as Slurm knows."""
    return one.state in _DOWN or not one.responds


def told_of(one: NodeState) -> str:
    """The state in words, with Slurm's reason."""
    state = one.state if one.responds else f"{one.state}, it does not respond"
    return f"its state is {state}; reason: {one.reason or 'none given'}"


class Ended(Struct, frozen=True):
    """A node of which srun says that its part is over; `relaunch` where that ended all others."""

    node: str
    missing: Missing
    relaunch: bool = False


#: srun's lines on nodes -> the fault. The first group is the node or the nodes, folded.
_ENDINGS = (
    (re.compile(r"srun: error: Node failure on (\S+)"), "node-failed"),
    (re.compile(r"srun: error: Task launch for \S+ failed on node (\S+?): .*"), "node-failed"),
    (re.compile(r"srun: error: (\S+): tasks? [\d,\[\]-]+: .+"), "died"),
)


def endings(line: str) -> Iterator[Ended]:
    """What a line of srun's tells of nodes; nothing where it is of another kind."""
    for pattern, name in _ENDINGS:
        match = pattern.match(line)
        if match is None:
            continue
        try:
            nodes = nodesets.expand(match[1].rstrip(","))
        except UsageError:
            return
        said = line.removeprefix("srun: error: ").strip()
        for node in nodes:
            yield Ended(node, fault(name, f"srun says: {said}"), "Task launch" in line)
        return


#: In srun's or sinfo's words -> what to type.
_HINTS = (
    ("contact slurm controller", "scontrol ping; is slurmctld up?"),
    ("configuration source", "export SLURM_CONF=/etc/slurm/slurm.conf, or run it on a login node"),
    ("invalid partition", "sinfo -s shows the partitions; name one: --slurm-args '-p NAME -N 4'"),
    ("invalid node name", "sinfo -N -l shows the nodes"),
    ("invalid account", "sacctmgr show assoc user=$USER; name one: --slurm-args '-A ACCOUNT ...'"),
    ("node configuration is not available", "sinfo -o '%P %D %G'; ask for what there is"),
    ("more processors requested", "srun -N COUNT hostname; ask for fewer nodes"),
    ("expired or invalid job", "the allocation is over: salloc -N 4, then again"),
    ("munge", "systemctl status munge"),
)


def refused(tool: str, said: Iterable[str]) -> UsageError:
    """That a tool of Slurm's did nothing: in its own words, and what to type."""
    lines = [line.strip() for line in said if line.strip()]
    errors = [line for line in lines if "error" in line or "fatal" in line] or lines
    words = "; ".join(
        dict.fromkeys(re.sub(rf"^{tool}: (error: |fatal: )?", "", line) for line in errors[:4])
    )
    hint = next((hint for part, hint in _HINTS if part in words.lower()), f"{tool} --help")
    return UsageError(f"{tool} failed: {words or 'it said nothing'}", hint)
