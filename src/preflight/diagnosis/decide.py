"""Signs of several readings -> findings: which cause first, what is its effect, what is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from preflight.diagnosis.causes import Cause, causes
from preflight.diagnosis.reading import Lack, Number, Reading, Sign
from preflight.model import Finding, Status

#: Shares so near to each other are told together, the first by the table's rank.
CLOSE = 0.05
#: Less is no sign of a cause at all.
_SEEN = 0.01
#: That a run learns says nothing of how fast.
_NOT_OF_SPEED = frozenset({"not-training", "crash", "hang"})
_CONFIDENCE = {"high": 0, "medium": 1, "low": 2}


def findings(readings: Sequence[Reading]) -> tuple[Finding, ...]:
    """Causes, the dearest first; then what could not be told; "healthy" where nothing is wrong and
    enough was seen to say so."""
    signs = _merged(one for reading in readings for one in reading.signs)
    told = [one for one in signs if status_of(one) is not None]
    told = _ordered(_without_effects(told))
    found = [_finding(one) for one in told]
    wrong = any(one.status in (Status.FAIL, Status.WARN) for one in found)
    if not wrong:
        found += _healthy(readings, [one for one in signs if status_of(one) is None])
        found += _incomplete(readings)
    found += _unread(readings)
    if readings and not found:  # unknown is never silent
        names = ", ".join(one.input for one in readings[:3])
        text = "INCOMPLETE: nothing in it tells of steps, nor that any rank stands still"
        found.append(Finding("step.unknown", Status.ERROR, names, text=text))
    return tuple(found)


def status_of(sign: Sign) -> Status | None:
    """By the bounds of its cause; None where it is below them."""
    row = causes()[sign.cause]
    if row.fail == "always":
        return Status.WARN if sign.suspected else Status.FAIL
    if row.fail is None and row.warn is None:
        return Status.PASS
    if sign.share is None:
        return Status.WARN
    if row.fail is not None and sign.share >= row.fail and sign.confidence != "low":
        return Status.FAIL
    return Status.WARN if row.warn is not None and sign.share >= row.warn else None


def _merged(signs: Iterable[Sign]) -> list[Sign]:
    """Signs of one cause and subject from several inputs are one: the surest speaks."""
    found: dict[tuple[str, str], Sign] = {}
    for one in signs:
        key = (one.cause, one.subject)
        if key not in found:
            found[key] = one
            continue
        first, second = sorted((found[key], one), key=_sureness)
        found[key] = replace(
            first, evidence=(*first.evidence, *second.evidence)[:6],
            against=tuple(dict.fromkeys((*first.against, *second.against))),
            text=_both(first.text, second.text),
        )  # fmt: skip
    return list(found.values())


def _both(text: str, other: str) -> str:
    """Two of them, and a third; more say nothing new."""
    return text if other in text or text.count("; also ") >= 2 else f"{text}; also {other}"


def _sureness(sign: Sign) -> tuple[bool, int, float]:
    return sign.suspected, _CONFIDENCE[sign.confidence], -(sign.share or 0)


def _without_effects(signs: Sequence[Sign]) -> list[Sign]:
    """What another sign explains is told in that one's words, and not by itself: a straggler that
    is throttled, communication that waits for a straggler. Of several the dearest has it."""
    effects: dict[int, list[Sign]] = {}
    kept = []
    for one in signs:
        behind = [two for two in signs if two is not one and _explains(two, one)]
        if behind:
            first = max(behind, key=lambda two: 1.0 if two.share is None else two.share)
            effects.setdefault(id(first), []).append(one)
        else:
            kept.append(one)
    return [_with_effects(one, effects.get(id(one), ())) for one in kept]


def _explains(cause: Sign, effect: Sign) -> bool:
    """Not where the effect is much dearer than the cause: then there is more to it."""
    if effect.cause not in causes()[cause.cause].behind:
        return False
    if cause.subject and effect.subject and cause.subject != effect.subject:
        return False
    if cause.share is None or effect.share is None:
        return True
    return cause.share >= effect.share / 2


def _with_effects(sign: Sign, effects: Sequence[Sign]) -> Sign:
    if not effects:
        return sign
    told = "; ".join(f"its effect: {one.text}" for one in effects)
    share = max((one.share for one in (sign, *effects) if one.share is not None), default=None)
    return replace(sign, text=f"{sign.text}; {told}", share=share)


def _ordered(signs: Sequence[Sign]) -> list[Sign]:
    """By share; those within five points of the one before by rank."""
    by_share = sorted(signs, key=_place)
    for at in range(1, len(by_share)):
        one, before = by_share[at], by_share[at - 1]
        if _close(one, before) and causes()[one.cause].rank < causes()[before.cause].rank:
            by_share[at - 1], by_share[at] = one, before
    return by_share


def _place(sign: Sign) -> tuple[int, int, float]:
    row = causes()[sign.cause]
    first = 0 if row.rank <= 1 and row.fail == "always" else 1
    harmless = 1 if status_of(sign) is Status.PASS else 0
    return harmless, first, -(1.0 if sign.share is None else sign.share)


def _close(one: Sign, two: Sign) -> bool:
    return one.share is not None and two.share is not None and abs(one.share - two.share) <= CLOSE


def _finding(sign: Sign) -> Finding:
    row: Cause = causes()[sign.cause]
    status = status_of(sign)
    text = f"{sign.text}, since {sign.since}" if sign.since else sign.text
    return Finding(
        sign.cause, status or Status.PASS, sign.subject, share=_rounded(sign.share, 4),
        seconds=_rounded(sign.seconds, 6), confidence=sign.confidence, text=text,
        evidence=sign.evidence, against=sign.against, fix=sign.fix or row.fix,
        runbook=row.runbook,
    )  # fmt: skip


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _healthy(readings: Sequence[Reading], below: Sequence[Sign]) -> list[Finding]:
    """That nothing is wrong, with the numbers that say so: only of readings that can rule causes
    out."""
    ruled_out = frozenset[str]().union(*(one.covers for one in readings))
    if not ruled_out - _NOT_OF_SPEED and "hang" not in ruled_out:
        return []
    against = [f"{one.cause}: {one.text}" for one in below]
    numbers = [number for one in readings for number in one.numbers]
    told = [_number(one) for one in numbers]
    steps = [
        f"{one.input}: {one.steps:,} steps, median {one.step_s:.4g} s" for one in readings
        if one.step_s is not None
    ]  # fmt: skip
    small = {one.cause: one.share for one in below if (one.share or 0.0) >= _SEEN}
    names = [name for name in causes() if name in ruled_out and name not in small]
    seen = [f"no sign of {', '.join(names)}"] if names else []
    seen += [f"{name} {share:.1%}, below its bound" for name, share in small.items()]
    text = "; ".join([*steps, *told, *seen])
    return [Finding("healthy", Status.PASS, text=text, against=tuple(against))]


def _number(one: Number) -> str:
    good = f" ({one.good})" if one.good else ""
    return f"{one.name} {one.value:.4g} {one.unit}".rstrip() + good


def _incomplete(readings: Sequence[Reading]) -> list[Finding]:
    """What no reading covers, and what would supply it; nothing where the figures of the run are
    good for its hardware: then nothing large is hidden."""
    if any(number.is_good for one in readings for number in one.numbers):
        return []
    covered = frozenset[str]().union(*(one.covers for one in readings))
    lacks = [
        lack for one in readings for lack in one.lacks
        if not all(cause in covered for cause in lack.causes)
    ]  # fmt: skip
    if not lacks:
        return []
    # Of a run that is called healthy for what was seen the numbers stand there.
    numbers = [number for one in readings for number in one.numbers]
    numbers = [] if covered - _NOT_OF_SPEED else numbers
    return [_lacking(lacks, covered, numbers)]


def _lacking(lacks: Sequence[Lack], covered: frozenset[str], numbers: Sequence[Number]) -> Finding:
    open_ = dict.fromkeys(cause for lack in lacks for cause in lack.causes if cause not in covered)
    texts = dict.fromkeys(lack.text for lack in lacks)
    told = "; ".join([*texts, *(_number(one) for one in numbers)])
    return Finding(
        "step.unknown", Status.ERROR,
        text=f"INCOMPLETE: {told}; not told without it: {', '.join(open_)}",
        fix=tuple(dict.fromkeys(lack.supply for lack in lacks)),
    )  # fmt: skip


def _unread(readings: Sequence[Reading]) -> list[Finding]:
    return [
        Finding("input.unread", Status.ERROR, reading.input, text=f"INCOMPLETE: {text}")
        for reading in readings for text in reading.unread
    ]  # fmt: skip
