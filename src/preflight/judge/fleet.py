"""Checks over the fleet: what only a comparison of hosts shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.judge.conditions import parsed, with_unit
from preflight.judge.operators import OFF, OPERATORS, majority, shown
from preflight.judge.peers import (
    Group,
    Peer,
    briefly,
    folded,
    grouped,
    listed,
    places,
    size,
    with_absent,
)
from preflight.judge.readings import Readings
from preflight.judge.results import result
from preflight.model import Check, Evidence, Missing, Result, Status

#: Odd values that have a result each; what else is odd in a group is told in one.
_ODD_MAX = 8
#: The operator that is about one host as well as about many.
_ALONE = "median"


class Compared(Struct):
    """What one check compares. `total` hosts are in the report, `hosts` gave an answer;
    `missing`: why values are not known."""

    check: Check
    total: int
    hosts: tuple[str, ...]
    groups: list[Group]
    missing: list[str]

    @property
    def across(self) -> list[Group]:
        """The groups that span hosts: within one host its own checks compare."""
        return [group for group in self.groups if len(group.hosts) > 1]


def judge_fleet(found: Sequence[Readings], checks: Sequence[Check]) -> list[Result]:
    """Results of the fleet checks among `checks`, in their order. Hosts that told nothing count in
    how many were compared of how many. Of a single host there is only what can be said without
    others: where it is off the machine that asked."""
    answered = sum(1 for one in found if one.of)
    alone = answered == 1
    if alone:
        checks = [check for check in checks if _ALONE in check.fail_unless | check.warn_unless]
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
    """The readings that have a value, in their groups, and why the others have none."""
    known = [peer for peer in peers if _known(peer)]
    groups = grouped(known)
    if check.everywhere:
        read = [peer.host for peer in peers if not isinstance(peer.reading.value, Missing)]
        with_absent(groups, list(dict.fromkeys(read)))
    values = [peer.reading.value for peer in peers]
    missing = [value.text for value in values if isinstance(value, Missing)]
    hosts = tuple(dict.fromkeys(peer.host for peer in peers))
    return Compared(check, total, hosts, groups, missing)


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
    """PASS with how many hosts were compared; SKIP where not even two were."""
    check = compared.check
    least = argument["of"] if name == "outlier" else 1 if name == _ALONE else 2
    across = compared.groups if name == _ALONE else compared.across
    groups = [group for group in across if size(group.peers) >= least]
    hosts = set().union(*(group.hosts for group in groups))
    subject = folded(compared.hosts)
    if len(hosts) < min(least, 2):
        return result(check, subject, Status.SKIP, reason=_not_compared(compared, least))
    whole = f" on {len(hosts):,} of {compared.total:,} hosts" if len(hosts) < compared.total else ""
    phrase = _wanted(check, name, argument)
    if name == "outlier":
        told = f"{sum(size(group.peers) for group in groups):,} values"
    elif name != "uniform":
        told = _span(check, [peer.value for group in groups for peer in group.peers])
    elif len(groups) == 1:
        value = groups[0].peers[0].value
        if not whole:  # a number stays one
            unit = parsed(check.fact).unit
            return result(check, subject, Status.PASS, value, phrase, unit=unit)
        told = with_unit(check, value)
    else:
        told = "equal" if whole else f"equal on {len(hosts):,} hosts"
    return result(check, subject, Status.PASS, f"{told}{whole}", phrase)


def _not_compared(compared: Compared, least: int) -> str:
    sizes = [size(group.peers) for group in compared.across]
    if sizes:
        return f"{max(sizes)} to compare, and it takes {shown(least)}"
    have = {host for group in compared.groups for host in group.hosts}
    if len(have) > 1:
        alike = " and ".join(path.lstrip(".") for path in compared.check.like)
        return f"no two of {len(have):,} hosts are alike in {alike}"
    count = "only one host tells it; of the others" if have else "no host tells it"
    why = Counter(compared.missing).most_common(1)
    return f"nothing to compare: {count}: {why[0][0] if why else 'no answer'}"


def _not_uniform(compared: Compared, status: Status, _wanted: Any) -> Iterator[Result]:
    """One result for each value that is odd in its group, or for a group without a majority."""
    for group in compared.across:
        by_value = group.by_value()
        if len(by_value) == 1:
            continue
        if majority(group.values()) is None:
            yield _mixed(compared, status, group, by_value)
        else:
            yield from _odd(compared, status, group, by_value)


def _mixed(
    compared: Compared, status: Status, group: Group, by_value: Sequence[list[Peer]]
) -> Result:
    check = compared.check
    told = [f"{with_unit(check, peers[0].value)} on {briefly(peers)}" for peers in by_value]
    measured = f"mixed: {listed(told)}"
    return _result(compared, status, group, group.peers, measured, by_value[:2])


def _odd(
    compared: Compared, status: Status, group: Group, by_value: Sequence[list[Peer]]
) -> Iterator[Result]:
    check, (usual, *odd) = compared.check, by_value
    verb = "the other {} have" if len(odd) == 1 else "{} others have"
    others = f"{verb.format(f'{size(usual):,}')} {with_unit(check, usual[0].value)}"
    for peers in odd[:_ODD_MAX]:
        measured = f"{with_unit(check, peers[0].value)}; {others}"
        yield _result(compared, status, group, peers, measured, [peers])
    if rest := odd[_ODD_MAX:]:
        told = listed([with_unit(check, peers[0].value) for peers in rest])
        peers = [peer for part in rest for peer in part]
        yield _result(compared, status, group, peers, f"{told}; {others}", rest[:2])


def _result(
    compared: Compared, status: Status, group: Group, peers: Sequence[Peer], measured: str,
    shown_by: Sequence[list[Peer]],
) -> Result:  # fmt: skip
    hosts = tuple(dict.fromkeys(peer.host for peer in peers))
    fix = tuple(step.replace("HOSTS", folded(hosts)) for step in compared.check.fix)
    return result(
        replace(compared.check, fix=fix), places(peers), status, measured,
        OPERATORS["uniform"].phrase(True),
        reason=_among(compared, group), evidence=_evidence(*shown_by),
    )  # fmt: skip


def _among(compared: Compared, group: Group) -> str:
    """With which others they were compared, where not with all; a name stands in the subject."""
    if len(compared.groups) < 2:
        return ""
    told = [
        f"{path.strip('.')} {shown(value)}"
        for path, value in zip(compared.check.like, group.like, strict=True)
        if path != ".name" and value is not None
    ]
    return (
        f"compared among those with {', '.join(told)}" if told and len(compared.groups) > 1 else ""
    )


def _apart(name: str, compared: Compared, status: Status, wanted: Any) -> Iterator[Result]:
    """One result for all that is far off the median of its group, by this operator."""
    check, off, told, medians = compared.check, [], [], []
    for group in compared.across:
        singles = [single for peer in group.peers for single in _singles(peer)]
        values = [float(single.value) for single in singles]  # type: ignore[arg-type]
        found = [singles[at] for at in OFF[name](values, wanted)]
        if found:
            off += found
            medians.append(median(values))
            usual = with_unit(check, medians[-1])
            told += [
                f"{places([one])} {with_unit(check, one.value)}, median {usual}" for one in found
            ]
    if off:
        measured = f"{_span(check, [one.value for one in off])}; the median {_span(check, medians)}"
        yield result(
            check, places(off), status, measured, _wanted(check, name, wanted),
            reason=listed(told) if len(off) > 1 else "", evidence=_evidence(off),
        )  # fmt: skip


def _off_centre(compared: Compared, status: Status, wanted: Any) -> Iterator[Result]:
    """One result for a group whose median is not where it should be: it is nobody's in it."""
    for group in compared.groups:
        values = [float(peer.value) for peer in group.peers for _ in range(peer.count)]  # type: ignore[arg-type]
        if OFF[_ALONE](values, wanted):
            told = with_unit(compared.check, median(values))
            measured = told if len(values) == 1 else f"{told} is the median of {len(values):,}"
            nearest = min(group.peers, key=lambda peer: abs(float(peer.value) - median(values)))  # type: ignore[arg-type]
            yield result(
                compared.check, places(group.peers), status, measured,
                _wanted(compared.check, _ALONE, wanted), evidence=_evidence([nearest]),
            )  # fmt: skip


def _wanted(check: Check, name: str, argument: Any) -> str:
    """What was expected; distances in the fact's own unit."""
    if name == "near":
        return f"within {with_unit(check, argument)} of the median"
    if name == _ALONE:
        low, high = (with_unit(check, each) for each in argument)
        return f"a median of {low} to {high}"
    return OPERATORS[name].phrase(argument)


def _singles(peer: Peer) -> Iterator[Peer]:
    """The peer once for each element that it stands for."""
    for subject in peer.reading.subjects or ("",):
        yield Peer(peer.host, replace(peer.reading, subjects=(subject,) if subject else ()))


def _span(check: Check, values: Sequence[Any]) -> str:
    low, high = min(values), max(values)
    if low == high:
        return with_unit(check, low)
    timed = parsed(check.fact).unit == "s"  # either may be in another unit of time
    return f"{with_unit(check, low) if timed else shown(low)} to {with_unit(check, high)}"


def _evidence(*shown_by: Sequence[Peer]) -> tuple[Evidence, ...]:
    """A line for each value, with the host that it is of: a value's line is read once."""
    found = []
    for peers in shown_by:
        lines = ((peer.host, peer.reading.evidence) for peer in peers if peer.reading.evidence)
        for host, seen in islice(lines, 1):
            found.append(replace(seen, text=f"{host}: {seen.text}"))
    return tuple(found)


_OFF: dict[str, Callable[[Compared, Status, Any], Iterator[Result]]] = {
    "uniform": _not_uniform,
    "outlier": partial(_apart, "outlier"),
    "near": partial(_apart, "near"),
    _ALONE: _off_centre,
}
