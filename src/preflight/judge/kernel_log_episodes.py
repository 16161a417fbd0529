"""What the events of one row amount to on each device: windows, echoes, consequences, bursts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct

from preflight.judge.kernel_log_rows import Burst, Row
from preflight.model import SEVERITY, Action, Status

#: Events closer than this are one burst: NVSentinel's and Fleet Intelligence's three minutes.
BURST_S = 180.0

_TPC = re.compile(r"\(GPC (\d+), TPC (\d+)")
#: What is left of a verdict when the window is over.
_AGED = {Status.FAIL: Status.WARN, Status.WARN: Status.PASS}


class Seen(Struct, frozen=True):
    """One event of the log; `subject` as the report names the device, `label` as it names it."""

    label: str  # Xid 79, SXid 20034; "" for a message without a number
    subject: str
    device: str
    line: int
    at_s: float | None
    text: str
    code: int = 0
    pid: int | None = None
    process: str = ""
    link: int | None = None


class Moment(Struct, frozen=True):
    """What an event is seen against: all Xids of the log, and now on the log's axis."""

    xids: Sequence[Seen] = ()
    now_s: float | None = None


class Judged(Struct, frozen=True):
    """One event with its verdict, and why it is not the row's own."""

    seen: Seen
    status: Status
    action: Action
    note: str = ""


class Episode(Struct, frozen=True):
    """All events of one row on one device; `told` are those that decide the verdict."""

    judged: tuple[Judged, ...]
    told: tuple[Judged, ...]
    status: Status
    action: Action
    notes: tuple[str, ...] = ()


def episodes(row: Row, mine: Sequence[Seen], moment: Moment) -> list[Episode]:
    """One episode per device, and per code where the row is for many; in the log's order."""
    echoes = _echoes(row, mine, moment.xids)
    roots = _roots(row, moment.xids)
    grouped: dict[tuple[str, str], list[Judged]] = {}
    for seen in mine:
        if not row.counts or re.search(row.counts, seen.text):
            judged = _judged(row, seen, moment, echoes.get(seen.line, ""), _root(row, seen, roots))
            grouped.setdefault((seen.device, seen.label), []).append(judged)
    alone = len({key for key, found in grouped.items() if _any_counts(found)}) < 2
    return [_episode(row, judged, alone, moment) for judged in grouped.values()]


def _echoes(row: Row, mine: Sequence[Seen], xids: Sequence[Seen]) -> dict[int, str]:
    """Line of an echo -> the Xid that it follows. A chain of echoes has the Xid at its head."""
    if not row.echo_of_s or not mine:
        return {}
    heads: dict[str, tuple[float, str]] = {}
    found = {}
    for seen in xids:
        if seen.at_s is None:
            continue
        if seen.code == row.code:
            at_s, label = heads.get(seen.device, (float("-inf"), ""))
            if not 0 <= seen.at_s - at_s <= row.echo_of_s:
                continue
            found[seen.line] = label
            heads[seen.device] = (seen.at_s, label)
        else:
            heads[seen.device] = (seen.at_s, seen.label)
    return found


def _any_counts(judged: Sequence[Judged]) -> bool:
    return any(one.status is not Status.PASS for one in judged)


def _judged(row: Row, seen: Seen, moment: Moment, echo: str, root: Seen | None) -> Judged:
    if echo:
        return Judged(seen, Status.PASS, Action.NONE, f"follows {echo} on the same GPU")
    status, action, note = Status(row.status), row.action, ""
    for one in row.by_text:
        if re.search(one.matches, seen.text):
            status, action = Status(one.status), one.action
            break
    if root is not None and row.follows and status is Status.FAIL:
        status, action = Status(row.follows.status), Action.WATCH
        later_s = (seen.at_s or 0.0) - (root.at_s or 0.0)
        note = f"follows {root.label} on {root.device} {ago(later_s)} earlier"
    if _age_s(seen, moment) > row.window_h * 3600:
        return Judged(seen, _AGED.get(status, status), Action.WATCH, note)
    return Judged(seen, status, action, note)


def _roots(row: Row, xids: Sequence[Seen]) -> list[tuple[float, Seen]]:
    """The Xids that may explain an event of this row, by time."""
    codes = row.follows.xids if row.follows else ()
    timed = [(xid.at_s, xid) for xid in xids if xid.code in codes and xid.at_s is not None]
    return sorted(timed, key=lambda pair: pair[0])


def _root(row: Row, seen: Seen, roots: Sequence[tuple[float, Seen]]) -> Seen | None:
    """The last Xid before the event, if it is near enough to explain it."""
    if row.follows is None or seen.at_s is None:
        return None
    before = bisect_right(roots, seen.at_s, key=lambda pair: pair[0])
    at_s, root = roots[before - 1] if before else (float("-inf"), None)
    return root if seen.at_s - at_s <= row.follows.within_s else None


def _age_s(seen: Seen, moment: Moment) -> float:
    """Seconds since the event; 0 where it cannot be told, so that it counts."""
    if seen.at_s is None or moment.now_s is None:
        return 0.0
    return max(0.0, moment.now_s - seen.at_s)


def _episode(row: Row, judged: Sequence[Judged], alone: bool, moment: Moment) -> Episode:
    deciding = judged[-1:] if row.latest else judged
    status = min((one.status for one in deciding), key=SEVERITY.index)
    told = tuple(one for one in deciding if one.status is status)
    action = told[0].action
    notes = list(dict.fromkeys(one.note for one in told if one.note))[:1]
    fresh = [one for one in deciding if _age_s(one.seen, moment) <= row.window_h * 3600]
    if len(fresh) <= row.at_most and row.at_most:
        return Episode(tuple(judged), told, Status.PASS, Action.NONE)
    if row.escalate and len(fresh) > row.escalate.over:
        status, action = Status(row.escalate.status), row.escalate.action
    if row.burst and status is not Status.PASS:
        hardware, story = _burst(row.burst, told, alone)
        notes.append(story)
        if hardware and fresh:
            status, action = Status(row.burst.status), row.burst.action
    if not fresh and Status(row.status) is not Status.PASS:
        notes.append(f"last seen {ago(_age_s(deciding[-1].seen, moment))} ago")
    return Episode(tuple(judged), told, status, action, tuple(notes))


def _burst(burst: Burst, told: Sequence[Judged], alone: bool) -> tuple[bool, str]:
    """Whether the bursts point at the hardware, and the sentence that says what they show."""
    bursts = _recent(_bursts([one.seen for one in told]), burst.within_h * 3600)
    many = len(bursts) >= burst.count
    story = "in one burst" if len(bursts) == 1 else f"in {len(bursts)} bursts"
    if burst.by == "tpc":
        places = [{place for seen in one for place in _TPC.findall(seen.text)} for one in bursts]
        hit = set().union(*places)
        if many and len(hit) == 1 and all(places):
            ((gpc, tpc),) = hit
            return True, f"{story}, each time in GPC {gpc}, TPC {tpc} and nowhere else"
        spread = "in one TPC" if len(hit) == 1 else f"in {len(hit)} different TPCs"
        return False, f"{story}, {spread}" if hit else story
    pids = {seen.pid for one in bursts for seen in one if seen.pid is not None}
    if many and alone and len(pids) >= burst.count:
        return True, f"{story}, from {len(pids)} processes, on this GPU only"
    return False, story if alone else f"{story}, and on other GPUs too"


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


def ago(seconds: float) -> str:
    """12 s, 4 min, 5 h, 6 d."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
