"""Checks over the fleet: what only a comparison of hosts shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from preflight.judge.alike import is_stated, within
from preflight.judge.comparison import Compared, span, wanted
from preflight.judge.conditions import parsed
from preflight.judge.distance import apart, off_centre
from preflight.judge.operators import shown
from preflight.judge.peers import (
    Group,
    Peer,
    folded,
    grouped,
    not_applicable,
    size,
    with_absent,
    with_not_there,
)
from preflight.judge.readings import ALONE, Readings, about_one
from preflight.judge.results import result
from preflight.judge.unlike import not_uniform
from preflight.judge.untold import untold
from preflight.model import Check, Missing, Result, Scalar, Status


def judge_fleet(found: Sequence[Readings], checks: Sequence[Check]) -> list[Result]:
    """Results of the fleet checks among `checks`, in their order. Hosts that told nothing count in
    how many were compared of how many. Of a single host there is only what can be said without
    others: where it is off the machine that asked."""
    answered = sum(1 for one in found if one.of)
    alone = answered == 1
    if alone:
        checks = [check for check in checks if about_one(check)]
    if not answered or not checks:
        return []
    by_check: dict[str, list[Peer]] = {}
    for host in found:
        for reading in host.of:
            by_check.setdefault(reading.check, []).append(Peer(host.host, reading))
    results = [
        one
        for check in checks
        if check.across == "fleet"
        for one in _judge(_compared(check, by_check.get(check.id, []), len(found)))
    ]
    return [one for one in results if not (alone and one.status is Status.SKIP)]


def _compared(check: Check, peers: Sequence[Peer], total: int) -> Compared:
    """The readings that have a value, in their groups, and those that have none."""
    known = [peer for peer in peers if _known(peer)]
    uniform = (check.fail_unless | check.warn_unless).get("uniform")
    groups = grouped(known, within(uniform))
    if check.everywhere:
        with_absent(groups, _kinds(check, peers))
    # What `where` leaves out is not applicable too, and not by the device's own word.
    if uniform and check.fact.startswith("gpus[*].") and not check.where:
        with_not_there(groups, [peer for peer in peers if not_applicable(peer)])
    unknown = [peer for peer in peers if isinstance(peer.reading.value, Missing)]
    hosts = tuple(dict.fromkeys(peer.host for peer in peers))
    return Compared(check, total, hosts, groups, unknown)


def _kinds(check: Check, peers: Sequence[Peer]) -> dict[str, tuple[Scalar, ...]]:
    """What each host whose list was read is alike in; None in place of what is an element's."""
    return {
        peer.host: tuple(
            None if path.startswith(".") else value
            for path, value in zip(check.like, peer.reading.like, strict=False)
        )
        for peer in peers
        if not isinstance(peer.reading.value, Missing)
    }


def _known(peer: Peer) -> bool:
    value = peer.reading.value
    return value is not None and not isinstance(value, Missing)


def _judge(compared: Compared) -> list[Result]:
    check = compared.check
    declared = [
        (status, *next(iter(unless.items())))
        for status, unless in ((Status.FAIL, check.fail_unless), (Status.WARN, check.warn_unless))
        if unless
    ]
    for status, name, argument in declared:
        off = list(_OFF[name](compared, status, argument))
        if off:
            return off
    _, name, argument = declared[0]
    return [_nothing_off(compared, name, argument)]


def _nothing_off(compared: Compared, name: str, argument: Any) -> Result:
    """PASS with the hosts that were compared, of how many; SKIP where not even two were."""
    check = compared.check
    alone = name == ALONE or is_stated(argument)
    least = argument["of"] if name == "outlier" else 1 if alone else 2
    groups = compared.groups if alone else compared.across
    groups = [group for group in groups if size(group.peers) >= least]
    found = set().union(*(group.hosts for group in groups))
    if len(found) < min(least, 2):
        subject, reason = folded(compared.hosts), _not_compared(compared, least)
        return result(check, subject, Status.SKIP, reason=reason)
    hosts = tuple(host for host in compared.hosts if host in found)
    told, unit = _said(compared, name, groups, len(hosts))
    phrase = wanted(check, name, argument)
    return result(check, folded(hosts), Status.PASS, told, phrase, unit=unit)


def _said(compared: Compared, name: str, groups: Sequence[Group], hosts: int) -> tuple[Scalar, str]:
    """What was found, and its unit; a value that all hosts have stays one."""
    check = compared.check
    whole = f" on {hosts:,} of {compared.total:,} hosts" if hosts < compared.total else ""
    values = list(dict.fromkeys(peer.value for peer in groups[0].peers))
    if name == "outlier":
        told = f"{sum(size(group.peers) for group in groups):,} values"
    elif name == "told":
        told = f"{len(groups)} {'part' if len(groups) == 1 else 'parts'}"
    elif name != "uniform":
        told = span(check, [peer.value for group in groups for peer in group.peers])
    elif len(groups) > 1:
        told = "equal" if whole else f"equal on {hosts:,} hosts"
    elif whole or len(values) > 1:
        told = span(check, values)
    else:
        return values[0], parsed(check.fact).unit
    return f"{told}{whole}", ""


def _not_compared(compared: Compared, least: int) -> str:
    sizes = [size(group.peers) for group in compared.across]
    if sizes:
        return f"{max(sizes)} to compare, and it takes {shown(least)}"
    have = {host for group in compared.groups for host in group.hosts}
    if len(have) > 1:
        alike = " and ".join(path.lstrip(".") for path in compared.check.like)
        return f"no two of {len(have):,} hosts are alike in {alike}"
    count = "only one host tells it; of the others" if have else "no host tells it"
    reasons = (peer.reading.value for peer in compared.unknown)
    why = Counter(value for value in reasons if isinstance(value, Missing)).most_common(1)
    if why and not have and why[0][0].kind == "not-applicable":
        return f"nothing to compare: {why[0][0].text}"
    return f"nothing to compare: {count}: {why[0][0].text if why else 'no answer'}"


_OFF: dict[str, Callable[[Compared, Status, Any], Iterator[Result]]] = {
    "uniform": not_uniform,
    "outlier": partial(apart, "outlier"),
    "near": partial(apart, "near"),
    "told": untold,
    ALONE: off_centre,
}
