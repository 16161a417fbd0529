"""Checks on the facts of one host."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import median
from typing import Any

import msgspec
from msgspec import Struct

from preflight.expect.bounds import BOUNDS
from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.judge import paths
from preflight.judge.conditions import below, holds, left_out, not_for, parsed, short, with_unit
from preflight.judge.drill import DRILL, judge_drill
from preflight.judge.learn import learned_by
from preflight.judge.operators import OFF, OPERATORS, majority, shown
from preflight.judge.paths import Reached
from preflight.judge.results import result, undetermined
from preflight.judge.rules import judge_rule
from preflight.judge.steps import fitting, of_device, of_layer, of_what_was_found
from preflight.judge.ways import on_its_way
from preflight.model import Check, Missing, Result, Status

#: Checks on benches of the network, with steps for one way of the data or another.
_OF_NETWORK = ("collectives.", "wire.")
#: Fields of an element that say in words what its value means, where there is something to say.
_IN_WORDS = ("when", "where", "why_not_flash")


class Wanted(Struct, frozen=True):
    """An operator with its argument resolved for one element. `missing` where it could not be."""

    operator: str
    argument: Any = None
    expected: str = ""
    missing: Missing | None = None


def judge(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of all checks on one host, in the order of the checks; those over the fleet have
    none here."""
    checks = [check for check in checks if check.across != "fleet"]
    drills = [check for check in checks if check.rule == DRILL]
    found = _by_themselves(host, [check for check in checks if check.rule != DRILL])
    for one in found:
        if one.check.startswith(_OF_NETWORK):
            on_its_way(host, None, one)
    return [*found, *judge_drill(host, drills, found)] if drills else found


def _by_themselves(host: Host, checks: Sequence[Check]) -> list[Result]:
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
    reached = paths.reach(host, parsed(check.fact))
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
    reason = not_for(host, check)
    if isinstance(reason, Missing):
        return undetermined(check, host.name, reason)
    if not reason:
        return None
    measured = sorted({shown(one.value) for one in reached if _known(one.value)})
    return result(check, host.name, Status.SKIP, ", ".join(measured) or None, reason=reason)


def _judge_one(host: Host, check: Check, one: Reached) -> Result:
    reason = left_out(check, one)
    if isinstance(reason, Missing):
        return undetermined(check, one.subject, reason, device=one.device)
    if reason:
        return result(check, one.subject, Status.SKIP, short(one.value), reason=reason)
    if isinstance(one.value, Missing) and not _absent(check, one.value):
        return _unmeasured(check, one, one.value)
    verdict = Status.PASS, Wanted("")
    for status, wanted in _thresholds(host, check, one.element):
        if wanted.missing is not None:
            return _unresolved(check, one, wanted.missing)
        verdict = Status.PASS, wanted
        if not holds(one.value, wanted.operator, wanted.argument):
            verdict = status, wanted
            break
    status, wanted = verdict
    found = result(
        check, one.subject, status, short(one.value), wanted.expected, reason=_said(one, check),
        unit=parsed(check.fact).unit, device=one.device, evidence=one.evidence,
    )  # fmt: skip
    return _fitted(host, check, one, found)


def _thresholds(host: Host, check: Check, element: Any) -> list[tuple[Status, Wanted]]:
    """What it is held against. Of a check with a value that the user stated the other threshold
    may be unknown: the stated one is judged by itself."""
    both = ((Status.FAIL, check.fail_unless), (Status.WARN, check.warn_unless))
    found = [(status, _resolve(host, element, one)) for status, one in both if one]
    if not check.row.get("stated"):
        return found
    return [each for each in found if each[1].missing is None] or found


def _fitted(host: Host, check: Check, one: Reached, found: Result) -> Result:
    """With the steps that fit the place."""
    if found.fix:
        told = f"{found.reason} {found.measured} {found.expected}"
        found.fix = of_what_was_found(found.fix, told)
        found.fix = fitting(found.fix, host.container, at_top=_at_top(host, check, one))
        if check.domain == "stress":
            found.fix = of_device(found.fix, one.subject)
        if check.id.startswith(_OF_NETWORK):
            on_its_way(host, one.element, found)
        if isinstance(one.element, NicPort):
            found.fix = of_layer(found.fix, one.element.link_layer)
    return found


def _at_top(host: Host, check: Check, one: Reached) -> bool:
    """Whether it is a soft limit that is as high as the hard one."""
    stem, dot, field = check.fact.rpartition(".")
    if field != "soft":
        return False
    hard = {each.subject: each.value for each in paths.reach(host, parsed(f"{stem}{dot}hard"))}
    return bool(hard[one.subject] == one.value)


def _said(one: Reached, check: Check) -> str:
    """A GPU that does not answer has a sentence of the driver in place of its name; what happened
    once has a time. What `x` of an element means may stand beside it, as `x_said`."""
    for name in (f"{check.fact.rpartition('.')[2]}_said", *_IN_WORDS):
        if told := getattr(one.element, name, ""):
            return str(told)
    trouble = getattr(one.element, "trouble", "")
    if trouble and isinstance(one.value, bool):
        return str(trouble)
    product = getattr(one.element, "product", None)
    return product.text if one.value is False and isinstance(product, Missing) else ""


def _unmeasured(check: Check, one: Reached, missing: Missing) -> Result:
    """Of a value that is not there. What a command is for is undetermined where nobody asked for a
    size by which it can be judged."""
    found = undetermined(check, one.subject, missing, device=one.device)
    measured = bool(getattr(one.element, "rows", ()))
    if measured and missing.kind == "not-asked" and check.needs_bound and check.row.get("asked"):
        found.status = Status.ERROR
        found.reason = f"INCOMPLETE: not judged: {found.reason}"
        found.fix = learned_by(check, found.reason, missing.kind)
    return found


def _unresolved(check: Check, one: Reached, missing: Missing) -> Result:
    found = undetermined(check, one.subject, missing, device=one.device)
    found.measured, found.unit = short(one.value), parsed(check.fact).unit
    if check.needs_bound and check.row.get("asked"):
        found.status = Status.ERROR
        found.reason = f"INCOMPLETE: held against nothing: {found.reason}"
        found.fix = learned_by(check, found.reason, missing.kind)
    return found


def _judge_across(host: Host, check: Check, reached: list[Reached]) -> Result:
    reasons = [left_out(check, one) for one in reached]
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
    measured = short(values[0]) if alike else f"{len(values)} values"
    unit = parsed(check.fact).unit if alike else ""
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
    usual = majority(values) if name == "uniform" and argument is True else None
    told = ", ".join(f"{kept[at].subject} {with_unit(check, values[at])}" for at in off)
    others = f"; the others {with_unit(check, usual)}" if usual is not None else ""
    others = f"; the median {with_unit(check, median(values))}" if name == "outlier" else others
    found = result(
        check, host.name, status, f"{told}{others}", OPERATORS[name].phrase(argument),
        device=kept[off[0]].device,
        evidence=tuple(part for at in off[:2] for part in kept[at].evidence),
    )  # fmt: skip
    found.fix = (
        of_device(found.fix, kept[off[0]].subject) if check.domain == "stress" else found.fix
    )
    return found


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
            below(element, text)
            if text.startswith(".")
            else paths.reach(host, parsed(text))[0].value
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
