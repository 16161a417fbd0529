"""What the events of one row amount to on each device: windows, echoes, consequences, bursts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from preflight.judge.kernel_log.bursts import points_at_hardware
from preflight.judge.kernel_log.ended import ANEW, Moment, age_s, ended_by
from preflight.judge.kernel_log.nvlink_decode import Decoded, decoded, fault_of
from preflight.judge.kernel_log.rows import Burst, Row, ends
from preflight.judge.kernel_log.seen import Seen, ago, named
from preflight.model import SEVERITY, Action, Status

#: Lines of one error come together: closer than this they are one.
_APART_WORDS_S = 1.0
#: What is left of a verdict when the window is over.
_AGED = {Status.FAIL: Status.WARN, Status.WARN: Status.PASS}


class Judged(Struct, frozen=True):
    """One event with its verdict, and why it is not the row's own."""

    seen: Seen
    status: Status
    action: Action
    note: str = ""
    fix: tuple[str, ...] = ()  # where it is not the row's
    over: bool = False  # nothing is to be done for it any more
    fault: bool = False  # a failure, when it was new
    ended: int = 0  # how often what mends it came since: a boot, a load of the driver


class Episode(Struct, frozen=True):
    """All events of one row on one device; `told` are those that decide the verdict."""

    judged: tuple[Judged, ...]
    told: tuple[Judged, ...]
    status: Status
    action: Action
    notes: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()
    over: bool = False
    settled: str = ""

    def count(self) -> int:
        """How many events its lines tell of."""
        return sum(one.seen.count for one in self.judged)


def episodes(row: Row, mine: Sequence[Seen], moment: Moment) -> list[Episode]:
    """One episode per device, and per code where the row is for many; in the log's order."""
    echoes = _echoes(row, mine, moment.xids)
    roots = _roots(row, moment.xids)
    again, devices = _again(row, mine), {one.device for one in mine}
    others = {one.device for one in moment.xids if one.code != row.code}.intersection(devices)
    grouped: dict[tuple[str, str], list[Judged]] = {}
    for seen in named(row, mine, moment.xids):
        if not row.counts or re.search(row.counts, seen.text):
            echo = echoes.get((seen.probe, seen.line), "")
            words = None
            if row.decode:
                came_again = (seen.device, fault_of(row.decode, seen.text)) in again
                words = decoded(
                    row.decode, seen.code, seen.text,
                    again=came_again, alone=seen.device not in others,
                )  # fmt: skip
            judged = _judged(row, seen, moment, echo, _root(row, seen, roots), words)
            grouped.setdefault((seen.device, seen.label), []).append(judged)
    alone = len({key for key, found in grouped.items() if _any_counts(found)}) < 2
    return [_episode(row, judged, alone, moment) for judged in grouped.values()]


def _echoes(row: Row, mine: Sequence[Seen], xids: Sequence[Seen]) -> dict[tuple[str, int], str]:
    """Probe and line of an echo -> the Xid that it follows, in a chain of echoes the first."""
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
            found[seen.probe, seen.line] = label
            heads[seen.device] = (seen.at_s, label)
        else:
            heads[seen.device] = (seen.at_s, seen.label)
    return found


def _again(row: Row, mine: Sequence[Seen]) -> set[tuple[str, tuple[object, ...]]]:
    """Device and fault of what the words of a line say twice within a day."""
    found, last = set(), dict[tuple[str, tuple[object, ...]], float]()
    for seen in mine if row.decode else ():
        key = (seen.device, fault_of(row.decode, seen.text))
        at_s = seen.at_s or 0.0
        if key[1] and key in last and _APART_WORDS_S < at_s - last[key] <= row.window_h * 3600:
            found.add(key)
        last.setdefault(key, at_s)
    return found


def _any_counts(judged: Sequence[Judged]) -> bool:
    return any(one.status is not Status.PASS for one in judged)


def _judged(
    row: Row, seen: Seen, moment: Moment, echo: str, root: Seen | None,
    words: Decoded | None = None,
) -> Judged:  # fmt: skip
    if echo:
        return Judged(seen, Status.PASS, Action.NONE, f"follows {echo} on the same GPU")
    status, action, note = Status(row.status), row.action, ""
    fix: tuple[str, ...] = ()
    for one in row.by_text:
        if re.search(one.matches, seen.text):
            status, action, fix = Status(one.status), one.action, one.fix
            break
    if words:
        status, action, note = words.status, words.action, words.means
        failing = (one.fix for one in row.by_text if one.status == status.value)
        fix = next(failing, ()) if status is Status.FAIL else ()
    elif row.decode:
        note = "its words are in no form that is known here, and are not decoded"
    if root is not None and row.follows and status is Status.FAIL:
        status, action = Status(row.follows.status), Action.WATCH
        later_s = (seen.at_s or 0.0) - (root.at_s or 0.0)
        note = f"follows {root.label} on {root.device} {ago(later_s)} earlier"
        fix = (f"see to {root.label} on {root.device} first; this needs nothing of its own",)
    fault = status is Status.FAIL
    what, ended = ended_by(ends(row, action), seen, moment)
    if what and row.remains:
        status = _AGED.get(status, status)
        return Judged(seen, status, Action.INSPECT, ANEW[what], row.remains, False, fault, ended)
    if what or age_s(seen, moment) > row.window_h * 3600:
        status = Status.PASS if what and row.ended_as else _AGED.get(status, status)
        over = status is not Status.PASS
        note = ANEW.get(what, note)
        return Judged(seen, status, Action.WATCH, note, (), over, fault, ended)
    return Judged(seen, status, action, note, fix, fault=fault)


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


def _episode(row: Row, judged: Sequence[Judged], alone: bool, moment: Moment) -> Episode:
    deciding = judged[-1:] if row.latest else judged
    status = min((one.status for one in deciding), key=SEVERITY.index)
    told = tuple(one for one in deciding if one.status is status)
    fresh = _since(deciding, row.window_h, moment)
    asks = row.settled_by and (not row.remains or all(one.ended for one in deciding))
    settled = moment.settled.get(told[0].seen.device, "") if asks else ""
    found = Episode(
        tuple(judged), told, status, told[0].action,
        tuple(dict.fromkeys(one.note for one in told if one.note))[: 3 if row.decode else 1],
        told[0].fix, told[0].over, settled,
    )  # fmt: skip
    if settled or (row.at_most and _count(fresh) <= row.at_most):
        found = replace(found, status=Status.PASS, action=Action.NONE, notes=(), over=False)
    found = _escalated(row, found, deciding, moment)
    if not settled:
        found = _came_back(row, found, deciding, moment)
    if row.burst:
        found = _with_bursts(row.burst, found, alone, moment)
    if not fresh and Status(row.status) is not Status.PASS:
        last = f"last seen {ago(age_s(deciding[-1].seen, moment))} ago"
        found = replace(found, notes=(*found.notes, last))
    return found


def _since(judged: Sequence[Judged], hours: float, moment: Moment) -> list[Judged]:
    return [one for one in judged if age_s(one.seen, moment) <= hours * 3600]


def _count(judged: Sequence[Judged]) -> int:
    return sum(one.seen.count for one in judged)


def _came_back(row: Row, episode: Episode, deciding: Sequence[Judged], moment: Moment) -> Episode:
    """A failure that came back after what should have mended it is not mended by more of that."""
    faults = [one for one in deciding if one.fault]
    ages = [age_s(one.seen, moment) for one in faults]
    if not faults or ages[-1] > row.again_h * 3600:
        return episode
    near = (one.ended for one, age in zip(faults, ages, strict=True)
            if age - ages[-1] <= row.again_h * 3600)  # fmt: skip
    times = len(set(near)) - 1
    if times < 1:
        return episode
    often = "once" if times == 1 else f"{times} times"
    since = "a load of the driver or a boot" if "driver" in ends(row, row.action) else "a boot"
    note = f"it came back {often} after {since}, which did not mend it"
    return replace(
        episode, status=Status.FAIL, action=Action.INSPECT, over=False, fix=row.fix,
        notes=(note, *(note for note in episode.notes if note not in ANEW.values())),
        told=tuple(faults),
    )  # fmt: skip


def _escalated(row: Row, episode: Episode, deciding: Sequence[Judged], moment: Moment) -> Episode:
    worse = row.escalate
    if worse is None or not _is_worse(Status(worse.status), episode.status):
        return episode
    if _count(_since(deciding, worse.within_h or row.window_h, moment)) <= worse.over:
        return episode
    return replace(
        episode, status=Status(worse.status), action=worse.action, fix=worse.fix, over=False
    )


def _is_worse(status: Status, other: Status) -> bool:
    return SEVERITY.index(status) < SEVERITY.index(other)


def _with_bursts(burst: Burst, episode: Episode, alone: bool, moment: Moment) -> Episode:
    seen = [one.seen for one in episode.judged]
    hours, story = points_at_hardware(burst, seen, alone)
    found = replace(episode, notes=(*episode.notes, story))
    if age_s(seen[-1], moment) > hours * 3600 or not hours:
        return found
    return replace(found, status=Status(burst.status), action=burst.action, fix=(), over=False)
