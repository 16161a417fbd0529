"""How long a bench of collectives takes, by its plan and the number of hosts: from .. to.

Starts of ranks are what most of it is: 3 to 6 s on processors, with NCCL and its buffers 5 to 20 s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from preflight.units import format_duration

#: Of so many hosts and fewer each pair is tried (payload/collectives/slow.py); fewer are not told
#: apart.
_ALL_PAIRS, _LEAST_HOSTS = 8, 3
#: Rounds that a search takes more where something is slow: `bench/localisation.py` of the search.
_MORE_ROUNDS = 6
#: Calls of a size at least, with those that warm up and prove (payload/collectives/timing.py).
_CALLS = 10
#: A size is left out that would take longer.
_MOST_S = 30.0


#: A round of links by TCP, and by RDMA with several adapters; turns of a sweep with the trial, and
#: the most seconds of a variable (payload/wire, payload/collectives/paired.py and settings.py).
_TCP_S, _RDMA_S, _TURNS, _VARIABLE_S = (8.0, 15.0), 120.0, (13, 33), 600.0


class Kind(NamedTuple):
    """From .. to in seconds: until the hosts have met and torch is loaded, a start of ranks, and
    each size; `slow_gbps`: what the slowest network carries that is reckoned with, in 1e9 bytes a
    second; the sizes where none are asked for."""

    ready_s: tuple[float, float]
    start_s: tuple[float, float]
    size_s: tuple[float, float]
    slow_gbps: float
    begin: int
    end: int
    factor: int


#: Those of payload/collectives/work.py; processors are joined by 400 Mb/s or more.
KINDS = {
    "processors": Kind((6, 20), (3, 6), (0.05, 0.4), 0.04, 1 << 10, 1 << 24, 1 << 7),
    "GPUs": Kind((10, 40), (5, 20), (0.3, 1.0), 5.0, 8, 1 << 33, 4),
}


def over_hosts(plan: Mapping[str, Any], hosts: int, collectives: int) -> str:
    """In words, for whoever waits. `collectives`: how many are timed."""
    told = (f"{_range(plan, hosts, collectives, kind)} on {name}" for name, kind in KINDS.items())
    return f"about {', '.join(told)}"


def _range(plan: Mapping[str, Any], hosts: int, collectives: int, kind: Kind) -> str:
    low, high = seconds(plan, hosts, collectives, kind)
    return f"{format_duration(_round(low))} to {format_duration(_round(high))}"


def _round(seconds_: float) -> float:
    """What is not known to the second is not told to it."""
    step = 5 if seconds_ < 120 else 60
    return step * max(1, round(seconds_ / step))


def seconds(
    plan: Mapping[str, Any], hosts: int, collectives: int, kind: Kind
) -> tuple[float, float]:
    """From .. to."""
    sizes = list(_sizes(plan, kind))
    few, many = _rounds(plan, hosts)
    more = _more(plan, hosts, kind)
    slowest = sum(min(_MOST_S, _CALLS * 2 * size / (1e9 * kind.slow_gbps)) for size in sizes)
    return (
        kind.ready_s[0] + kind.start_s[0] * (1 + few) + kind.size_s[0] * collectives * len(sizes)
        + more[0],
        kind.ready_s[1] + kind.start_s[1] * (1 + many)
        + collectives * (kind.size_s[1] * len(sizes) + slowest) + more[1],
    )  # fmt: skip


def _more(plan: Mapping[str, Any], hosts: int, kind: Kind) -> tuple[float, float]:
    """Of what is done besides: links, values of variables in turns, one collective for long."""
    low = high = float(plan.get("lasting_s", 0.0))
    wire = plan.get("wire", "")
    if wire:
        rounds = hosts - 1 + hosts % 2 if plan.get("pairwise") else min(hosts - 1, 2 + hosts % 2)
        low, high = (
            low + _TCP_S[0] * rounds,
            high + rounds * (_TCP_S[1] if wire == "tcp" else _RDMA_S),
        )
    for _, *values in plan.get("sweep", ()):
        low += kind.start_s[0] * _TURNS[0] * len(values)
        high += min(_VARIABLE_S, kind.start_s[1] * _TURNS[1] * len(values))
    return low, high


def _sizes(plan: Mapping[str, Any], kind: Kind) -> list[int]:
    begin, end = plan.get("begin_bytes", kind.begin), plan.get("end_bytes", kind.end)
    factor = plan.get("factor", kind.factor)
    found, size = [], begin
    while size < end:
        found.append(size)
        size *= factor
    return [*found, max(begin, end)]


def _rounds(plan: Mapping[str, Any], hosts: int) -> tuple[int, int]:
    """Of the search: where all are sound, and where some are slow."""
    if hosts < _LEAST_HOSTS or not plan.get("locate", True):
        return 0, 0
    if hosts <= _ALL_PAIRS or plan.get("pairwise"):
        pairs = hosts - 1 + hosts % 2
        return pairs, pairs + _MORE_ROUNDS
    rounds = math.ceil(math.log2(hosts))
    return 3, rounds + _MORE_ROUNDS
