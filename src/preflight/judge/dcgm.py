"""`dcgmi diag` judged: every test of every GPU, told under the check of what is to be done."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.facts.dcgm import DiagResult
from preflight.facts.host import Host
from preflight.judge.results import result, undetermined
from preflight.model import Action, Check, Evidence, Missing, Result, Status

#: The check that holds every result; the others, dcgm.TOPIC and dcgm.SEVERITY, say what a fault
#: of their kind is.
_EVERY = "dcgm.test"
#: What a fault is about -> its check; heat and row remapping have a runbook of their own.
_OF_TOPIC = {"thermal": "dcgm.thermal", "remap": "dcgm.remap"}
#: What is found on a processor, switch or card beside the GPUs.
_BESIDE = "dcgm.beside_gpus"
_GPU = re.compile(r"v?gpu")
_STATUS = {"Fail": Status.FAIL, "Warn": Status.WARN, "Pass": Status.WARN}
_SHOWN = 300


def judge_dcgm(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of the checks on one host. A fault whose own check was left out is told under
    dcgm.test: it is never passed over."""
    run = host.dcgm
    results = run if isinstance(run, Missing) else run.results
    if isinstance(results, Missing):
        return [undetermined(check, host.name, results) for check in checks]
    by_id = {check.id: check for check in checks}
    told: dict[str, list[Result]] = {identifier: [] for identifier in by_id}
    for one in results:
        kind = _kind(one)
        check = by_id.get(kind) or by_id.get(_EVERY)
        if check is not None and (kind or check.id == _EVERY):
            told[check.id].append(_judged(check, one, host))
    return [
        one
        for identifier, check in by_id.items()
        for one in told[identifier] or [_none(check, host, results)]
    ]


def _kind(one: DiagResult) -> str:
    """The check under which a fault is told; empty for what is none."""
    if isinstance(one.outcome, Missing) or (one.outcome == "Pass" and not one.text):
        return ""
    if _without_memory(one):
        return ""
    if _beside(one):
        return _BESIDE
    severity = "unknown" if isinstance(one.severity, Missing) else one.severity
    return _OF_TOPIC.get(one.topic) or f"dcgm.{severity}"


def _beside(one: DiagResult) -> bool:
    """Whether it is of no GPU; told for all devices, it is so by the test's name."""
    if isinstance(one.device, str):
        return _GPU.match(one.device) is None
    return one.test.lower().startswith("cpu")


def _without_memory(one: DiagResult) -> bool:
    """A test that passed on memory it did not get (NVIDIA/DCGM issue 284)."""
    return one.outcome == "Pass" and one.topic == "allocation"


def _judged(check: Check, one: DiagResult, host: Host) -> Result:
    if isinstance(one.outcome, Missing):
        return undetermined(check, one.name, one.outcome)
    evidence = (Evidence(one.probe, line=one.line),)
    if _without_memory(one):
        why = f"Pass, but it could not allocate its memory: {one.text[:_SHOWN] or 'see its notes'}"
        found = undetermined(check, one.name, Missing("unreadable", f"not verified: {why}"))
        found.evidence = evidence
        return found
    status = Status.PASS if not _kind(one) else _STATUS[one.outcome]
    # What cannot be remapped any more is not mended by a reset.
    spent = one.topic == "remap" and one.severity == "isolate"
    return result(
        check, one.name, status, one.outcome, "Pass", reason=_reason(one),
        device=_bus_id(host, one), evidence=evidence, action=Action.REPLACE if spent else None,
    )  # fmt: skip


def _reason(one: DiagResult) -> str:
    text = one.text[:_SHOWN] or "dcgmi says nothing more of it"
    codes = ", ".join(dict.fromkeys(map(str, one.error_ids)))
    return f"{text} (DCGM error {codes})" if codes else text


def _bus_id(host: Host, one: DiagResult) -> str:
    """The GPU's address. DCGM numbers GPUs as nvidia-smi does, in the order of their addresses."""
    if isinstance(host.gpus, Missing) or isinstance(one.device, Missing):
        return ""
    return next((gpu.bus_id for gpu in host.gpus if gpu.name == one.device), "")


def _none(check: Check, host: Host, results: Sequence[DiagResult]) -> Result:
    """No fault of this check's kind: as far as anything ran."""
    ran = [one for one in results if isinstance(one.outcome, str)]
    if not ran:
        skipped = Missing("not-asked", f"DCGM skipped all {len(results)} tests")
        return undetermined(check, host.name, skipped)
    return result(check, host.name, Status.PASS, f"none in {len(ran)} results", "none")
