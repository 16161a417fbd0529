"""How a result is written: short when it passes, with all a person needs when it does not."""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from preflight.judge.learn import learned_by
from preflight.model import (
    STATUS_OF_MISSING,
    Action,
    Check,
    Evidence,
    Missing,
    Result,
    Scalar,
    Status,
)
from preflight.printable import printable
from preflight.redact.secrets import secrets


@lru_cache(maxsize=1024)  # eight GPUs and sixty checks give one reason
def _safe(text: str) -> str:
    return secrets(printable(text))


def result(
    check: Check,
    subject: str,
    status: Status,
    measured: Scalar = None,
    expected: str = "",
    *,
    unit: str = "",
    reason: str = "",
    device: str = "",
    evidence: tuple[Evidence, ...] = (),
    action: Action | None = None,
    kind: str = "",
) -> Result:
    """One result of `check`; text from the host is made safe to print here, for all formats.
    `kind`: of what is missing."""
    shown = _safe(measured) if isinstance(measured, str) else measured
    if status is Status.PASS:
        return Result(check.id, subject, status, shown, expected, unit)
    reason = _safe(reason)
    if status is Status.SKIP:
        return Result(check.id, subject, status, shown, expected, unit, check.title, reason)
    if status is Status.ERROR:  # what the check would advise belongs to a fault nobody has seen
        return Result(check.id, subject, status, shown, expected, unit, check.title, reason,
                      fix=learned_by(check, reason, kind), device=device)  # fmt: skip
    return Result(
        check.id, subject, status, shown, expected, unit, check.title, reason, check.why,
        _fix(check), check.action if action is None else action, check.runbook, device, "",
        evidence,
    )  # fmt: skip


def _fix(check: Check) -> tuple[str, ...]:
    if not check.set:
        return check.fix
    from preflight.judge.advice import typed  # for few checks only

    return typed(check)


def about(check: Check, name: str) -> Check:
    """The check with a name in its advice, to be typed as it is: --set ID='[NAME]'."""
    return replace(check, fix=tuple(one.replace("[NAME]", f"[{name}]") for one in check.fix))


def undetermined(
    check: Check, subject: str, missing: Missing, *, device: str = "", expected: str = ""
) -> Result:
    """The result where the fact is missing: SKIP or ERROR by the kind, never PASS.

    `optional` turns an absent tool into a SKIP, unless the check was asked for by name; so is work
    that stood back for somebody's. A threshold that the user stated is never skipped.
    """
    status = STATUS_OF_MISSING[missing.kind]
    if check.optional and missing.kind == "no-tool" and not check.row.get("asked"):
        status = Status.SKIP
    # Active work never competes; who typed its name has no answer.
    if check.row.get("stated") or (missing.kind == "busy" and check.row.get("asked")):
        status = Status.ERROR
    return result(check, subject, status, None, expected, reason=missing.text, device=device,
                  kind=missing.kind)  # fmt: skip
