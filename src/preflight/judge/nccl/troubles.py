"""Errors of adapters and warnings, with what they mean: by checks/data/nccl_errors.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import replace

from preflight import datafiles, strict_yaml
from preflight.facts.host import Host
from preflight.facts.nccl import NcclCompletion, NcclLog, NcclReturn, NcclWarning
from preflight.judge.results import result, undetermined
from preflight.model import Action, Check, Evidence, Missing, Result, Status

_SILENT = Missing("not-asked", "the log has nothing but the version: NCCL_DEBUG=INFO was not set")
_FILE = "nccl_errors.yaml"
#: Of so many lines that say the same the first are told.
_TOLD_MAX = 20
#: A call of CUDA or of the system, or the network: a run does not go on.
_GRAVE = (1, 2, 6)
_CLOSING = re.compile(r"(?:misc/socket|proxy|bootstrap|transport/\w+)\.cc")


class Completion(Struct, frozen=True, forbid_unknown_fields=True):
    """A status of ibv_wc_status. `echo`: an earlier one is the cause."""

    name: str
    means: str
    echo: bool = False


class Warned(Struct, frozen=True, forbid_unknown_fields=True):
    """A text of NCCL WARN; see the head of the table."""

    text: str
    status: Status
    means: str
    fix: tuple[str, ...]
    action: Action
    runbook: str
    echo: bool = False


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole table."""

    results: dict[int, str]
    completions: dict[int, Completion]
    vendors: dict[int, str]
    warnings: tuple[Warned, ...]


@cache
def table() -> Table:
    """The table, as it is declared."""
    path = datafiles.root() / "checks" / "data" / _FILE
    document: Any = strict_yaml.load(path.read_text(encoding="utf-8"), f"checks/data/{_FILE}")
    return convert(document, Table, strict=False)


def judge_completions(_host: Host, log: NcclLog, check: Check) -> list[Result]:
    """Each error of an adapter, with its peer. What was flushed after another is told last."""
    found = sorted(log.completions, key=lambda one: (_is_echo(one), one.line))
    told = [_completion(check, one) for one in found[:_TOLD_MAX]]
    return told or [_none(check, log)]


def _is_echo(one: NcclCompletion) -> bool:
    row = table().completions.get(one.status)
    return row is not None and row.echo


def _completion(check: Check, one: NcclCompletion) -> Result:
    row = table().completions.get(one.status)
    name = row.name if row else "a status that the table does not have"
    measured = f"error {one.status} ({name}) from peer {one.peer}"
    reason = row.means if row else ""
    if isinstance(one.vendor_error, int):
        said = table().vendors.get(one.vendor_error, "")
        reason += f"; vendor error {one.vendor_error}" + (f": {said}" if said else "")
    if isinstance(one.adapter, str):
        reason += f"; on {one.adapter}"
    if one.count > 1:
        reason += f"; {one.count} times"
    return result(
        check, one.name, Status.FAIL, measured, "none", reason=reason,
        evidence=(Evidence(one.probe, line=one.line),),
    )  # fmt: skip


def _none(check: Check, log: NcclLog) -> Result:
    if not (log.info_lines or log.warnings or log.completions):
        return undetermined(check, "job", _SILENT)
    return result(check, "job", Status.PASS, f"none in {log.lines:,} lines", "none")


def judge_warnings(_host: Host, log: NcclLog, check: Check) -> list[Result]:
    """Each warning by its row; alike ones of many processes once, with who else."""
    told = [_warning(check, one, others) for one, others in _grouped(log.warnings)]
    if not told and not log.completions and (left := _untold(log)):
        told = [_returned(check, left[0], ready=_ready(log))]
    return told[:_TOLD_MAX] or [_none(check, log)]


def _grouped(warnings: tuple[NcclWarning, ...]) -> Iterator[tuple[NcclWarning, int]]:
    """The first of each row, or of each text that has none, and how many more there are; echoes
    last."""
    groups: dict[str, list[NcclWarning]] = {}
    for one in warnings:
        row = _row(one.text)
        groups.setdefault(row.text if row else one.text, []).append(one)
    order = sorted(groups.values(), key=lambda found: (_echoes(found[0]), found[0].line))
    for found in order:
        yield found[0], sum(one.count for one in found) - 1


def _echoes(one: NcclWarning) -> bool:
    row = _row(one.text)
    return row is not None and row.echo


@cache
def _row(text: str) -> Warned | None:
    lowered = text.lower()
    return next((row for row in table().warnings if re.search(row.text, lowered)), None)


def _warning(check: Check, one: NcclWarning, others: int) -> Result:
    row = _row(one.text)
    if row:
        check = replace(check, fix=row.fix, action=row.action, runbook=row.runbook)
    reason = row.means if row else "no row of checks/data/nccl_errors.yaml knows this text"
    reason += f" ({others} more like it)" if others else ""
    return result(
        check, one.name, row.status if row else Status.WARN, one.text[:160], "none", reason=reason,
        evidence=(Evidence(one.probe, line=one.line),),
    )  # fmt: skip


def _ready(log: NcclLog) -> bool:
    told = log.communicators
    return not isinstance(told, Missing) and any(one.complete for one in told)


def _untold(log: NcclLog) -> list[NcclReturn]:
    """Errors that no warning explains. When processes end, the sockets between them close with an
    internal error: once a communicator was complete that is how a run ends."""
    closing = _CLOSING if _ready(log) else re.compile("(?!)")
    return [one for one in log.returns if not (one.code == 3 and closing.match(one.place))]


def _returned(check: Check, one: NcclReturn, *, ready: bool) -> Result:
    means = table().results.get(one.code, "an error that the table does not have")
    reason = "a call failed and the warning that says why is not in the log"
    return result(
        check, one.name, Status.WARN if ready and one.code not in _GRAVE else Status.FAIL,
        f"{one.place} -> {one.code}: {means}", "none", reason=reason,
        evidence=(Evidence(one.probe, line=one.line),),
    )  # fmt: skip
