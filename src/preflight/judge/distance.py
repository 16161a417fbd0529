"""Values that should be near each other over the fleet: who is far off, and whether all are."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from msgspec.structs import replace

from preflight.judge.comparison import Compared, evidence, span, wanted
from preflight.judge.conditions import with_unit
from preflight.judge.operators import OFF, centre
from preflight.judge.peers import Peer, listed, places
from preflight.judge.results import result
from preflight.model import Result, Status


def apart(name: str, compared: Compared, status: Status, argument: Any) -> Iterator[Result]:
    """One result for all that is far off the median of its group, by this operator."""
    check, off, told, usual = compared.check, list[Peer](), list[str](), list[float]()
    for group in compared.across:
        singles = [single for peer in group.peers for single in _singles(peer)]
        values = [_number(single) for single in singles]
        found = [singles[at] for at in OFF[name](values, argument)]
        if not found:
            continue
        off += found
        halves = name == "near" and centre(values)[1] - centre(values)[0] > argument
        usual += centre(values) if halves else [median(values)]
        beside = "" if halves else f", median {with_unit(check, usual[-1])}"
        told += [f"{places([one])} {with_unit(check, one.value)}{beside}" for one in found]
    if off:
        measured = span(check, [one.value for one in off])
        middle = (
            f"the median {span(check, usual)}"
            if len(set(usual)) == 1 or len(usual) != 2
            else (f"the two in the middle are {with_unit(check, abs(usual[1] - usual[0]))} apart")
        )
        yield result(
            check, places(off), status, f"{measured}; {middle}", wanted(check, name, argument),
            reason=listed(told) if len(off) > 1 else "", evidence=evidence(off),
        )  # fmt: skip


def off_centre(compared: Compared, status: Status, argument: Any) -> Iterator[Result]:
    """One result for a group whose median is not where it should be: it is nobody's in it."""
    check = compared.check
    for group in compared.groups:
        values = [_number(peer) for peer in group.peers for _ in range(peer.count)]
        if OFF["median"](values, argument):
            told = with_unit(check, median(values))
            measured = told if len(values) == 1 else f"{told} is the median of {len(values):,}"
            nearest = min(group.peers, key=lambda peer: abs(_number(peer) - median(values)))
            yield result(
                check, places(group.peers), status, measured, wanted(check, "median", argument),
                evidence=evidence([nearest]),
            )  # fmt: skip


def _number(peer: Peer) -> float:
    return float(peer.value)  # type: ignore[arg-type]


def _singles(peer: Peer) -> Iterator[Peer]:
    """The peer once for each element that it stands for."""
    for subject in peer.reading.subjects or ("",):
        yield Peer(peer.host, replace(peer.reading, subjects=(subject,) if subject else ()))
