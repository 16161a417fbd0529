"""What became of hosts among the others since an earlier report: who is odd now, who is not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache

from msgspec import Struct

from preflight.errors import UsageError
from preflight.model import SEVERITY, Change, Report, Result, Status
from preflight.nodesets import expand, hosts_named
from preflight.reports.change_kinds import BAD, kind_of, told
from preflight.reports.silent import answered

Place = tuple[str, str]  # host, device

_SEVERITY = {status: at for at, status in enumerate(SEVERITY)}
#: How many others there are: it changes with the number of hosts that were asked.
_OTHERS = re.compile(r"(?:the other )?[\d,]+(?: others)? (?=have |told )")
#: Values beside a median: they drift, and the median with them.
_DRIFTS = re.compile(r"; the median |is the median of ")
_NOT_TOLD = "no longer told"


class Looked(Struct, frozen=True):
    """One check over the fleet in one report. `odd`: where it is bad, with the worst result of each
    place; `alike`: the hosts that it passes; `result` is its worst."""

    result: Result
    odd: dict[Place, Result]
    alike: set[str]


def fleet_changes(now: Report, then: Report, known: AbstractSet[str]) -> dict[str, list[Change]]:
    """Of each host of `now` what became of it among the others. `known`: the checks of `then`; what
    a new one finds is no change."""
    after, before = _looked(now, then), _looked(then, now)
    there = {host.host for host in then.hosts}
    here = {host.host for host in now.hosts if answered(host)}
    # Where a host tells less than before nobody knows that it was mended.
    untold = {host for look in after.values() for host in _undetermined(look)}
    found: dict[str, list[Change]] = {}
    for check, look in after.items():
        earlier = before.get(check)
        for (host, device), one in look.odd.items():
            if host and check in known:
                was = earlier.odd.get((host, device)) if earlier else None
                found.setdefault(host, []).extend(_odd(one, was, device, host in there))
        for host, change in _no_more(look, earlier, untold) if earlier else ():
            if host in here:
                found.setdefault(host, []).append(change)
    return found


def of_all(now: Report, then: Report) -> Iterator[Change]:
    """What became of results that are of no host, and of checks that compare nothing any more."""
    after, before = _looked(now, then), _looked(then, now)
    for check, look in after.items():
        one, was = look.result, before[check].result if check in before else None
        if was is None or one.status is was.status:
            continue
        no_host = any(not host for host, _ in (*look.odd, *before[check].odd))
        kind = kind_of(was.status, one.status)
        if kind and (no_host or one.status is Status.SKIP):
            yield Change(kind, check, (), "", was.status, one.status, told(was), told(one))


def _undetermined(look: Looked) -> Iterator[str]:
    return (host for (host, _), one in look.odd.items() if one.status is Status.ERROR)


def _odd(one: Result, was: Result | None, device: str, there: bool) -> Iterator[Change]:
    """A place that is odd now: since when, and whether otherwise than before."""
    before = "not odd" if there else ""
    if was is not None and was.status is one.status:
        if _same(told(was), told(one)):
            return
        yield Change("changed", one.check, (), device, was.status, one.status, told(was), told(one))
        return
    kind = kind_of(was.status if was else Status.PASS, one.status)
    if kind:
        earlier, before = (was.status, told(was)) if was else (None, before)
        yield Change(kind, one.check, (), device, earlier, one.status, before, told(one))


def _no_more(look: Looked, earlier: Looked, untold: set[str]) -> Iterator[tuple[str, Change]]:
    """Hosts that were odd and are not, and those that do not tell any more what was compared."""
    one = look.result
    if one.status is Status.SKIP:
        return
    passed = one.status is Status.PASS
    for (host, device), was in earlier.odd.items():
        if not host or (host, device) in look.odd:
            continue
        if host not in look.alike if passed else host in untold:
            yield host, _unseen(was, device)
        else:
            value = told(one) if passed else "as the others"
            fixed = Change(
                "fixed", was.check, (), device, was.status, Status.PASS, told(was), value
            )
            yield host, fixed
    if passed and earlier.result.status is Status.PASS:
        for host in sorted(earlier.alike - look.alike):
            yield host, _unseen(earlier.result, "")


def _unseen(was: Result, device: str) -> Change:
    return Change("unseen", was.check, (), device, was.status, None, told(was), _NOT_TOLD)


def _looked(report: Report, other: Report) -> dict[str, Looked]:
    """The checks over the fleet of a report; hosts are those of both, so that one that is gone is
    still known by its name."""
    known = frozenset(host.host for one in (report, other) for host in one.hosts)
    found: dict[str, Looked] = {}
    for one in sorted(report.fleet, key=lambda one: _SEVERITY[one.status]):
        look = found.setdefault(one.check, Looked(one, {}, set()))
        if one.status in BAD:
            for place in _places(one.subject, known):
                look.odd.setdefault(place, one)
        elif one.status is Status.PASS:
            look.alike.update(_named(one.subject, known))
    return found


@lru_cache(maxsize=64)  # the same thousand hosts stand in check after check
def _named(subject: str, known: frozenset[str]) -> frozenset[str]:
    return frozenset(hosts_named(subject, known))


@lru_cache(maxsize=64)
def _places(subject: str, known: frozenset[str]) -> tuple[Place, ...]:
    """`node[07,09] gpu[0-1]` one by one; a subject that names no host is a place without one."""
    if subject in known:
        return ((subject, ""),)
    found = [
        (host, device)
        for part in subject.split(", ")
        for host in sorted(hosts_named(part, known))
        for device in _devices(part, host)
    ]
    return tuple(found) or (("", subject),)


def _devices(part: str, host: str) -> Iterable[str]:
    tail = part[len(host) :] if part.startswith(f"{host} ") else f" {part.partition(' ')[2]}"
    folded = "" if part == host else tail.strip()
    try:
        return expand(folded) if folded else [""]
    except UsageError:  # a name with spaces
        return [folded]


def _same(was: str, now: str) -> bool:
    """Whether both say the same of the odd ones: how many others there are, and where a median
    stands, is not about them."""
    return _essence(was) == _essence(now)


def _essence(text: str) -> object:
    if _DRIFTS.search(text):
        return "off the median"
    if text.startswith("mixed: "):
        return {part.rpartition(" on ")[0] for part in text[len("mixed: ") :].split("; ")}
    return _OTHERS.sub("others ", text)
