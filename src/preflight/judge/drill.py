"""Whether the checks have seen the faults that were put into a run on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.expect.drills import SEEN_BY, STRESS_SEEN_BY
from preflight.facts.host import Host
from preflight.facts.stress import Stress
from preflight.facts.training import Training
from preflight.judge.results import result, undetermined
from preflight.model import Check, Missing, Result, Status

#: The rule of the checks.
DRILL = "drill"
#: By check: what sees the faults of its run.
_SEEN_BY = {"training.drill": SEEN_BY, "stress.drill": STRESS_SEEN_BY}
_RAISED = (Status.FAIL, Status.WARN)
_ELSEWHERE = "the run is of several hosts: another may have seen it, the last lines tell"


def judge_drill(host: Host, checks: Sequence[Check], results: Sequence[Result]) -> list[Result]:
    """A result for each injected fault, by what all other checks of the host said."""
    return [one for check in checks for one in _of_check(host, check, results)]


def _of_check(host: Host, check: Check, results: Sequence[Result]) -> Iterator[Result]:
    run = host.stress if check.id == "stress.drill" else host.training
    if isinstance(run, Missing):
        yield undetermined(check, host.name, run)
        return
    # Of a run that is no drill there is nothing to say; of a sweep its table shows it.
    if isinstance(run, Training) and not isinstance(run.sweeps, Missing):
        return
    if run.injected and run.interrupted:
        yield result(check, host.name, Status.SKIP, reason="interrupted before its end")
        return
    for fault in run.injected:
        yield _of_fault(run, check, fault, results)


def _of_fault(
    run: Stress | Training, check: Check, fault: str, results: Sequence[Result]
) -> Result:
    wanted = _SEEN_BY[check.id].get(fault.partition(":")[0], ())
    expected = f"seen as {' or '.join(wanted)}"
    where = _device(run, fault) if isinstance(run, Stress) else ""
    mine = [one for one in results if one.check in wanted and f"{one.subject} ".startswith(where)]
    seen = [one.check for one in mine if one.status in _RAISED]
    if seen:
        told = ", ".join(dict.fromkeys(seen))
        return result(check, fault, Status.PASS, told, expected)
    if isinstance(run, Training) and isinstance(run.hosts, int) and run.hosts > 1:
        return result(check, fault, Status.SKIP, reason=_ELSEWHERE)
    silent = [one for one in results if one.check in wanted and one.reason]
    why = "; ".join(dict.fromkeys(f"{one.check}: {one.reason}" for one in silent))
    return result(check, fault, Status.WARN, "not seen by any check", expected, reason=why)


def _device(run: Stress, fault: str) -> str:
    """The begin of what is said of the device that the fault is of: another's is not seen by it."""
    number = fault.partition(":")[2]
    devices = () if isinstance(run.devices, Missing) else run.devices
    known = number.isdigit() and int(number) < len(devices)
    return f"{devices[int(number)].name} " if known else ""


def drills_told(results: Sequence[Result]) -> Iterator[str]:
    """What of the injected faults was seen, over all hosts of a run, as lines for the end."""
    raised = {one.check for one in results if one.status in _RAISED}
    for check, seen_by in _SEEN_BY.items():
        mine = [one for one in results if one.check == check and one.status is not Status.ERROR]
        for fault in dict.fromkeys(one.subject for one in mine):
            wanted = seen_by.get(fault.partition(":")[0])
            if wanted is None:  # a host without a fault
                continue
            seen = [one for one in wanted if one in raised]
            if check == "stress.drill":  # on its own device, as the check has judged it
                own = [one for one in mine if one.subject == fault and one.status is Status.PASS]
                seen = [str(own[0].measured)] if own else []
            told = f"seen as {', '.join(seen)}" if seen else "NOT SEEN by any check"
            yield f"injected {fault}: {told}"
