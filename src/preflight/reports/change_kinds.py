"""What it means that a status is another than before."""

from __future__ import annotations

from preflight.model import ChangeKind, Result, Status
from preflight.reports.wording import value

#: Statuses that somebody has to do something about.
BAD = (Status.FAIL, Status.ERROR, Status.WARN)


def kind_of(was: Status | None, now: Status) -> ChangeKind | None:
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
    return "fixed" if was in BAD else None


def told(one: Result) -> str:
    """What a result says was found, in few words."""
    if one.measured is None or one.status in (Status.ERROR, Status.SKIP):
        return one.reason
    unlike = "" if one.status is Status.PASS else one.expected
    return value(one.measured, one.unit, unlike=unlike)
