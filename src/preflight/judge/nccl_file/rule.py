"""The rule `nccl-topo`: one result for each check on the file.

NCCL takes from the kernel and the driver only what the file leaves out, so a file that was made for
another machine, or for this one before a change, makes it plan with what is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from preflight.facts.host import Host
from preflight.facts.nccl_topo import NcclTopo
from preflight.judge.nccl_file.looks import Compared, Found, devices, tree, values
from preflight.judge.nccl_file.needed import not_needed
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status

_GIVEN = Missing(
    "not-in-input",
    "tabs, marks and declarations, at which NCCL stops, do not come through with recorded text: "
    "`preflight topo` on the host looks at the file itself",
)
_NOT_NAMED = Missing("not-in-input", "a file by itself does not tell that NCCL is told to read it")
_SHOWN = 4  # differences that are named
_NO_FILE = Missing("not-applicable", "no topology file is named, nor at NCCL's own place")
_LOOKS: dict[str, Callable[[Host, NcclTopo], Found]] = {
    "devices": devices,
    "tree": tree,
    "values": values,
}


def judge_nccl_topo(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of all checks on the file."""
    topo = host.nccl_topo
    assert not isinstance(topo, Missing), "judge_rule sees to that"
    return [_judge(host, topo, check) for check in checks]


def _judge(host: Host, topo: NcclTopo, check: Check) -> Result:
    about = check.id.rpartition(".")[2]
    if about == "needed":
        return _needed(host, topo, check)
    if topo.state == "none":
        return undetermined(check, host.name, _NO_FILE)
    if about == "read":
        return _read(host, topo, check)
    if topo.state != "read":
        told = f"{topo.path} was not read: {topo.fault or topo.state}"
        return undetermined(check, host.name, Missing("not-applicable", told))
    found = _LOOKS[about](host, topo)
    if isinstance(found, Missing):
        return undetermined(check, host.name, found)
    return _told(host, topo, check, found)


def _needed(host: Host, topo: NcclTopo, check: Check) -> Result:
    expected = "a topology file, or a tree that shows pairs of GPU and adapter"
    if topo.state == "read" and not topo.path:
        return undetermined(check, host.name, _NOT_NAMED)
    if topo.state == "read":
        return result(check, host.name, Status.PASS, topo.path, expected)
    why = not_needed(host)
    if isinstance(why, Missing):
        return undetermined(check, host.name, why)
    if why:
        return result(check, host.name, Status.PASS, why, expected)
    told = "no GPU shares a PCIe switch with an adapter here, and no file tells which are near"
    return result(check, host.name, Status.WARN, "neither", expected, reason=told)


def _read(host: Host, topo: NcclTopo, check: Check) -> Result:
    """A file that cannot be opened is passed over; one that is broken ends the start."""
    where = f"{topo.path} (named by {topo.named})" if topo.path else "the file that was given"
    expected = "a file that NCCL can read"
    if topo.state == "read" and not topo.path:
        return undetermined(check, host.name, _GIVEN)
    if topo.state == "read":
        return result(check, host.name, Status.PASS, where, expected)
    status, reason = {
        "absent": (Status.WARN, "there is no such file: NCCL goes on without it"),
        "denied": (Status.WARN, "it is no file, or this user may not read it"),
        "broken": (Status.FAIL, f"NCCL stops at it: {topo.fault}"),
    }[topo.state]
    evidence = (Evidence(topo.probe, line=topo.line),)
    return result(check, host.name, status, where, expected, reason=reason, evidence=evidence)


def _told(host: Host, topo: NcclTopo, check: Check, found: Sequence[Compared]) -> Result:
    odd = [one for one in found if one.differs]
    of = f"{len(found)} compared"
    if not odd:
        return result(check, host.name, Status.PASS, of, "as the host has it")
    more = len(odd) - _SHOWN
    told = "; ".join(one.told for one in odd[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    evidence = (Evidence(topo.probe, line=odd[0].line),)
    return result(check, host.name, Status.WARN, f"{len(odd)} of {of} differ", "as the host has it",
                  reason=told, evidence=evidence)  # fmt: skip
