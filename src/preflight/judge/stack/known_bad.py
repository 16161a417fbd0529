"""Versions known to be bad: every row of checks/data/known_bad.yaml is a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from preflight.errors import UsageError
from preflight.facts.host import Host
from preflight.facts.stack_pieces import Stack
from preflight.judge.results import result, undetermined
from preflight.judge.versions import is_version, version_holds
from preflight.model import Action, Check, Evidence, Known, Missing, Result, Status

#: Names in `when` that are no Python packages -> the piece of the stack.
_PIECES = {"driver": "driver", "cuda": "torch_cuda", "toolkit": "toolkit", "torch": "torch",
           "nccl": "nccl_loaded", "cudnn": "cudnn_bundled"}  # fmt: skip
_ANY = "any"


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """One row."""

    id: str
    title: str
    status: Literal["FAIL", "WARN"]
    when: dict[str, str]
    confidence: Literal["documented", "single account"]
    source: str
    why: str
    fix: tuple[str, ...]
    action: Action
    runbook: str


def known_bad_checks(rows: Sequence[Any], source: str) -> list[Check]:
    """The checks that the rows are. UsageError with every row that cannot be read."""
    found, wrong = [], []
    for number, row in enumerate(rows, 1):
        place = f"{source}:{getattr(row, 'line', 0) or f'row {number}'}"
        try:
            plain = {**row, "when": dict(row["when"]), "fix": list(row["fix"])}
            one = msgspec.convert(plain, Row)
        except (msgspec.ValidationError, LookupError, TypeError, ValueError) as error:
            wrong.append(f"{place}: {error}")
            continue
        wrong += [
            f"{place}: {name}: {versions!r} is neither `any` nor versions such as '>=1.2,<2'"
            for name, versions in one.when.items()
            if versions != _ANY and not is_version(versions)
        ]
        found.append(_check(one, plain, place))
    if wrong:
        raise UsageError("the table cannot be read:\n  " + "\n  ".join(wrong))
    return found


def _check(one: Row, plain: dict[str, Any], place: str) -> Check:
    return Check(
        id=one.id, title=one.title, source=place, fact="stack.packages", optional=True, why=one.why,
        fix=one.fix, action=one.action, runbook=one.runbook, rule="known-bad",
        row={"known_bad": plain},
    )  # fmt: skip


def judge_known_bad(host: Host, checks: Sequence[Check]) -> list[Result]:
    """One result for each row."""
    return [_judge(host, check) for check in checks]


def _judge(host: Host, check: Check) -> Result:
    row = msgspec.convert(check.row["known_bad"], Row)
    found = {name: _version(host.stack, name) for name in row.when}
    known = {name: one for name, one in found.items() if isinstance(one, str)}
    held = {name for name, one in known.items() if _holds(one, row.when[name])}
    measured = ", ".join(f"{name} {one}" for name, one in known.items())
    expected = "not " + " with ".join(f"{name} {row.when[name]}" for name in row.when)
    missing = [one for one in found.values() if isinstance(one, Missing)]
    if missing and held == set(known):
        worst = min(missing, key=lambda one: one.kind in ("not-in-input", "not-applicable"))
        return undetermined(check, host.name, worst, expected=expected)
    status = Status.PASS if held < set(found) else Status(row.status)
    reason = f"{row.confidence}: {row.source}"
    return result(check, host.name, status, measured, expected, reason=reason,
                  evidence=_shown(host.stack, row.when))  # fmt: skip


def _holds(version: str, wanted: str) -> bool:
    return wanted == _ANY or version_holds(version, wanted)


def _version(stack: Stack, name: str) -> Known[str]:
    if name in _PIECES:
        value: Known[str] = getattr(stack, _PIECES[name])
        absent = Missing("not-applicable", f"there is no {name}")
        return absent if value == "none" else value
    if isinstance(stack.packages, Missing):
        return stack.packages
    one = next((one for one in stack.packages if one.name == name), None)
    return one.version if one else Missing("not-applicable", f"{name} is not installed")


def _shown(stack: Stack, names: dict[str, str]) -> tuple[Evidence, ...]:
    told = [stack.told_by[_PIECES[name]] for name in names if _PIECES.get(name) in stack.told_by]
    listed = () if isinstance(stack.packages, Missing) else stack.packages
    lines = [Evidence(one.probe, line=one.line) for one in told]
    lines += [Evidence(one.probe, line=one.line) for one in listed if one.name in names]
    return tuple(dict.fromkeys(lines))
