"""Several reports as one: hosts joined, the later answer counts, verdict and counts anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

from preflight.errors import UsageError
from preflight.model import LEVELS, SEVERITY, HostReport, MissingProbe, Report, Result, Status
from preflight.reports.silent import machines
from preflight.verdict import count, host_verdict, report_verdict, with_fleet

T = TypeVar("T")

_NOT_COMPARED = (
    "hosts of different reports were not compared; judge their captures together: "
    "--from a.capture.gz --from b.capture.gz"
)


def merge(reports: Sequence[Report]) -> Report:
    """One report of all; raises UsageError where there is none.

    Of two results of one check on one subject the one of the later report counts, by the time at
    which the reports began; of the times the sum is told. What the hosts of different reports have
    in common cannot be told from reports: of a comparison of some of the hosts only what was odd is
    kept.
    """
    if not reports:
        raise UsageError("there is no report to merge", "name at least one report.json")
    told = sorted(reports, key=lambda report: report.started_at)
    hosts = _hosts(told)
    every = {host.host for host in machines(hosts)}
    fleet = _fleet(told, every)
    with_fleet(hosts, fleet, _compared(told, every))
    findings = _latest(
        chain.from_iterable(report.findings for report in told),
        lambda one: (one.finding, one.subject),
    )
    return Report(
        command="+".join(dict.fromkeys("+".join(one.command for one in told).split("+"))),
        argv=_argv(told),
        level=_level(told),
        started_at=told[0].started_at,
        elapsed_s=sum(one.elapsed_s for one in told),
        verdict=report_verdict(hosts, fleet, findings),
        counts=count([*(result for host in hosts for result in host.results), *fleet]),
        hosts=tuple(hosts),
        profile="+".join(dict.fromkeys(one.profile for one in told if one.profile)) or None,
        overrides=_all(report.overrides for report in told),
        fleet=tuple(fleet),
        findings=tuple(findings),
        measurements=_all(report.measurements for report in told),
        hints=_all([*(report.hints for report in told), _apart(told, every)]),
        preflight="+".join(dict.fromkeys(one.preflight for one in told)),
    )


def _argv(told: Sequence[Report]) -> tuple[str, ...]:
    """The command lines one after the other, as a shell would take them: `a ; b`."""
    lines = list(dict.fromkeys(report.argv for report in told if report.argv))
    joined = [part for line in lines for part in (";", *line)]
    return tuple(joined[1:])


def _level(told: Sequence[Report]) -> str:
    found = set(chain.from_iterable(report.level.split("+") for report in told))
    order = [*LEVELS, *sorted(found.difference(LEVELS))]
    return "+".join(level for level in order if level in found)


def _all(parts: Iterable[Sequence[T]]) -> tuple[T, ...]:
    """Everything once, in order; records are compared by what they hold, not by identity."""
    kept: list[T] = []
    seen: set[str] = set()
    for one in chain.from_iterable(parts):
        if repr(one) not in seen:
            seen.add(repr(one))
            kept.append(one)
    return tuple(kept)


def _latest(told: Iterable[T], key: Callable[[T], object]) -> list[T]:
    """The last of those with equal keys, in the order of first appearance."""
    return list({key(one): one for one in told}.values())


def _result_key(result: Result) -> tuple[str, str]:
    return result.check, result.subject


def _hosts(told: Sequence[Report]) -> list[HostReport]:
    by_name: dict[str, list[HostReport]] = {}
    for report in told:
        for host in report.hosts:
            by_name.setdefault(host.host, []).append(host)
    return [_host(name, found) for name, found in by_name.items()]


def _host(name: str, found: Sequence[HostReport]) -> HostReport:
    results = _results(name, found)
    missing = _missing(found)
    return HostReport(
        host=name,
        verdict=host_verdict(results, missing),
        missing=missing,
        summary=next((one.summary for one in reversed(found) if one.summary), ""),
        reach=next((one.reach for one in reversed(found) if one.reach), ""),
        facts=_facts([one.facts for one in found if one.facts is not None]),
        results=results,
        map=next((one.map for one in reversed(found) if one.map), None),
        advice=next((one.advice for one in reversed(found) if one.advice), None),
    )


def _results(name: str, found: Sequence[HostReport]) -> tuple[Result, ...]:
    kept: list[Result] = []
    for host in found:
        # Where nvidia-smi hung, a check has one ERROR for the host; once it answers, one a GPU.
        looked = {result.check for result in host.results}
        kept = [one for one in kept if not (_of_whole(one, name) and one.check in looked)]
        kept += host.results
    return tuple(_latest(kept, _result_key))


def _of_whole(result: Result, host: str) -> bool:
    return result.status in (Status.ERROR, Status.SKIP) and result.subject in ("", host)


def _missing(found: Sequence[HostReport]) -> tuple[MissingProbe, ...]:
    """What had no answer; a host that answered later was not unreachable after all."""
    kept: dict[str, MissingProbe] = {}
    for host in found:
        if host.results:
            kept = {
                probe: one
                for probe, one in kept.items()
                if not (one.fault or one.kind == "unreachable")
            }
        kept.update((one.probe, one) for one in host.missing)
    return tuple(kept.values())


def _facts(found: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    if not found:
        return None
    merged: dict[str, Any] = {}
    for facts in found:
        for key, told in facts.items():
            unknown = isinstance(told, dict) and set(told) == {"kind", "text"}
            # That a later command did not ask for something does not make it unknown.
            if key not in merged or not unknown:
                merged[key] = told
    return merged


def _fleet(told: Sequence[Report], every: set[str]) -> list[Result]:
    """A later look at all the same hosts replaces an earlier one, whoever was off then. That some
    of the hosts are alike is nothing that is true of all."""
    kept: list[tuple[set[str], Result]] = []
    for report in told:
        hosts = {host.host for host in report.hosts}
        looked = {result.check for result in report.fleet}
        kept = [
            (seen, result)
            for seen, result in kept
            if not (result.check in looked and seen <= hosts)
        ]
        kept += [(hosts, result) for result in report.fleet]
    found = [result for seen, result in kept if seen >= every or result.status in SEVERITY[:3]]
    return _latest(found, _result_key)


def _compared(told: Sequence[Report], every: set[str]) -> set[str]:
    """Hosts without results of their own that passed a comparison of all."""
    whole = [report for report in told if _of_all(report, every)]
    return {
        host.host
        for report in whole
        for host in report.hosts
        if not host.results and host.verdict not in (Status.SKIP, Status.ERROR)
    }


def _of_all(report: Report, every: set[str]) -> bool:
    return {host.host for host in report.hosts} >= every


def _apart(told: Sequence[Report], every: set[str]) -> tuple[str, ...]:
    """What to type where no report is of all hosts."""
    return () if any(_of_all(report, every) for report in told) else (_NOT_COMPARED,)
