"""What sinfo says of nodes: pure functions, from its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from preflight import nodesets
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
            name = "node-down" if one.state in _DOWN else "node-unreached"
            found[node] = fault(name, told_of(one))
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
