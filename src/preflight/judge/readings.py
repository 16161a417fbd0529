"""What one host contributes to the judging of the fleet: small, so that the host can be let go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.facts.host import Host
from preflight.judge import paths
from preflight.judge.alike import is_stated
from preflight.judge.conditions import below, left_out, not_for, parsed, short
from preflight.judge.evidence import Lines
from preflight.judge.paths import Reached
from preflight.model import NOT_IN_INPUT, Check, Evidence, Missing, Scalar
from preflight.printable import printable

#: A longer text is told by its beginning; a digest keeps two such texts apart.
_TEXT_MAX = 240
#: Readings that are remembered as told: of values that differ on all hosts there is no end.
_TOLD_MAX = 10_000

#: The operator that is about one host as well as about many.
ALONE = "median"


class Reading(Struct, frozen=True, array_like=True, gc=False):
    """What a fleet check reads on one host, once for all elements of one value and one likeness.

    A value's line is given once. `subjects` are the elements' names, none where the fact is the
    host's own. `like` has the values that must be equal for two readings to be compared, None for
    one that is not known. A `value` of None says that the list was read and nothing is in it.
    """

    check: str
    value: Scalar | Missing
    like: tuple[Scalar, ...] = ()
    subjects: tuple[str, ...] = ()
    evidence: Evidence | None = None


class Readings(Struct, frozen=True, array_like=True, gc=False):
    """All readings of one host; none of a host that gave no answer."""

    host: str
    of: tuple[Reading, ...] = ()


def readings(
    host: Host, checks: Sequence[Check], lines: Lines, told: set[Reading] | None = None
) -> Readings:
    """What the fleet checks among `checks` read on this host.

    `told`: readings of earlier hosts whose line was looked up. One line for each value is enough to
    show it, and looking them all up would take a fifth of the time of judging a host.
    """
    told = set() if told is None else told
    found = (_of_check(host, check) for check in checks if check.across == "fleet")
    return Readings(host.name, tuple(_told(one, lines, told) for part in found for one in part))


def about_one(check: Check) -> bool:
    """Whether it says something about a host without others: by this machine, or by a value that
    was stated."""
    declared = check.fail_unless | check.warn_unless
    return ALONE in declared or is_stated(declared.get("uniform"))


def _told(one: Reading, lines: Lines, told: set[Reading]) -> Reading:
    """The reading, with its line where it is the first of its kind."""
    if one.evidence is None:
        return one
    bare = Reading(one.check, one.value, one.like, one.subjects)
    if bare in told:
        return bare
    if len(told) < _TOLD_MAX:
        told.add(bare)
    return replace(one, evidence=lines.shown(one.evidence))


def _of_check(host: Host, check: Check) -> Iterator[Reading]:
    reason = not_for(host, check)
    if reason:
        yield Reading(check.id, _left_out(reason))
        return
    reached = paths.reach(host, parsed(check.fact))
    if not reached:
        nothing = Reached(host.name, "", None, None)
        yield Reading(check.id, None, _like(host, check, nothing))
    by_value: dict[tuple[object, ...], list[Reached]] = {}
    values: dict[tuple[object, ...], tuple[Scalar | Missing, tuple[Scalar, ...]]] = {}
    for one in reached:
        value, like = _value(check, one), _like(host, check, one)
        # The types too: 1 and true are equal to Python, and not to a check.
        key: tuple[object, ...] = (type(value), value, *map(type, like), *like)
        values[key] = value, like
        by_value.setdefault(key, []).append(one)
    for key, found in by_value.items():
        value, like = values[key]
        subjects = tuple(one.subject for one in found if one.element is not None)
        yield Reading(check.id, value, like, subjects, next(iter(found[0].evidence), None))


def _value(check: Check, one: Reached) -> Scalar | Missing:
    reason = left_out(check, one)
    if reason:
        return _left_out(reason)
    return one.value if isinstance(one.value, Missing) else _bounded(short(one.value))


def _like(host: Host, check: Check, one: Reached) -> tuple[Scalar, ...]:
    return tuple(_bounded(short(_beside(host, text, one))) for text in check.like)


def _beside(host: Host, text: str, one: Reached) -> Any:
    """The value of a `like` path; that of an element where the whole list is missing is unknown."""
    if not text.startswith("."):
        return paths.reach(host, parsed(text))[0].value
    return NOT_IN_INPUT if one.element is None else below(one.element, text)


def _left_out(reason: str | Missing) -> Missing:
    return reason if isinstance(reason, Missing) else Missing("not-applicable", reason)


def _bounded(value: Scalar) -> Scalar:
    """The value as it can travel: no text without end, no number of more than 64 bits."""
    if not isinstance(value, str):
        return float(value) if isinstance(value, int) and abs(value) >= 1 << 63 else value
    if len(value) <= _TEXT_MAX:
        return printable(value)
    from hashlib import sha256  # for long texts only

    digest = sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{printable(value[:_TEXT_MAX])}... (SHA-256 {digest[:12]})"
