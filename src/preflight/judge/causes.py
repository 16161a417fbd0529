"""One cause, not eight bad GPUs: which failures follow from another of the host, by a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from preflight import datafiles, strict_yaml
from preflight.assemble.tables import SUPPLIERS
from preflight.kept import kept
from preflight.model import SEVERITY, HostReport, Result, Status
from preflight.nodesets import hosts_named

_TABLE = "checks/causes.yaml"
#: What a cause may explain; what passes or was left out needs no cause.
_BAD = frozenset(SEVERITY[:3])


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the table, whose head says what its keys mean."""

    cause: tuple[str, ...]
    same: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    undetermined: tuple[str, ...] = ()
    subject: str = ""
    fleet: tuple[str, ...] = ()


@cache
def rows() -> tuple[Row, ...]:
    """The table, the roots first; ValidationError where it is out of order."""
    path = datafiles.root() / _TABLE
    place = path.parent / "__pycache__" / "causes.msgpack"
    return kept(place, tuple[Row, ...], [path, Path(__file__)], lambda: _read(path))


def _read(path: Path) -> tuple[Row, ...]:
    text = path.read_text(encoding="utf-8")
    return tuple(msgspec.convert(strict_yaml.load(text, _TABLE), list[Row]))


def attribute(results: Sequence[Result], table: Sequence[Row] | None = None) -> None:
    """Name in each result that follows from another of its host the check of that other, in place.

    Nothing is taken away and no status changes: a report leads with the cause, counts the rest.
    """
    bad = [one for one in results if one.status in _BAD]
    if len(bad) < 2 or all(one.status is not Status.FAIL for one in bad):
        return
    for row in rows() if table is None else table:
        for root in _roots(row, bad):
            for one in bad:
                if one is not root and not one.cause and _follows(one, root, row):
                    one.cause = root.cause or root.check


def attribute_fleet(
    fleet: Sequence[Result], hosts: Sequence[HostReport], table: Sequence[Row] | None = None
) -> None:
    """Name in each result over the fleet that follows from a failure on all hosts which it names
    the check of that failure, in place; in one that is not known for a reason that all of them give
    themselves a check of theirs."""
    by_name = {host.host: host.results for host in hosts}
    failed = {
        name: {one.check for one in results if one.status is Status.FAIL}
        for name, results in by_name.items()
    }
    for one in fleet:
        named = sorted(hosts_named(one.subject, failed.keys())) if one.status in _BAD else []
        for row in (rows() if table is None else table) if named else ():
            if _named(one.check, row.fleet) and not one.cause:
                one.cause = _shared_cause(row, [failed[name] for name in named])
        if named and one.status is Status.ERROR and not one.cause:
            one.cause = _same_gap(one, [by_name[name] for name in named])


def _same_gap(one: Result, told: Sequence[Sequence[Result]]) -> str:
    """The first check that each of these hosts could not determine for the reason that the fleet's
    result gives; empty where one has none."""
    firsts = [
        next(
            (
                each.check
                for each in results
                if each.status is Status.ERROR and each.reason and each.reason in one.reason
            ),
            "",
        )
        for results in told
    ]
    return firsts[0] if all(firsts) else ""


def _shared_cause(row: Row, failed: Sequence[set[str]]) -> str:
    """The first cause of the row of which each of these hosts has one; empty where one has none."""
    firsts = [
        next(
            (check for name in row.cause for check in sorted(checks) if fnmatchcase(check, name)),
            "",
        )
        for checks in failed
    ]
    return firsts[0] if all(firsts) else ""


def _roots(row: Row, bad: Sequence[Result]) -> list[Result]:
    """The failures that are causes, those of the check that stands first in the row first."""
    return [
        one
        for name in row.cause
        for one in bad
        if one.status is Status.FAIL and fnmatchcase(one.check, name)
    ]


def _follows(one: Result, root: Result, row: Row) -> bool:
    if one.check == root.check or (root.cause and root.cause == one.check):
        return False
    if one.status is Status.ERROR and _named(one.check, row.undetermined):
        return True
    if one.status is Status.ERROR and _named(one.check, row.unread) and _of_one_device(one, root):
        return True
    if row.subject and not re.search(row.subject, one.subject, re.IGNORECASE):
        return False
    if not _may_be_later(one, root, row):
        return False
    return _named(one.check, row.anywhere) or (
        _named(one.check, row.same) and _of_one_device(one, root)
    )


def _may_be_later(one: Result, root: Result, row: Row) -> bool:
    """Whether the order of the two allows it: what was first cannot follow.

    Events of one log have an order, those of two logs have none that is known. What is now may
    follow from any event; an event follows from what is now only where the row names it in full.
    """
    event, cause = _in_log(one), _in_log(root)
    if event is None:
        return True
    if cause is None:
        return one.check in (*row.same, *row.anywhere)
    return event[0] == cause[0] and event[1] >= cause[1]


def _in_log(one: Result) -> tuple[str, int] | None:
    """The log and the line of the first event that a result tells of, if it tells of any."""
    for evidence in one.evidence:
        if evidence.probe.partition("#")[0] in SUPPLIERS["kernel_log"] and evidence.line:
            return evidence.probe, evidence.line
    return None


def _of_one_device(one: Result, other: Result) -> bool:
    return not _names(one).isdisjoint(_names(other))


def _names(one: Result) -> set[str]:
    """How the device is called; a PCI address without the zeros of its domain, of which some tools
    write four and others eight."""
    return {name.lstrip("0") for name in (one.subject, one.device) if name}


def _named(check: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns names it, and none with `!` before it takes it out."""
    without = (pattern[1:] for pattern in patterns if pattern.startswith("!"))
    return any(fnmatchcase(check, pattern) for pattern in patterns) and not any(
        fnmatchcase(check, pattern) for pattern in without
    )
