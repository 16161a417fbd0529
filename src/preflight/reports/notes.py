"""What to keep in mind when two reports are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.model import Report
from preflight.nodesets import fold
from preflight.reports.wording import plural, some


def notes(now: Report, then: Report, both: Sequence[str]) -> Iterator[str]:
    """Sentences on an earlier report that is not of the same hosts, questions or rules."""
    if not both:
        yield f"the two reports have no host in common; the earlier one is of {_hosts(then)}"
    if then.started_at > now.started_at:
        yield "the report to compare with is the later one: what reads as failed was in order later"
    elif then.started_at == now.started_at:
        yield "both reports began at the same time: are they the same one?"
    if then.preflight != now.preflight:
        yield (
            f"it is of preflight {then.preflight}, this one of {now.preflight}: rules may differ"
        )
    for name, was, is_ in (
        ("command", then.command, now.command),
        ("level", then.level, now.level),
        ("profile", then.profile or "none", now.profile or "none"),
    ):
        if was != is_:
            yield f"its {name} was {was}, now it is {is_}: not the same was looked at"
    yield from _values(now, then)
    failed = _failed_and_gone(now, then)
    if failed:
        yield f"{plural(failed, 'result')} that had failed: the check is not in this report"


def _hosts(report: Report) -> str:
    folded = fold(host.host for host in report.hosts)
    return folded if len(folded) <= 60 else plural(len(report.hosts), "host")


def _values(now: Report, then: Report) -> Iterator[str]:
    """Thresholds that were set in one of the two, or otherwise in the other."""
    was, is_ = ({one.id: one.value for one in report.overrides} for report in (then, now))
    changed = [name for name in sorted({*was, *is_}) if was.get(name) != is_.get(name)]
    if changed:
        yield f"it used other values of {some(changed, 4, more='')}"


def _failed_and_gone(now: Report, then: Report) -> int:
    here = {one.check for host in now.hosts for one in host.results}
    here |= {one.check for one in now.fleet}
    told = [one for host in then.hosts for one in host.results]
    return sum(1 for one in [*told, *then.fleet] if one.status == "FAIL" and one.check not in here)
