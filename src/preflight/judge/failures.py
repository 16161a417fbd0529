"""How many requests fail: judged by what so many requests can tell, not by their share alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, log

from preflight.expect.failures import least_share, most_share
from preflight.facts.host import Host
from preflight.facts.objects import ObjectStore
from preflight.judge.results import result, undetermined
from preflight.model import Check, Missing, Result, Status


def judge_failures(host: Host, checks: Sequence[Check]) -> list[Result]:
    """A result for each store."""
    assert not isinstance(host.object_stores, Missing)
    return [
        one for check in checks for store in host.object_stores for one in _judged(check, store)
    ]


def _judged(check: Check, store: ObjectStore) -> Iterator[Result]:
    """FAIL where more fail than may, even at the least; PASS where fewer do, even at the most."""
    may_percent = float(check.fail_unless["max"])
    expected = f"below {may_percent:g} %, with 95 % certainty"
    tries, failed = store.requests, store.failed
    for missing in (tries, failed):
        if isinstance(missing, Missing):
            yield undetermined(check, store.name, missing, expected=expected)
            return
    assert isinstance(tries, int) and isinstance(failed, int)
    least, most = (100 * share(tries, failed) for share in (least_share, most_share))
    rate = f"{least:.2g} to {most:.2g} %" if failed else f"below {most:.2g} %"
    measured = f"{failed:,} of {tries:,} requests failed: {rate}"
    said = "; ".join(store.said)
    if least > may_percent:
        status, reason = Status.FAIL, said
    elif most <= may_percent:
        status, reason = Status.PASS, ""
    elif failed:
        status, reason = Status.WARN, said
    else:
        status = Status.ERROR if check.row.get("stated") else Status.SKIP
        reason = _too_few(tries, may_percent)
    yield result(check, store.name, status, measured, expected, reason=reason)


def _too_few(tries: int, may_percent: float) -> str:
    least = ceil(-log(0.05) / (may_percent / 100)) if may_percent > 0 else 0
    more = f"{least:,} requests without a failure" if least else "no number of requests"
    return f"{tries:,} tell too little: {more} would; --runtime and --size have more"
