"""Faults of programs in bursts: whether they point at the program or at the hardware."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.judge.kernel_log.rows import Burst
from preflight.judge.kernel_log.seen import Seen

#: Events closer than this are one burst: NVSentinel's and Fleet Intelligence's three minutes.
BURST_S = 180.0

_TPC = re.compile(r"\(GPC (\d+), TPC (\d+)")


def points_at_hardware(burst: Burst, seen: Sequence[Seen], alone: bool) -> tuple[bool, str]:
    """Whether the bursts point at the hardware, and the sentence that says what they show."""
    bursts = _recent(_bursts(seen), burst.within_h * 3600)
    # One program does the same again and again, whatever its process number.
    names = sorted({fault.process for one in bursts for fault in one if fault.process})
    many = len(bursts) >= burst.count and len(names) > 1
    story = "in one burst" if len(bursts) == 1 else f"in {len(bursts)} bursts"
    by = f", by {len(names)} programs" if len(names) > 1 else ""
    if burst.by == "tpc":
        places = [{place for fault in one for place in _TPC.findall(fault.text)} for one in bursts]
        hit = set().union(*places)
        if many and len(hit) == 1 and all(places):
            ((gpc, tpc),) = hit
            return True, f"{story}, each time in GPC {gpc}, TPC {tpc} and nowhere else{by}"
        spread = "in one TPC" if len(hit) == 1 else f"in {len(hit)} different TPCs"
        return False, f"{story}, {spread}{by}" if hit else f"{story}{by}"
    if many and alone:
        return True, f"{story}, from {len(names)} programs, on this GPU only"
    return False, f"{story}{by}" if alone else f"{story}{by}, and on other GPUs too"


def _bursts(seen: Sequence[Seen]) -> list[list[Seen]]:
    """Groups of events less than BURST_S apart; an event without time joins the one before it."""
    groups: list[list[Seen]] = []
    before: float | None = None
    for one in seen:
        if groups and (one.at_s is None or before is None or one.at_s - before < BURST_S):
            groups[-1].append(one)
        else:
            groups.append([one])
        before = one.at_s if one.at_s is not None else before
    return groups


def _recent(bursts: list[list[Seen]], within_s: float) -> list[list[Seen]]:
    """The bursts that end within `within_s` of the end of the last."""
    end = bursts[-1][-1].at_s
    if end is None:
        return bursts
    ends = [end if burst[-1].at_s is None else burst[-1].at_s for burst in bursts]
    return [burst for burst, at_s in zip(bursts, ends, strict=True) if end - at_s <= within_s]
