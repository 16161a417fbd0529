"""What `dcgmi diag` found. It is read from recordings alone: to run it is active work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from preflight.errors import ParseError
from preflight.facts.dcgm import DcgmDiag, DiagResult
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.dcgm.errors import Message, code_of, severity_of, topic_of
from preflight.probes.dcgm.json_form import begins, read_json
from preflight.probes.dcgm.table import Table, TableResult, read_table
from preflight.probes.spec import probe

_PROBE = "dcgmi-diag"
_OUTCOMES = {"pass": "Pass", "fail": "Fail", "warn": "Warn"}
#: Tests of the software around the GPUs, which say nothing of the GPUs.
_SOFTWARE = frozenset({"deployment", "software"})
_TEXT_MAX = 2000
_FAILED = re.compile(
    r"^[ \t]{0,32}(Error: (?:Diagnostic|unable to).*)$", re.MULTILINE | re.IGNORECASE
)


@probe(_PROBE, ["dcgmi", "diag", "-r", "1"], timeout_s=60)
def dcgmi_diag(text: str) -> DcgmDiag:
    """Every test of every GPU, of the table and the JSON of DCGM 2 to 4."""
    table = read_json(text) if begins(text) >= 0 else read_table(text)
    said = _FAILED.search(text)
    if said and not table.results:
        table.metadata.setdefault("runtime_error", said[1])
    results = [one for found in _told_once(table.results) for one in _results(found)]
    error = table.metadata.get("runtime_error", "")
    if not results and not error and not table.metadata:
        raise ParseError("expected the table or the JSON of `dcgmi diag`", 1)
    ids = table.metadata.get("GPU Device IDs Detected", "")
    gpus = len(re.findall(r"[0-9A-Fa-f]{2,8}", ids)) if ids else 0
    none = Missing("unreadable", f"the diagnostic did not run: {error or 'no test is told'}")
    return DcgmDiag(
        results=tuple(results) if results else none,
        verified=_verified(table, results, gpus) if results else none,
        version=table.metadata.get("DCGM Version") or NOT_IN_INPUT,
        driver=table.metadata.get("Driver Version Detected") or NOT_IN_INPUT,
        gpus=gpus or NOT_IN_INPUT,
        line=table.first or 1,
        probe=_PROBE,
    )


def _told_once(results: Sequence[TableResult]) -> Iterator[TableResult]:
    """Without the summaries of tests whose devices are told apart, where they say nothing new."""
    for _, group in groupby(results, key=lambda one: (one.category, one.test)):
        mine = list(group)
        statuses = {one.status for one in mine if one.devices}
        for one in mine:
            if one.devices or not statuses or one.messages or one.status not in statuses:
                yield one


def _results(found: TableResult) -> Iterator[DiagResult]:
    """One for each device that is told, else one for all of them."""
    devices: Sequence[str] = found.devices
    if not devices and not found.for_all and found.status in ("fail", "warn"):
        # a test of the whole host that names the GPUs it failed on
        devices = sorted({device for device, _ in found.messages if device})
    if not devices:
        yield _result(found, "", [message for _, message in found.messages])
        return
    for device in devices:
        mine = [message for of, message in found.messages if of in ("", device)]
        strangers = [message for of, message in found.messages if of and of not in devices]
        yield _result(found, device, mine + (strangers if device == devices[0] else []))


def _result(found: TableResult, device: str, messages: Sequence[Message]) -> DiagResult:
    text = "; ".join(message.text for message in messages)[:_TEXT_MAX]
    everyone = Missing("not-applicable", "told for all devices together")
    return DiagResult(
        name=f"{found.test} {device}".strip(),
        test=found.test,
        outcome=_outcome(found, text),
        category=found.category,
        device=device or everyone,
        severity=severity_of(messages),
        topic=_topic(found, messages),
        text=text,
        error_ids=tuple(code for message in messages if (code := code_of(message)) is not None),
        line=found.line,
        probe=_PROBE,
    )


def _topic(found: TableResult, messages: Sequence[Message]) -> str:
    """A test that could not get its memory may say so among its notes."""
    topic = topic_of(messages)
    notes = [Message(text) for text in found.info]
    return topic or ("allocation" if topic_of(notes) == "allocation" else "")


def _outcome(found: TableResult, text: str) -> Known[str]:
    if found.status in _OUTCOMES:
        return _OUTCOMES[found.status]
    if found.status[:4] in ("skip", "not "):
        why = text or "; ".join(found.info)[:_TEXT_MAX] or "dcgmi gives no reason"
        return Missing("not-asked", f"DCGM skipped it: {why}")
    return Missing("unreadable", f"{found.status!r} is no result of a test")


def _verified(table: Table, results: Sequence[DiagResult], gpus: int) -> Known[int]:
    """How many tests of the hardware gave a verdict; of the software's where it is the only one."""
    if not table.whole:
        return Missing("unreadable", "not verified: the end of the output is not in the input")
    hardware = [one for one in results if not _of_software(one)]
    asked = hardware or list(results)
    ran = [one for one in asked if isinstance(one.outcome, str)]
    if not ran:
        what = "tests of the hardware" if hardware else "tests"
        return Missing("unreadable", f"not verified: all {len(asked)} {what} were skipped")
    untold = _untold(asked, gpus)
    return Missing("unreadable", f"not verified: {untold}") if untold else len(ran)


def _of_software(one: DiagResult) -> bool:
    return one.category.lower() in _SOFTWARE or one.test.lower() in _SOFTWARE


def _untold(results: Sequence[DiagResult], gpus: int) -> str:
    """Which test tells of fewer GPUs than there are; empty where none does."""
    told: dict[str, set[str]] = {}
    for one in results:
        device = one.device if isinstance(one.device, str) else "all"
        told.setdefault(one.test, set()).add(device)
    for test, devices in told.items():
        of_gpus = {device for device in devices if device.startswith("gpu")}
        if of_gpus and "all" not in devices and len(of_gpus) < gpus:
            return f"{test} tells of {len(of_gpus)} of {gpus} GPUs"
    return ""
