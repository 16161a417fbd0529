"""Hosts and links that are slower than the others, by a search over several hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median_low

from msgspec.structs import replace

from preflight.expect.bound import Bound
from preflight.expect.collectives import compared_busbw
from preflight.facts.collectives import Culprit, Localisation
from preflight.facts.host import Host
from preflight.judge.results import result
from preflight.model import NOT_IN_INPUT, Check, Evidence, Known, Missing, Result, Status
from preflight.nodesets import fold

#: Tests of more hosts are groups.
_PAIR = 3
#: The check of each kind of culprit.
_KINDS = {
    "collectives.host": "host", "collectives.link": "link", "collectives.boundary": "boundary",
}  # fmt: skip


def judge_located(host: Host, checks: Sequence[Check]) -> list[Result]:
    """A result for each culprit of the check's kind, and one where there is none."""
    found = host.localisation
    assert isinstance(found, Localisation)
    return [one for check in checks for one in _judged(host, check, found)]


def _judged(host: Host, check: Check, found: Localisation) -> Iterator[Result]:
    most = float(check.fail_unless["max"])
    expected = f"at most {most:g} % below the others"
    mine = [one for one in found.culprits if one.kind == _KINDS[check.id]]
    if most > found.looked_for_percent:
        mine = [one for one in mine if _is_slow(one, most)]
    for one in mine:
        yield _culprit(check, one, expected)
    subject = fold(found.hosts) if found.hosts else host.name
    measured = f"{found.test_count} tests in {found.rounds} rounds{_level(host, found)}"
    if check.id == "collectives.link" and found.covered:
        measured += f"; looked at: {found.covered}"
    open_ = found.undetermined or _not_looked_for(check, most, found)
    if open_:
        yield result(check, subject, Status.ERROR, measured, expected,
                     reason=f"not determined: {open_}")  # fmt: skip
    elif not mine:
        yield result(check, subject, Status.PASS, measured, expected)


def _is_slow(one: Culprit, most: float) -> bool:
    return isinstance(one.behind_percent, Missing) or one.behind_percent > most


def _not_looked_for(check: Check, most: float, found: Localisation) -> str:
    if most >= found.looked_for_percent:
        return ""
    return (
        f"the search was for what is {found.looked_for_percent:g} % below the others, not "
        f"{most:g} %: preflight nccl-bench --set {check.id}={most:g} with the same hosts"
    )


def _level(host: Host, found: Localisation) -> str:
    """How fast those are that are alike. All may be slow: then nobody is slower than the others."""
    kind = "groups" if "groups" in found.level_gbps else "pairs"
    gbps = found.level_gbps.get(kind, 0.0)
    if not gbps:
        return ""
    bound = _bound(host, found, kind)
    if isinstance(bound, Missing):
        return f", healthy ones at {gbps:.3g} GB/s"
    return f", healthy ones at {gbps:.3g} GB/s, {gbps / bound.value:.0%} of {bound.value:.3g}"


def _bound(host: Host, found: Localisation, kind: str) -> Known[Bound]:
    """What the hardware allows in such a test, on the host that was told of all."""
    sizes = [
        len(one.hosts) for one in found.tests if (len(one.hosts) > _PAIR) == (kind == "groups")
    ]
    runs = [] if isinstance(host.collectives, Missing) else host.collectives
    if not sizes or not runs:
        return NOT_IN_INPUT
    return compared_busbw(host, runs[0], median_low(sizes), found.size_bytes)


def _culprit(check: Check, one: Culprit, expected: str) -> Result:
    behind = one.behind_percent
    shown = "unknown" if isinstance(behind, Missing) else f"{behind:.0f} % slower"
    shown = "never came to an end" if behind == 100.0 else shown
    check = replace(check, fix=tuple(_typed(line, one) for line in check.fix))
    evidence = (Evidence(one.probe, f"found by {one.proof}"[:400], one.line),)
    return result(check, one.name, Status.FAIL, shown, expected, reason=f"proved by {one.proof}",
                  evidence=evidence)  # fmt: skip


def _typed(line: str, one: Culprit) -> str:
    """Advice with the names of the hosts, to be typed as it is."""
    return line.replace("HOSTS", ",".join(one.name.split(" to "))).replace("HOST", one.name)
