"""Whether all ranks of each communicator came."""

from __future__ import annotations

from collections import Counter

from preflight.facts.host import Host
from preflight.facts.nccl import NcclCommunicator, NcclLog
from preflight.judge.results import result
from preflight.model import Check, Evidence, Missing, Result, Status


def judge_ranks(_host: Host, log: NcclLog, check: Check) -> list[Result]:
    """One result for each communicator; those that are whole are told together."""
    told = log.communicators
    assert isinstance(told, tuple)
    off = [one for one in told if not one.complete or one.incomplete]
    sound = [one for one in told if one not in off]
    found = [_off(check, one, log) for one in off]
    if sound:
        sizes = Counter(one.ranks for one in sound)
        kinds = ", ".join(f"{n} x {size} ranks" for size, n in sorted(sizes.items()))
        seen = min(one.seen / one.ranks for one in sound)
        kinds += "" if seen == 1 else "; the log does not hold all of their ranks"
        found.append(result(check, "job", Status.PASS, kinds, "all ranks came to an end"))
    return found


def _off(check: Check, one: NcclCommunicator, log: NcclLog) -> Result:
    """None came to an end: ranks are missing, or it was cut off. Some did: the others hang, or the
    log is of another moment."""
    missing = one.absent if not one.complete else ""
    # The log of one host among several does not tell of the others' ranks; and where it ends
    # before all processes that wrote had said their rank, it was cut off.
    whole = one.hosts > 1 and not _early(log)
    sure = (bool(missing) and whole) or bool(log.warnings or log.completions)
    status = Status.FAIL if sure else Status.WARN
    reason = f"ranks {missing} never began" if missing else f"ranks {one.incomplete} did not end"
    reason += "" if sure else ", as far as the log goes"
    return result(
        check, f"communicator of {one.name}", status, f"{one.complete} of {one.ranks} ready",
        "all", reason=reason, evidence=(Evidence(one.probe, line=one.line),),
    )  # fmt: skip


def _early(log: NcclLog) -> bool:
    """Whether processes wrote lines and had not come to tell their rank."""
    if isinstance(log.hosts, Missing) or isinstance(log.ranks, Missing):
        return True
    told = {(one.host, one.pid) for one in log.ranks}
    return sum(one.processes for one in log.hosts) > len(told)
