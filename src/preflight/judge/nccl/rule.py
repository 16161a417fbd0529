"""The checks of NCCL's log, each by a function of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.facts.host import Host
from preflight.facts.nccl import NcclLog
from preflight.judge.nccl.adapters import judge_listed, judge_mixed, judge_odd
from preflight.judge.nccl.gpudirect import judge_gpudirect
from preflight.judge.nccl.networks import judge_network
from preflight.judge.nccl.pairs import judge_graphs, judge_pairs
from preflight.judge.nccl.ranks import judge_ranks
from preflight.judge.nccl.troubles import judge_completions, judge_warnings
from preflight.judge.results import undetermined
from preflight.model import Check, Missing, Result, Status

Judge = Callable[[Host, NcclLog, Check], list[Result]]

_JUDGES: dict[str, Judge] = {
    "nccl.network": judge_network,
    "nccl.adapters.listed": judge_listed,
    "nccl.adapters.mixed": judge_mixed,
    "nccl.adapters.odd": judge_odd,
    "nccl.gpudirect": judge_gpudirect,
    "nccl.pairs": judge_pairs,
    "nccl.graphs": judge_graphs,
    "nccl.ranks": judge_ranks,
    "nccl.completions": judge_completions,
    "nccl.warnings": judge_warnings,
}

#: What has no name of its own is one like all others of the job.
_UNNAMED = "input"
#: What these are about stands in more than one place, and they say themselves if in none.
_FROM_MANY = ("nccl.network",)


def judge_nccl(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of the checks on one host's log."""
    log = host.nccl
    if isinstance(log, Missing):
        return [undetermined(check, host.name, log) for check in checks]
    found: list[Result] = []
    for check in checks:
        lacking = None if check.id in _FROM_MANY else _lacking(log, check)
        if lacking:
            found.append(undetermined(check, host.name, lacking))
        else:
            found += _by_likeness(host, log, check, _JUDGES[check.id](host, log, check))
    return found


def _by_likeness(host: Host, log: NcclLog, check: Check, found: list[Result]) -> list[Result]:
    """What was judged of other hosts by this one's inventory: no more than a guess that all are
    built alike. A fault by it is a warning that says so, a pass by it is none."""
    own = _own_names(host)
    names = () if isinstance(log.hosts, Missing) else {one.name for one in log.hosts}
    others = {name for name in names if name.partition(".")[0] not in own}
    if not own or not others:
        return found
    bare = {one.subject: one for one in _JUDGES[check.id](Host(host.name), log, check)}
    guess = f"if it is built like {own[0]}, whose facts these are"
    told: list[Result] = []
    for one in found:
        by_log = bare.get(one.subject)
        same = by_log is None or (by_log.status, by_log.reason) == (one.status, one.reason)
        if one.subject not in others or same or by_log is None:
            told.append(one)
        elif one.status is Status.PASS or by_log.status is Status.FAIL:
            told.append(by_log)
        else:
            status = Status.WARN if one.status is Status.FAIL else one.status
            told.append(replace(one, status=status, reason=f"{one.reason}; {guess}"))
    return told


def _own_names(host: Host) -> tuple[str, ...]:
    """What the host of the inventory is called: by itself, and by whoever asked."""
    known = () if isinstance(host.identity, Missing) else (host.identity.hostname,)
    names = (*known, *(() if host.name == _UNNAMED else (host.name,)))
    return tuple(name.partition(".")[0] for name in names)


def _lacking(log: NcclLog, check: Check) -> Missing | None:
    """Why the log does not tell what the check is about."""
    value: Any = log
    for name in check.fact.partition("[")[0].split(".")[1:]:
        value = getattr(value, name)
    return value if isinstance(value, Missing) else None
