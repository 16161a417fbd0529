"""Faults of programs in bursts: whether they point at the program or at the hardware."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.judge.kernel_log.rows import Burst
from preflight.judge.kernel_log.seen import Seen, ago

#: Events closer than this are one burst: NVSentinel's and Fleet Intelligence's three minutes.
BURST_S = 180.0
#: A place that failed over days is still of interest so long after its last burst.
_STAYS_H = 7 * 24.0

_TPC = re.compile(r"\(GPC (\d+), TPC (\d+)")

Bursts = list[list[Seen]]
Places = set[tuple[str, str]]


def points_at_hardware(burst: Burst, seen: Sequence[Seen], alone: bool) -> tuple[float, str]:
    """For how many hours after the last event the bursts point at the hardware, 0 where they do
    not, and the sentence that says what they show."""
    bursts = _bursts(seen)
    recent = _recent(bursts, burst.within_h * 3600)
    if burst.by == "tpc":
        longer = _recent(bursts, burst.long_h * 3600) if burst.long_h else []
        if len(longer) >= max(burst.long_count, 2) and _one_place(longer):
            return _STAYS_H, _at_one_place(longer, bursts)
        if len(recent) >= burst.count and _one_place(recent):
            return burst.within_h, _at_one_place(recent, bursts)
        return 0.0, f"{_how_often(bursts)}{_spread(bursts)}{_by(bursts)}"
    if len(recent) >= burst.count and len(_names(recent)) > 1 and alone:
        which = _which(recent, bursts)
        return burst.within_h, f"{which}, from {len(_names(recent))} programs, on this GPU only"
    others = "" if alone else ", and on other GPUs too"
    return 0.0, f"{_how_often(bursts)}{_by(bursts)}{others}"


def _names(bursts: Bursts) -> set[str]:
    # One program does the same again and again, whatever its process number.
    return {fault.process for one in bursts for fault in one if fault.process}


def _by(bursts: Bursts) -> str:
    count = len(_names(bursts))
    return f", by {count} programs" if count > 1 else ""


def _places(burst: Sequence[Seen]) -> Places:
    return {place for fault in burst for place in _TPC.findall(fault.text)}


def _one_place(bursts: Bursts) -> bool:
    """Whether several programs failed at one place, in all of the bursts."""
    places = [_places(one) for one in bursts]
    return all(places) and len(set().union(*places)) == 1 and len(_names(bursts)) > 1


def _at_one_place(part: Bursts, bursts: Bursts) -> str:
    ((gpc, tpc),) = _places(part[0])
    before = bursts[: len(bursts) - len(part)]
    nowhere = "" if before else " and nowhere else"
    told = f"{_which(part, bursts)}, each time in GPC {gpc}, TPC {tpc}{nowhere}{_by(part)}"
    return f"{told}; before that {_how_often(before)}{_spread(before)}" if before else told


def _which(part: Bursts, bursts: Bursts) -> str:
    if len(part) == len(bursts):
        return _how_often(bursts)
    begin, end = part[0][0].at_s, part[-1][-1].at_s
    span = f" within {ago(end - begin)}" if begin is not None and end is not None else ""
    return f"the last {len(part)} of {len(bursts)} bursts{span}"


def _how_often(bursts: Bursts) -> str:
    return "in one burst" if len(bursts) == 1 else f"in {len(bursts)} bursts"


def _spread(bursts: Bursts) -> str:
    hit = set[tuple[str, str]]().union(*map(_places, bursts))
    if not hit:
        return ""
    return ", in one TPC" if len(hit) == 1 else f", in {len(hit)} different TPCs"


def _bursts(seen: Sequence[Seen]) -> Bursts:
    """Groups of events less than BURST_S apart; an event without time joins the one before it."""
    groups: Bursts = []
    before: float | None = None
    for one in seen:
        if groups and (one.at_s is None or before is None or one.at_s - before < BURST_S):
            groups[-1].append(one)
        else:
            groups.append([one])
        before = one.at_s if one.at_s is not None else before
    return groups


def _recent(bursts: Bursts, within_s: float) -> Bursts:
    """The bursts that end within `within_s` of the end of the last."""
    end = bursts[-1][-1].at_s
    if end is None:
        return bursts
    ends = [end if burst[-1].at_s is None else burst[-1].at_s for burst in bursts]
    first = next(at for at, at_s in enumerate(ends) if end - at_s <= within_s)
    return bursts[first:]
