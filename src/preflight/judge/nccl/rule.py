"""The checks of NCCL's log, each by a function of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from preflight.facts.host import Host
from preflight.facts.nccl import NcclLog
from preflight.judge.nccl.adapters import judge_listed, judge_mixed, judge_odd
from preflight.judge.nccl.gpudirect import judge_gpudirect
from preflight.judge.nccl.networks import judge_network
from preflight.judge.nccl.pairs import judge_graphs, judge_pairs
from preflight.judge.nccl.ranks import judge_ranks
from preflight.judge.nccl.troubles import judge_completions, judge_warnings
from preflight.judge.results import undetermined
from preflight.model import Check, Missing, Result

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
            found += _JUDGES[check.id](host, log, check)
    return found


def _lacking(log: NcclLog, check: Check) -> Missing | None:
    """Why the log does not tell what the check is about."""
    value: Any = log
    for name in check.fact.partition("[")[0].split(".")[1:]:
        value = getattr(value, name)
    return value if isinstance(value, Missing) else None
