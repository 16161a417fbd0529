"""Results that are no pass -> what to write so that they are."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from preflight.judge.advice import target, value_of
from preflight.judge.operators import shown
from preflight.model import Check, Result, Status
from preflight.writable import KINDS, VALUE

_BAD = (Status.WARN, Status.FAIL)


class Change(Struct, frozen=True):
    """One parameter and the value that it is to have."""

    kind: str  # sysctl | sysfs | limit
    name: str  # net.core.somaxconn
    value: str
    why: str = ""
    current: str = ""  # as the report shows it
    check: str = ""


class LeftOut(Struct, frozen=True):
    """A parameter that is not to be set on a host, or cannot be, and why."""

    name: str
    reason: str


class ByHand(Struct, frozen=True):
    """A check that warns or fails, and that nothing here mends."""

    check: str
    step: str  # the first thing to do


class Wanted(Struct, frozen=True):
    """What one host needs. `unknown`: why nobody knows. `undetermined`: of these parameters it is
    not known whether they need a change, though it should be."""

    changes: tuple[Change, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    unknown: str = ""
    by_hand: tuple[ByHand, ...] = ()
    undetermined: tuple[str, ...] = ()


def wanted(checks: Iterable[Check], results: Iterable[Result]) -> Wanted:
    """What of one host's results can be changed: those of checks with the key `set`."""
    settable = {check.id: check for check in checks if check.set}
    found: dict[tuple[str, str], Change] = {}
    left: dict[str, LeftOut] = {}
    by_hand: dict[str, ByHand] = {}
    unknown: list[str] = []
    for one in (each for each in results if each.status is not Status.PASS):
        check = settable.get(one.check)
        if check is None:
            if one.status in _BAD:
                by_hand.setdefault(one.check, ByHand(one.check, one.fix[0] if one.fix else ""))
            continue
        kind, name = target(check)
        change = Change(kind, name, value_of(check), check.why, shown(one.measured), check.id)
        if one.status not in _BAD:
            left[name] = LeftOut(name, one.reason)
            unknown += [name] if one.status is Status.ERROR else []
        elif not VALUE.fullmatch(change.value):
            left[name] = LeftOut(name, f"{change.value!r} is no value that can be written")
        else:
            found[kind, name] = _larger(found.get((kind, name)), change)
    changes = sorted(found.values(), key=lambda one: (KINDS.index(one.kind), one.name))
    # Of two checks on one parameter one may be skipped, and the other set it.
    for change in changes:
        left.pop(change.name, None)
    open_ = tuple(name for name in unknown if name in left)
    return Wanted(tuple(changes), tuple(left.values()), "", tuple(by_hand.values()), open_)


def _larger(one: Change | None, other: Change) -> Change:
    """Of two checks on one parameter the value that both pass: a limit is at least something."""
    if one is None or not (one.value.isdigit() and other.value.isdigit()):
        return other
    return one if int(one.value) >= int(other.value) else other


def by_reason(left: Iterable[LeftOut]) -> dict[str, list[str]]:
    """The reasons, each with the names that it holds for."""
    names: dict[str, list[str]] = {}
    for one in left:
        names.setdefault(one.reason, []).append(one.name)
    return names
