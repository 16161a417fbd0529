"""Changes since an earlier report as rows of text, equal ones together, worst first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

from preflight.model import Change, ChangeKind, Changes, Status
from preflight.nodesets import fold
from preflight.reports.groups import Place, where
from preflight.reports.wording import plural, some, when

#: What a host did of which there are results.
ANSWERED = "answered"
#: Kinds whose checks are told together where one reason holds for all of them.
_OF_ONE_REASON = ("unknown", "unseen", "fixed")
_MOST_VARIANTS = 4
_TEXT_CHARACTERS = 160
_PLACES_CHARACTERS = 120
_NAMES_CHARACTERS = 40


class Row(NamedTuple):
    """One line to read: what became of it, of what, where, and how."""

    kind: ChangeKind
    about: str
    at: str
    told: str


def headline(changes: Changes) -> str:
    """`since 2026-01-02 03:04:05 UTC: failed on 2 hosts, fixed on 1 host; 128 hosts compared`."""
    on: dict[ChangeKind, set[str]] = {}
    for one in changes.each:
        on.setdefault(one.kind, set()).update(one.hosts or [""])
    told = []
    for kind in get_args(ChangeKind):
        hosts = on.get(kind, set()) - {""}
        if kind in on:
            told.append(f"{kind} on {plural(len(hosts), 'host')}" if hosts else f"{kind} over all")
    what = ", ".join(told) or "nothing changed"
    checks = [
        f"{plural(count, 'check')} {word}"
        for count, word in ((changes.new_checks, "new"), (changes.gone_checks, "gone"))
        if count
    ]
    compared = f"{plural(changes.hosts, 'host')} compared"
    return "; ".join([f"since {when(changes.since)}: {what}", ", ".join([compared, *checks])])


def rows(changes: Changes, *, hosts: bool, most: int, more: str) -> Iterator[Row]:
    """The changes, at most so many rows, then how many are left and where they are."""
    found = list(_rows(changes, hosts))
    yield from found[:most]
    if len(found) > most:
        yield Row(found[most].kind, "", "", f"and {len(found) - most:,} more ({more})")


def _rows(changes: Changes, hosts: bool) -> Iterator[Row]:
    alike: dict[tuple[object, ...], list[Change]] = {}
    for one in changes.each:
        alike.setdefault(_key(one), []).append(one)
    for group in alike.values():
        yield _row(group, hosts)


def _key(one: Change) -> tuple[object, ...]:
    if one.kind in _OF_ONE_REASON and one.about not in ("host", "device"):
        now = "" if one.kind == "fixed" else one.now
        return one.kind, one.hosts, one.subject, one.now_status, now
    told = (one.was, one.now) if one.about in ("host", "summary") else ()
    return one.kind, one.about, one.was_status, one.now_status, *told


def _row(group: Sequence[Change], hosts: bool) -> Row:
    first = group[0]
    places = [Place(host, one.subject) for one in group for host in one.hosts or ("",)]
    at = _at(list(dict.fromkeys(places)), hosts=hosts or not first.subject)
    checks = list(dict.fromkeys(one.about for one in group))
    if len(checks) > 1:
        told = "" if first.kind == "fixed" else _short(first.now)
        told = f"{told} ({some(checks, 3, more='')})".strip()
        return Row(first.kind, plural(len(checks), "check"), at, told)
    return Row(first.kind, _ABOUT.get(first.about, first.about), at, _told(group, hosts))


def _at(places: Sequence[Place], *, hosts: bool) -> str:
    """Where; before a wall of names nobody finds the values."""
    names = {place.host for place in places}
    text = where(places, hosts=hosts)
    if len(text) <= _PLACES_CHARACTERS:
        return text
    return plural(len(names), "host") if len(names) > 1 else where(places, hosts=hosts, brief=True)


_ABOUT = {"host": "", "device": "", "summary": "", "reboot": ""}
#: What is said of that which is no check and has no values.
_PLAIN = {
    ("gone", "host"): "not in this report",
    ("new", "host"): "not in the earlier report",
    ("gone", "device"): "this report tells nothing of {it}",
    ("new", "device"): "the earlier report told nothing of {it}",
    ("unseen", "device"): "what told of {it} is not in the input of this report",
    ("changed", "reboot"): "rebooted",
}


def _told(group: Sequence[Change], hosts: bool) -> str:
    first = group[0]
    plain = _PLAIN.get((first.kind, first.about))
    if plain:
        several = len({one.subject for one in group}) > 1 or re.search(r"[\[,]", first.subject)
        return plain.format(it="them" if several else "it")
    pairs = {(one.was, one.now): one for one in group}
    if len(pairs) == 1:
        return _pair(first)
    told = []
    for one in group:
        names = fold(one.hosts) if hosts else ""
        names = names if len(names) <= _NAMES_CHARACTERS else plural(len(one.hosts), "host")
        told.append(f"{f'{names} {one.subject}'.strip()} {_pair(one)}".strip())
    return "; ".join(told[:_MOST_VARIANTS]) + (
        f"; and {len(told) - _MOST_VARIANTS} more" if len(told) > _MOST_VARIANTS else ""
    )


def _pair(one: Change) -> str:
    if one.about == "host":
        return _of_host(one)
    was, now = _differing(one.was, one.now) if one.about == "summary" else (one.was, one.now)
    was = _short(was) or _word(one.was_status) or "not there"
    now = _short(now) or _word(one.now_status) or "not judged"
    if one.kind in ("better", "unknown", "unseen") and one.was_status and one.was:
        was = f"{one.was_status.value} {was}"
    if one.kind == "better" and one.now_status and one.now:
        now = f"{one.now_status.value} {now}"
    return f"was {was}, now {now}" if was != now else f"was {_word(one.was_status)}, now {now}"


def _of_host(one: Change) -> str:
    if one.kind == "fixed":
        return f"it answers again; before: {_short(one.was)}"
    before = "" if one.was == ANSWERED else f"; before: {_short(one.was)}"
    return f"{_short(one.now)}{before}"


def _differing(was: str, now: str) -> tuple[str, str]:
    """Of two texts in parts those that the other has not."""
    before, after = (re.split("[;,] ", text) for text in (was, now))
    gone = [part for part in before if part not in after]
    come = [part for part in after if part not in before]
    return ", ".join(gone), ", ".join(come)


def _word(status: Status | None) -> str:
    return status.value if status else ""


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_CHARACTERS else f"{text[:_TEXT_CHARACTERS]}..."
