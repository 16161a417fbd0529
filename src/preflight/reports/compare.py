"""What became of hosts since an earlier report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from msgspec import Struct

from preflight.model import (
    SEVERITY,
    Change,
    ChangeKind,
    Changes,
    HostReport,
    Report,
    Result,
    Status,
)
from preflight.nodesets import fold, hosts_named
from preflight.reports.changes import ANSWERED
from preflight.reports.fact_changes import fact_changes
from preflight.reports.groups import entries
from preflight.reports.notes import notes
from preflight.reports.silent import silences
from preflight.reports.wording import value

_ORDER = {kind: at for at, kind in enumerate(get_args(ChangeKind))}
_SEVERITY = {status: at for at, status in enumerate(SEVERITY)}
_BAD = (Status.FAIL, Status.ERROR, Status.WARN)
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
        *_fleet(now, then, checks),
    ]
    of_hosts = ((name, _host(after[name], before[name], checks)) for name in both)
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
    if not (now.results and then.results):
        yield from _answering(now, then)
        return
    if now.summary != then.summary and now.summary and then.summary:
        yield Change("changed", "summary", was=then.summary, now=now.summary)
    yield from fact_changes(now.facts, then.facts)
    yield from _results(_worst(now.results), _worst(then.results), now.host, checks)


def _answering(now: HostReport, then: HostReport) -> Iterator[Change]:
    """A host that gave no answer in one of the reports, or in both."""
    was, is_ = (ANSWERED if host.results else _why(host) for host in (then, now))
    if now.results:
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
    come, gone = _devices(now, then), _devices(then, now)
    for kind, devices in (("gone", gone), ("new", come)):
        for device in devices:
            yield Change("gone" if kind == "gone" else "new", "device", subject=device)
    for key, one in now.items():
        check, subject = key
        earlier = then.get(key)
        if earlier is None and check in checks.then and one.status in _BAD:
            earlier = then.get((check, host)) or then.get((check, ""))
            yield from _change(check, subject, earlier, one)
        elif earlier is not None and earlier.status is not one.status:
            yield from _change(check, subject, earlier, one)
    yield from _left(now, then, host, checks, gone)


def _devices(here: Results, there: Results) -> list[str]:
    """Subjects of several checks `here` of which there is nothing at all `there`."""
    absent = {subject for _, subject in here} - {subject for _, subject in there}
    counts = dict.fromkeys(sorted(absent), 0)
    for _, subject in here:
        if subject in counts:
            counts[subject] += 1
    return [subject for subject, count in counts.items() if count >= _CHECKS_OF_A_DEVICE]


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
        yield Change("unseen", one.check, (), one.subject, one.status, None, _told(one))
    elif worst is not None and worst.status not in _BAD and one.status is not worst.status:
        yield from _change(one.check, one.subject, one, worst)


def _change(check: str, subject: str, then: Result | None, now: Result) -> Iterator[Change]:
    was = None if then is None else then.status
    kind = _kind(was, now.status)
    if kind is not None:
        told = "" if then is None else _told(then)
        yield Change(kind, check, (), subject, was, now.status, told, _told(now))


def _kind(was: Status | None, now: Status) -> ChangeKind | None:
    """What it means; none where nothing was known before that could have become worse."""
    was = was or Status.SKIP
    if now is was:
        return None
    if now is Status.FAIL:
        return "failed"
    if now is Status.ERROR:
        return "unknown"
    if now is Status.SKIP:
        return "unseen"
    if now is Status.WARN:
        return "better" if was in (Status.FAIL, Status.ERROR) else "warned"
    return "fixed" if was in _BAD else None


def _told(one: Result) -> str:
    if one.measured is None or one.status in (Status.ERROR, Status.SKIP):
        return one.reason
    unlike = "" if one.status is Status.PASS else one.expected
    return value(one.measured, one.unit, unlike=unlike)


def _fleet(now: Report, then: Report, checks: Catalogues) -> Iterator[Change]:
    """What is judged over all hosts: its subject names the odd ones, and so differs."""
    after, before = _by_check(now.fleet), _by_check(then.fleet)
    known = {host.host for host in now.hosts}
    for check, one in after.items():
        earlier = before.get(check)
        if earlier is None and (check not in checks.then or one.status not in _BAD):
            continue
        if earlier is None or earlier.status is not one.status:
            yield from _change(check, one.subject, earlier, one)
        elif one.status in _BAD:
            yield from _still_odd(one, earlier, known)


def _still_odd(now: Result, then: Result, known: set[str]) -> Iterator[Change]:
    """Hosts that are odd now and were not; else what is told otherwise of the same ones."""
    odd = hosts_named(now.subject, known) - hosts_named(then.subject, known)
    was, told = f"{then.subject}: {_told(then)}", f"{now.subject}: {_told(now)}"
    kind = _kind(Status.PASS, now.status)
    if odd and kind:
        yield Change(kind, now.check, tuple(sorted(odd)), now=_told(now), was="not odd")
    elif was != told:
        yield Change("changed", now.check, (), "", then.status, now.status, was, told)


def _by_check(results: Iterable[Result]) -> dict[str, Result]:
    """The worst of each check; several that are equally bad, such as two odd versions, as one."""
    found: dict[str, list[Result]] = {}
    for one in sorted(results, key=lambda one: _SEVERITY[one.status]):
        of_check = found.setdefault(one.check, [])
        if not of_check or of_check[0].status is one.status:
            of_check.append(one)
    return {check: same[0] if len(same) == 1 else _joined(same) for check, same in found.items()}


def _joined(same: Sequence[Result]) -> Result:
    subject = ", ".join(one.subject for one in same)
    told = "; ".join(dict.fromkeys(f"{one.subject}: {_told(one)}" for one in same))
    return Result(same[0].check, subject, same[0].status, told)
