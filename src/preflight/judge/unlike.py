"""Hosts that should be alike and are not: who is odd, and what is to be done about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.judge.alike import as_stated, is_stated, within
from preflight.judge.comparison import Compared, evidence, span, wanted
from preflight.judge.conditions import with_unit
from preflight.judge.operators import shown
from preflight.judge.peers import Group, Peer, briefly, folded, listed, places, size
from preflight.judge.results import result, undetermined
from preflight.model import Check, Missing, Result, Status

#: Odd values that have a result each; what else is odd in a group is told in one.
_ODD_MAX = 8
#: Characters of folded names that a command still takes on one line.
_NAMES_MAX = 60
#: Words in a step of a fix: the names of the odd hosts, and of the element that is odd.
_HOSTS, _NAME = "HOSTS", "NAME"
#: What only a step says that takes it that most hosts are right.
_BY_MAJORITY = (_HOSTS, "others", "majority")
_BY_FILE = (
    "until then leave them out: run with --save-hosts PREFIX, then srun --exclude=./PREFIX.fail"
)
#: Reasons that are told apart; the hosts with any other are told together.
_REASONS_MAX = 8


def not_uniform(compared: Compared, status: Status, argument: Any) -> Iterator[Result]:
    """One result for each value that is odd in its group, or for a group without a majority; with a
    stated value, for each that is another."""
    if is_stated(argument):
        yield from _not_stated(compared, status, argument)
        return
    most = within(argument)
    for group in compared.across:
        by_value = group.by_value(most)
        if len(by_value) == 1:
            continue
        if group.usual(most):
            yield from _odd(compared, status, argument, group, by_value)
        else:
            yield _mixed(compared, status, argument, group, by_value)


def _not_stated(compared: Compared, status: Status, argument: dict[str, Any]) -> Iterator[Result]:
    """A stated value is never skipped: a host that does not tell its own is undetermined."""
    phrase = wanted(compared.check, "uniform", argument)
    right = _without_majority(compared, f"bring the hosts to what was stated: {phrase}")
    for group in compared.groups:
        for peers in group.by_value(within(argument)):
            if not as_stated(peers[0].value, argument):
                told = f"{_value(compared.check, peers)}; {phrase} was stated"
                yield _result(right, status, argument, group, peers, told, [peers])
    for missing, peers in by_reason(compared.unknown):
        yield undetermined(compared.check, places(peers), missing)


def _without_majority(compared: Compared, first: str) -> Compared:
    """The same with advice that does not take it that most hosts are right."""
    steps = [step for step in compared.check.fix if not any(word in step for word in _BY_MAJORITY)]
    return replace(compared, check=replace(compared.check, fix=(first, *steps)))


def by_reason(peers: Sequence[Peer]) -> list[tuple[Missing, list[Peer]]]:
    """The peers without a value, by why they have none; many reasons become few."""
    found: dict[Missing, list[Peer]] = {}
    for peer in peers:
        if isinstance(peer.reading.value, Missing):
            found.setdefault(peer.reading.value, []).append(peer)
    each = list(found.items())
    if len(each) <= _REASONS_MAX:
        return each
    rest = each[_REASONS_MAX - 1 :]
    first = next((why for why, _ in rest if why.kind != "no-tool"), rest[0][0])
    several = Missing(first.kind, f"{len(rest):,} reasons, such as: {first.text}")
    return [*each[: _REASONS_MAX - 1], (several, [peer for _, part in rest for peer in part])]


def _value(check: Check, peers: Sequence[Peer]) -> str:
    """The value of a part, from the smallest to the largest where they are only close."""
    values = list(dict.fromkeys(peer.value for peer in peers))
    return with_unit(check, values[0]) if len(values) == 1 else span(check, values)


def _mixed(
    compared: Compared, status: Status, argument: Any, group: Group,
    by_value: Sequence[list[Peer]],
) -> Result:  # fmt: skip
    told = [f"{_value(compared.check, peers)} on {briefly(peers)}" for peers in by_value]
    measured = f"mixed: {listed(told)}"
    which = "no value is that of most: decide which is right, and bring the other hosts to it"
    either = _without_majority(compared, which)
    return _result(either, status, argument, group, group.peers, measured, by_value[:2])


def _odd(
    compared: Compared, status: Status, argument: Any, group: Group,
    by_value: Sequence[list[Peer]],
) -> Iterator[Result]:  # fmt: skip
    check, (usual, *odd) = compared.check, by_value
    verb = "the other {} have" if len(odd) == 1 else "{} others have"
    others = f"{verb.format(f'{size(usual):,}')} {_value(check, usual)}"
    for peers in odd[:_ODD_MAX]:
        measured = f"{_value(check, peers)}; {others}"
        yield _result(compared, status, argument, group, peers, measured, [peers])
    if rest := odd[_ODD_MAX:]:
        told = listed([_value(check, peers) for peers in rest])
        peers = [peer for part in rest for peer in part]
        yield _result(compared, status, argument, group, peers, f"{told}; {others}", rest[:2])


def _result(
    compared: Compared, status: Status, argument: Any, group: Group, peers: Sequence[Peer],
    measured: str, shown_by: Sequence[list[Peer]],
) -> Result:  # fmt: skip
    check = replace(compared.check, fix=tuple(_steps(compared.check, peers)))
    return result(
        check, places(peers), status, measured, wanted(check, "uniform", argument),
        reason=_among(compared, group), evidence=evidence(*shown_by),
    )  # fmt: skip


def _steps(check: Check, peers: Sequence[Peer]) -> Iterator[str]:
    """What is to be done, with the names of hosts and element in their places; a command that would
    not fit its line takes the names from a file."""
    hosts = folded(tuple(dict.fromkeys(peer.host for peer in peers)))
    name = next((subject for peer in peers for subject in peer.reading.subjects), "")
    for step in check.fix:
        if _HOSTS in step and len(hosts) > _NAMES_MAX:
            yield _BY_FILE
        else:
            yield re.sub(rf"\b{_NAME}\b", lambda _: name or _NAME, step.replace(_HOSTS, hosts))


def _among(compared: Compared, group: Group) -> str:
    """With which others they were compared, where not all are alike in that; a name stands in the
    subject."""
    told = [
        f"{path.strip('.').replace('_', ' ')} {shown(value)}"
        for at, (path, value) in enumerate(zip(compared.check.like, group.like, strict=True))
        if path != ".name"
        and value is not None
        and any(other.like[at] not in (None, value) for other in compared.groups)
    ]
    return f"compared among those with {', '.join(told)}" if told else ""
