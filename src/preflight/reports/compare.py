"""What became of hosts since an earlier report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from msgspec import Struct

from preflight.model import (
    NOT_IN_INPUT,
    SEVERITY,
    Change,
    ChangeKind,
    Changes,
    HostReport,
    Report,
    Result,
    Status,
)
from preflight.nodesets import fold
from preflight.reports.change_kinds import BAD, kind_of, told
from preflight.reports.changes import ANSWERED
from preflight.reports.fact_changes import fact_changes
from preflight.reports.fleet_changes import fleet_changes, of_all
from preflight.reports.groups import entries
from preflight.reports.notes import notes
from preflight.reports.silent import answered, silences

_ORDER = {kind: at for at, kind in enumerate(get_args(ChangeKind))}
_SEVERITY = {status: at for at, status in enumerate(SEVERITY)}
#: Results of so many checks make a subject a thing, such as a GPU, that can come and go.
_CHECKS_OF_A_DEVICE = 2

Key = tuple[str, str]
Results = dict[Key, Result]


class Catalogues(Struct, frozen=True):
    """The checks that occur in either report."""

    then: set[str]
    now: set[str]


def compare(now: Report, then: Report) -> Changes:
    """`now` against the earlier `then`; results match by host, check and subject."""
    before = {host.host: host for host in then.hosts}
    after = {host.host: host for host in now.hosts}
    both = [name for name in after if name in before]
    checks = Catalogues(*({one.check for _, one in entries(report)} for report in (then, now)))
    found = [
        *_hosts("gone", [name for name in before if name not in after]),
        *_hosts("new", [name for name in after if name not in before]),
        *of_all(now, then),
    ]
    of_fleet = fleet_changes(now, then, checks.then)
    of_hosts = (
        (name, [*_host(after[name], before[name], checks), *of_fleet.get(name, ())])
        for name in both
    )
    found += _folded((name, of_fleet.get(name, ())) for name in after if name not in before)
    return Changes(
        since=then.started_at,
        preflight=then.preflight,
        hosts=len(both),
        new_checks=len(checks.now - checks.then),
        gone_checks=len(checks.then - checks.now),
        notes=tuple(notes(now, then, both)),
        each=tuple(sorted([*found, *_folded(of_hosts)], key=_urgency)),
    )


def _urgency(change: Change) -> tuple[int, int, str]:
    return _ORDER[change.kind], -len(change.hosts), change.about


def _hosts(kind: ChangeKind, names: list[str]) -> Iterator[Change]:
    if names:
        yield Change(kind, "host", tuple(names))


def _folded(of_hosts: Iterable[tuple[str, Iterable[Change]]]) -> Iterator[Change]:
    """Equal changes of a host's subjects as one, then equal ones of many hosts."""
    alike: dict[tuple[Change, str], list[str]] = {}
    for host, changes in of_hosts:
        subjects: dict[Change, list[str]] = {}
        for one in changes:
            subjects.setdefault(_without(one), []).append(one.subject)
        for one, at in subjects.items():
            own = fold(subject for subject in at if subject != host)
            alike.setdefault((one, own), []).append(host)
    for (one, subject), hosts in alike.items():
        yield _without(one, tuple(hosts), subject)


def _without(one: Change, hosts: tuple[str, ...] = (), subject: str = "") -> Change:
    return Change(
        one.kind, one.about, hosts, subject, one.was_status, one.now_status, one.was, one.now
    )


def _host(now: HostReport, then: HostReport, checks: Catalogues) -> Iterator[Change]:
    if not (answered(now) and answered(then)):
        yield from _answering(now, then)
        return
    if now.summary != then.summary and now.summary and then.summary:
        yield Change("changed", "summary", was=then.summary, now=now.summary)
    yield from fact_changes(now.facts, then.facts)
    if now.results and then.results:
        yield from _results(_worst(now.results), _worst(then.results), now.host, checks)


def _answering(now: HostReport, then: HostReport) -> Iterator[Change]:
    """A host that gave no answer in one of the reports, or in both."""
    was, is_ = (ANSWERED if answered(host) else _why(host) for host in (then, now))
    if answered(now):
        yield Change("fixed", "host", was=was, now=is_)
    elif was != is_:
        yield Change("silent", "host", was=was, now=is_)


def _why(host: HostReport) -> str:
    return next((one.title or one.texts[0][0] for one in silences([host])), "nothing was judged")


def _worst(results: Iterable[Result]) -> Results:
    found: Results = {}
    for one in results:
        key = (one.check, one.subject)
        other = found.get(key)
        if other is None or _SEVERITY[one.status] < _SEVERITY[other.status]:
            found[key] = one
    return found


def _results(now: Results, then: Results, host: str, checks: Catalogues) -> Iterator[Change]:
    come, gone = _devices(now, then, host), _devices(then, now, host)
    for device in gone:
        if _untold(device, then, now):
            yield Change("unseen", "device", subject=device)
        else:
            yield Change("gone", "device", subject=device)
    yield from (Change("new", "device", subject=device) for device in come)
    for key, one in now.items():
        check, subject = key
        earlier = then.get(key)
        if earlier is None and check in checks.then and one.status in BAD:
            earlier = then.get((check, host)) or then.get((check, ""))
            yield from _change(check, subject, earlier, one)
        elif earlier is not None and earlier.status is not one.status:
            yield from _change(check, subject, earlier, one)
    yield from _left(now, then, host, checks, gone)


def _devices(here: Results, there: Results, host: str) -> list[str]:
    """Subjects of several checks `here` of which there is nothing at all `there`."""
    absent = {subject for _, subject in here} - {subject for _, subject in there} - {"", host}
    counts = Counter(subject for _, subject in here if subject in absent)
    return sorted(subject for subject, count in counts.items() if count >= _CHECKS_OF_A_DEVICE)


def _untold(device: str, here: Results, there: Results) -> bool:
    """Whether what most checks of the device are told by was not in the input `there`."""
    own = [check for check, subject in here if subject == device]
    lacking = {check for (check, _), one in there.items() if one.reason == NOT_IN_INPUT.text}
    return 2 * len(lacking.intersection(own)) > len(own)


def _left(
    now: Results, then: Results, host: str, checks: Catalogues, gone: Sequence[str]
) -> Iterator[Change]:
    """Results that have no counterpart now, though their check is known."""
    of_check: dict[str, list[Result]] = {}
    for (check, _), one in now.items():
        of_check.setdefault(check, []).append(one)
    whole = ("", host)
    for (check, subject), one in then.items():
        if (check, subject) in now or check not in checks.now or subject in gone:
            continue
        others = of_check.get(check, [])
        if subject not in whole:
            others = [other for other in others if other.subject in whole]
        yield from _without_counterpart(one, others)


def _without_counterpart(one: Result, others: Sequence[Result]) -> Iterator[Change]:
    """Checks of a log name a GPU where they fail and the host where they pass; one that could not
    be determined at all names the host, too. That another GPU passes says nothing of this one."""
    worst = min(others, key=lambda other: _SEVERITY[other.status], default=None)
    if worst is None and one.status is not Status.SKIP:
        yield Change("unseen", one.check, (), one.subject, one.status, None, told(one))
    elif worst is not None and worst.status not in BAD and one.status is not worst.status:
        yield from _change(one.check, one.subject, one, worst)


def _change(check: str, subject: str, then: Result | None, now: Result) -> Iterator[Change]:
    was = None if then is None else then.status
    kind = kind_of(was, now.status)
    if kind is not None:
        before = "" if then is None else told(then)
        yield Change(kind, check, (), subject, was, now.status, before, told(now))
