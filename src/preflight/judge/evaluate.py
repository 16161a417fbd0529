"""Checks on the facts of one host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import groupby
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct

from preflight.expect.bounds import BOUNDS
from preflight.facts.host import Host
from preflight.judge import paths
from preflight.judge.operators import NUMERIC, OFF, OPERATORS, majority, shown, wrong_type
from preflight.judge.paths import Reached
from preflight.judge.results import result, undetermined
from preflight.judge.rules import judge_rule
from preflight.model import STATUS_OF_MISSING, Check, Missing, Result, Scalar, Status

_parse = cache(paths.parse)


class Wanted(Struct, frozen=True):
    """An operator with its argument resolved for one element. `missing` where it could not be."""

    operator: str
    argument: Any = None
    expected: str = ""
    missing: Missing | None = None


def judge(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of all checks on one host, in the order of the checks."""
    by_rule = {
        rule: judge_rule(rule, host, list(group))
        for rule, group in groupby(sorted(checks, key=_rule), key=_rule)
        if rule
    }
    of_rules: dict[str, list[Result]] = {}
    for found in by_rule.values():
        for one in found:
            of_rules.setdefault(one.check, []).append(one)
    return [
        one
        for check in checks
        for one in (of_rules.get(check.id, []) if check.rule else _judge(host, check))
    ]


def _rule(check: Check) -> str:
    return check.rule


def _judge(host: Host, check: Check) -> list[Result]:
    reached = paths.reach(host, _parse(check.fact))
    excluded = _excluded(host, check, reached)
    if excluded is not None:
        return [excluded]
    if not reached:
        nothing = Missing("unreadable", f"{check.fact} reaches nothing on this host")
        return [undetermined(check, host.name, nothing)]
    if check.across == "host":
        return [_judge_across(host, check, reached)]
    return _skipped_once(host, [_judge_one(host, check, one) for one in reached])


def _skipped_once(host: Host, results: list[Result]) -> list[Result]:
    """What is skipped on every GPU for one reason is skipped on the host, and told once."""
    first = results[0]
    alike = all(one.status is Status.SKIP and one.reason == first.reason for one in results)
    if len(results) < 2 or not alike:
        return results
    same = all(one.measured == first.measured for one in results)
    measured = first.measured if same else None
    return [msgspec.structs.replace(first, subject=host.name, device="", measured=measured)]


def _excluded(host: Host, check: Check, reached: list[Reached]) -> Result | None:
    """The one SKIP (or, where it cannot be told, ERROR) of a check that is not for this host."""
    if check.host_only and isinstance(host.container, str) and host.container != "none":
        missing = Missing("not-applicable", "belongs to the host, not to a container")
        return undetermined(check, host.name, missing)
    for text, wanted in () if check.row.get("stated") else check.when.items():
        value = paths.reach(host, _parse(text))[0].value
        if isinstance(value, Missing):
            return undetermined(check, host.name, value)
        if not _condition(value, wanted):
            measured = sorted({shown(one.value) for one in reached if _known(one.value)})
            reason = f"only where {text} is {_phrase(wanted)}; here it is {shown(value)}"
            return result(check, host.name, Status.SKIP, ", ".join(measured) or None, reason=reason)
    return None


def _judge_one(host: Host, check: Check, one: Reached) -> Result:
    reason = _left_out(check, one)
    if isinstance(reason, Missing):
        return undetermined(check, one.subject, reason, device=one.device)
    if reason:
        return result(check, one.subject, Status.SKIP, _short(one.value), reason=reason)
    if isinstance(one.value, Missing) and not _absent(check, one.value):
        return undetermined(check, one.subject, one.value, device=one.device)
    verdict = Status.PASS, Wanted("")
    for status, declared in ((Status.FAIL, check.fail_unless), (Status.WARN, check.warn_unless)):
        if not declared:
            continue
        wanted = _resolve(host, one.element, declared)
        if wanted.missing is not None:
            return _unresolved(check, one, wanted.missing)
        verdict = Status.PASS, wanted
        if not _holds(one.value, wanted):
            verdict = status, wanted
            break
    status, wanted = verdict
    return result(
        check, one.subject, status, _short(one.value), wanted.expected, reason=_said(one),
        unit=_parse(check.fact).unit, device=one.device, evidence=one.evidence,
    )  # fmt: skip


def _said(one: Reached) -> str:
    """A GPU that does not answer has a sentence of the driver in place of its name."""
    trouble = getattr(one.element, "trouble", "")
    if trouble and isinstance(one.value, bool):
        return str(trouble)
    product = getattr(one.element, "product", None)
    return product.text if one.value is False and isinstance(product, Missing) else ""


def _unresolved(check: Check, one: Reached, missing: Missing) -> Result:
    found = undetermined(check, one.subject, missing, device=one.device)
    found.measured, found.unit = _short(one.value), _parse(check.fact).unit
    return found


def _judge_across(host: Host, check: Check, reached: list[Reached]) -> Result:
    reasons = [_left_out(check, one) for one in reached]
    kept = [one for one, reason in zip(reached, reasons, strict=True) if not reason]
    # Two that differ, differ, whatever the others are.
    kept = [one for one in kept if not isinstance(one.value, Missing)]
    values = [one.value for one in kept]
    for status, declared in ((Status.FAIL, check.fail_unless), (Status.WARN, check.warn_unless)):
        if not declared or not kept:
            continue
        ((name, argument),) = declared.items()
        off = OFF[name](values, argument)
        if off:
            return _off(host, check, status, name, argument, kept, off)
    unknown = _unknown(host, check, reached, reasons)
    if unknown is not None:
        return unknown
    if not kept:
        return result(check, host.name, Status.SKIP, reason=str(reasons[0]))
    few = _too_few(check, len(kept))
    if few:
        return result(check, host.name, Status.SKIP, reason=few)
    ((name, argument),) = (check.fail_unless or check.warn_unless).items()
    alike = name == "uniform"
    measured = _short(values[0]) if alike else f"{len(values)} values"
    unit = _parse(check.fact).unit if alike else ""
    phrase = OPERATORS[name].phrase(argument)
    return result(check, host.name, Status.PASS, measured, phrase, unit=unit)


def _too_few(check: Check, count: int) -> str:
    """Why nothing was compared; empty where something was."""
    declared = [found for found in (check.fail_unless, check.warn_unless) if found]
    least = [one["outlier"]["of"] for one in declared if "outlier" in one]
    if len(least) < len(declared) or count >= min(least):
        return ""
    return f"{count} to compare, and it takes {shown(min(least))}"


def _unknown(
    host: Host, check: Check, reached: list[Reached], reasons: list[str | Missing]
) -> Result | None:
    """The result where some value is missing. One that should be there and cannot be read is the
    subject: it is to be mended before they can be compared."""
    found = [
        undetermined(check, one.subject, missing, device=one.device)
        for one, reason in zip(reached, reasons, strict=True)
        for missing in ((reason or one.value),)
        if isinstance(missing, Missing)
    ]
    error = next((one for one in found if one.status is Status.ERROR), None)
    if found and error is None:
        return msgspec.structs.replace(found[0], subject=host.name)
    return error


def _off(
    host: Host, check: Check, status: Status, name: str, argument: Any,
    kept: list[Reached], off: list[int],
) -> Result:  # fmt: skip
    values = [one.value for one in kept]
    usual = majority(values) if name == "uniform" else None
    told = ", ".join(f"{kept[at].subject} {_with_unit(check, values[at])}" for at in off)
    others = f"; the others {_with_unit(check, usual)}" if usual is not None else ""
    others = f"; the median {_with_unit(check, median(values))}" if name == "outlier" else others
    return result(
        check, host.name, status, f"{told}{others}", OPERATORS[name].phrase(argument),
        device=kept[off[0]].device,
        evidence=tuple(part for at in off[:2] for part in kept[at].evidence),
    )  # fmt: skip


def _with_unit(check: Check, value: Any) -> str:
    """A value within a text, where no unit can stand behind it."""
    unit = _parse(check.fact).unit
    return f"{shown(value)} {unit}" if unit else shown(value)


def _left_out(check: Check, one: Reached) -> str | Missing:
    """Why `where` leaves this element out; empty where it does not."""
    stated = check.row.get("stated")  # by the user, for every element
    for text, wanted in () if stated or one.element is None else check.where.items():
        value = paths.value_at(one.element, tuple(text[1:].split(".")))
        if isinstance(value, Missing):
            if _is_not(wanted) and STATUS_OF_MISSING[value.kind] is Status.SKIP:
                continue  # what the device does not have, it has not with this value either
            return value
        if not _condition(value, wanted):
            return f"only where {text[1:]} is {_phrase(wanted)}; here it is {shown(value)}"
    return ""


def _is_not(wanted: Any) -> bool:
    return isinstance(wanted, dict) and "not" in wanted


def _condition(value: Any, wanted: Any) -> bool:
    ((name, argument),) = (wanted if isinstance(wanted, dict) else {"equals": wanted}).items()
    return _holds(value, Wanted(name, argument))


def _phrase(wanted: Any) -> str:
    ((name, argument),) = (wanted if isinstance(wanted, dict) else {"equals": wanted}).items()
    return OPERATORS[name].phrase(argument)


def _holds(value: Any, wanted: Wanted) -> bool:
    if wanted.operator == "present":
        return isinstance(value, Missing) is not wanted.argument
    if wanted.operator in NUMERIC and wrong_type(value, wanted.argument):
        return False
    return OPERATORS[wanted.operator].holds(value, wanted.argument)


def _absent(check: Check, missing: Missing) -> bool:
    """Whether the check asks for presence and the device says that it has none."""
    asks = "present" in check.fail_unless or "present" in check.warn_unless
    return asks and missing.kind == "not-applicable"


def _resolve(host: Host, element: Any, declared: dict[str, Any]) -> Wanted:
    """The operator with {fact: ...} and {bound: ...} replaced by their values."""
    ((name, argument),) = declared.items()
    if not isinstance(argument, dict) or OPERATORS[name].many:
        return Wanted(name, argument, OPERATORS[name].phrase(argument))
    if "fact" in argument:
        text = argument["fact"]
        value = (
            paths.value_at(element, tuple(text[1:].split(".")))
            if text.startswith(".")
            else paths.reach(host, _parse(text))[0].value
        )
        if isinstance(value, Missing):
            return Wanted(name, missing=value)
        return Wanted(name, value, OPERATORS[name].phrase(value))
    bound = BOUNDS[argument["bound"]](host, element)
    if isinstance(bound, Missing):
        return Wanted(name, missing=bound)
    fraction = argument.get("fraction")
    value = bound.value if fraction is None else bound.value * fraction
    share = "" if fraction is None else f"{fraction:.0%} of {shown(bound.value)}, "
    told = f" ({share}{bound.formula})" if share or bound.formula else ""
    return Wanted(name, value, f"{OPERATORS[name].phrase(value)}{told}")


def _known(value: Any) -> bool:
    return not isinstance(value, Missing)


def _short(value: Any) -> Scalar:
    """The value as a report shows it: a list by its parts, never a record printed whole."""
    if isinstance(value, Missing):
        return None
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        named = [getattr(part, "name", part) for part in value]
        return shown(named) if named else "none"
    return str(value)
