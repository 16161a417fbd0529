"""Whether the checks have seen the faults that were put into a run on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.expect.drills import SEEN_BY
from preflight.facts.host import Host
from preflight.facts.training import Training
from preflight.judge.results import result, undetermined
from preflight.model import Check, Missing, Result, Status

#: The rule of the check.
DRILL = "drill"
_RAISED = (Status.FAIL, Status.WARN)
_ELSEWHERE = "the run is of several hosts: another may have seen it, the last lines tell"


def judge_drill(host: Host, checks: Sequence[Check], results: Sequence[Result]) -> list[Result]:
    """A result for each injected fault, by what all other checks of the host said."""
    return [one for check in checks for one in _of_check(host, check, results)]


def _of_check(host: Host, check: Check, results: Sequence[Result]) -> Iterator[Result]:
    run = host.training
    if isinstance(run, Missing):
        yield undetermined(check, host.name, run)
        return
    # Of a run that is no drill there is nothing to say; of a sweep its table shows it.
    if not isinstance(run.sweeps, Missing):
        return
    if run.injected and run.interrupted:
        yield result(check, host.name, Status.SKIP, reason="interrupted before its end")
        return
    for fault in run.injected:
        yield _of_fault(run, check, fault, results)


def _of_fault(run: Training, check: Check, fault: str, results: Sequence[Result]) -> Result:
    wanted = SEEN_BY.get(fault.partition(":")[0], ())
    expected = f"seen as {' or '.join(wanted)}"
    seen = [one.check for one in results if one.check in wanted and one.status in _RAISED]
    if seen:
        told = ", ".join(dict.fromkeys(seen))
        return result(check, fault, Status.PASS, told, expected)
    if isinstance(run.hosts, int) and run.hosts > 1:
        return result(check, fault, Status.SKIP, reason=_ELSEWHERE)
    silent = [one for one in results if one.check in wanted and one.reason]
    why = "; ".join(dict.fromkeys(f"{one.check}: {one.reason}" for one in silent))
    return result(check, fault, Status.WARN, "not seen by any check", expected, reason=why)


def drills_told(results: Sequence[Result], check: str = "training.drill") -> Iterator[str]:
    """What of the injected faults was seen, over all hosts of a run, as lines for the end."""
    mine = [one for one in results if one.check == check and one.status is not Status.ERROR]
    raised = {one.check for one in results if one.status in _RAISED}
    for fault in dict.fromkeys(one.subject for one in mine):
        wanted = SEEN_BY.get(fault.partition(":")[0])
        if wanted is None:  # a host without a fault
            continue
        seen = [one for one in wanted if one in raised]
        told = f"seen as {', '.join(seen)}" if seen else "NOT SEEN by any check"
        yield f"injected {fault}: {told}"
