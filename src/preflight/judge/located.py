"""Hosts and links that are slower than the others, by a search over several hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from preflight.facts.collectives import Culprit, Localisation
from preflight.facts.host import Host
from preflight.judge.results import result
from preflight.model import Check, Evidence, Missing, Result, Status
from preflight.nodesets import fold

_EXPECTED = "no slower than the others"
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
    mine = [one for one in found.culprits if one.kind == _KINDS[check.id]]
    for one in mine:
        yield _culprit(check, one)
    subject = fold(found.hosts) if found.hosts else host.name
    measured = f"{found.test_count} tests in {found.rounds} rounds"
    if found.undetermined:
        yield result(check, subject, Status.ERROR, measured, _EXPECTED,
                     reason=f"not determined: {found.undetermined}")  # fmt: skip
    elif not mine:
        yield result(check, subject, Status.PASS, measured, _EXPECTED)


def _culprit(check: Check, one: Culprit) -> Result:
    behind = one.behind_percent
    shown = "unknown" if isinstance(behind, Missing) else f"{behind:.0f} % slower"
    shown = "never came to an end" if behind == 100.0 else shown
    check = replace(check, fix=tuple(_typed(line, one) for line in check.fix))
    evidence = (Evidence(one.probe, f"found by {one.proof}"[:400], one.line),)
    return result(check, one.name, Status.FAIL, shown, _EXPECTED, reason=f"proved by {one.proof}",
                  evidence=evidence)  # fmt: skip


def _typed(line: str, one: Culprit) -> str:
    """Advice with the names of the hosts, to be typed as it is."""
    return line.replace("HOSTS", ",".join(one.name.split(" to "))).replace("HOST", one.name)
