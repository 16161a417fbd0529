"""The answers of hosts that train as one job: ended together, and set side by side."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.cli.apart import did_not_meet, lines_in
from preflight.cli.hosts import Fleet
from preflight.faults import CONNECTION
from preflight.model import Command, Raw
from preflight.probes.collectives.job import lost_of, split, told_to_each
from preflight.probes.training.job import Part, job_line
from preflight.ship import BENCHES, TRAINS

#: Once a host has ended badly the others have so long for words of their own: those whose peer is
#: gone notice it at once, those that wait for one that never came say nothing for minutes.
LAST_WORDS_S = 5.0
#: After the host that leads a bench has ended, the others end at once; and where the hosts did not
#: come together there is less to end.
LEFT_S, UNMET_S = 30.0, 8.0
_INTERRUPTED = "interrupted"
_BAD = frozenset(("died", "failed", "silent", "cannot", "busy", "unmet"))
#: What timeout(1) ends with where SIGKILL ended the command.
_KILLED_OFF = 137
#: The launch that is killed on purpose.
_KILLED = "killed"


class Over(threading.Event):
    """Set where the job is over, or where the user has interrupted all."""

    def __init__(self, user: threading.Event) -> None:
        super().__init__()
        self._user = user

    def is_set(self) -> bool:
        """Of the one or of the other."""
        return super().is_set() or self._user.is_set()


def gathered(
    fleet: Any, commands: Sequence[Command], user: threading.Event
) -> dict[str, list[Raw]]:
    """The answers of all hosts. One that is lost, or whose ranks are, ends the job on all."""
    over = Over(user)
    asked: Fleet = replace(fleet, interrupted=over)
    found: dict[str, list[Raw]] = {}
    ending = False
    timer = threading.Timer(LAST_WORDS_S, over.set)
    timer.daemon = True
    try:
        for host, raws in asked.run(commands):
            found[host] = raws
            if not ending and _ended_badly(raws):
                ending = True
                timer.start()
    finally:
        timer.cancel()
    return found if user.is_set() else {host: _ended_with(raws) for host, raws in found.items()}


def benched(fleet: Any, commands: Sequence[Command], user: threading.Event) -> dict[str, list[Raw]]:
    """The answers of all hosts. A host that is lost is part of what is found, and the others go on;
    but once the first of them, which leads, has ended there is nothing left to do, and one that
    says no more, or whose processes are stopped, is given up."""
    over = Over(user)
    asked: Fleet = replace(fleet, interrupted=over)
    found: dict[str, list[Raw]] = {}
    left_s, timer = LEFT_S, threading.Timer(LEFT_S, over.set)
    try:
        for host, raws in asked.run(commands):
            found[host] = raws
            if host == fleet.hosts[0]:
                left_s = UNMET_S if did_not_meet(raws, BENCHES) else LEFT_S
                timer = threading.Timer(left_s, over.set)
                timer.daemon = True
                timer.start()
    finally:
        timer.cancel()
    if user.is_set():
        return found
    return {host: _given_up(raws, left_s) for host, raws in found.items()}


def _given_up(raws: list[Raw], left_s: float) -> list[Raw]:
    closing = next((raw for raw in raws if raw.probe == CONNECTION), None)
    if closing is None or not closing.missing or closing.missing.fault != _INTERRUPTED:
        return raws
    text = f"it did not end, {left_s:.0f} s after the host that leads: ps -eo pid,stat,args there"
    line = {"kind": "lost", "text": text}
    return [
        replace(raw, rc=0, missing=None, stdout=_with(_text(raw), line))
        if raw.probe == BENCHES else raw
        for raw in raws if raw is not closing
    ]  # fmt: skip


def _training(raws: Sequence[Raw]) -> Raw | None:
    return _answer(raws, TRAINS)


def _answer(raws: Sequence[Raw], probe: str) -> Raw | None:
    return next((raw for raw in raws if raw.probe == probe), None)


def _ended_badly(raws: Sequence[Raw]) -> bool:
    raw = _training(raws)
    if raw is None or raw.missing or raw.rc:
        return True
    return any(
        one.get("kind") in _BAD and one.get("launch") != _KILLED for one in lines_in(_text(raw))
    )


def _ended_with(raws: list[Raw]) -> list[Raw]:
    """A host that we have ended because of another is not one that went away: it tells how far it
    came."""
    closing = next((raw for raw in raws if raw.probe == CONNECTION), None)
    if closing is None or not closing.missing or closing.missing.fault != _INTERRUPTED:
        return raws
    return [_cut(raw) if raw.probe == TRAINS else raw for raw in raws if raw is not closing]


def _cut(raw: Raw) -> Raw:
    line = {"kind": _INTERRUPTED, "by": "job"}
    return replace(raw, rc=130, missing=None, stdout=_with(_text(raw), line))


def told_of_others(
    found: Mapping[str, list[Raw]], of: Mapping[str, Any], *, interrupted: bool
) -> dict[str, list[Raw]]:
    """The answers, each with a line more that says what no host knows of the others."""
    parts = {
        host: Part(_text(_training(raws)), "" if interrupted else _lost(raws))
        for host, raws in found.items()
    }
    line = {**job_line(of, parts), **({"interrupted": True} if interrupted else {})}
    return {
        host: [
            replace(raw, stdout=_with(_text(raw), {**line, "host": host}))
            if raw.probe == TRAINS
            else raw
            for raw in raws
        ]
        for host, raws in found.items()
    }


def as_told(
    found: Mapping[str, list[Raw]], of: Mapping[str, Any], _interrupted: bool
) -> dict[str, list[Raw]]:
    """The answers, each with a line that tells the job, and one of the search: each host is judged
    by itself, and only the first of them knows which is slow."""
    texts = {host: _text(_answer(raws, BENCHES)) for host, raws in found.items()}
    own, located, lost = split(texts), told_to_each(texts), lost_of(texts)
    job = {"kind": "job", **of}
    return {
        host: [
            replace(raw, stdout=_with(own[host], job, *filter(None, (located.get(host),
                                                                      lost.get(host)))))
            if raw.probe == BENCHES else raw
            for raw in raws
        ]
        for host, raws in found.items()
    }  # fmt: skip


def _lost(raws: Sequence[Raw]) -> str:
    """What became of a host that did not tell its end; "" where it did."""
    raw = _training(raws)
    gone = next((one.missing for one in reversed(raws) if one.missing), None)
    if gone is not None:
        return gone.text
    lines = lines_in(_text(raw)) if raw else []
    for kind in ("cannot", "busy"):
        text = next((one.get("text") for one in lines if one.get("kind") == kind), None)
        if text:
            return str(text)
    last = lines[-1] if lines else {}
    if last.get("kind") == _INTERRUPTED and "by" not in last:
        return "its run was ended from outside"
    if last.get("kind") in ("end", _INTERRUPTED, "unmet"):
        return ""
    if raw and raw.reached_limit:
        return f"its run did not end within {raw.elapsed_s:.0f} s"
    if raw and raw.rc == _KILLED_OFF:
        return f"its run was killed by signal 9 after {raw.elapsed_s:.0f} s (memory?)"
    said = str(raw.stderr).strip().splitlines() if raw else []
    return f"its run ended with {raw.rc if raw else None}: {said[-1] if said else 'no word'}"


def _text(raw: Raw | None) -> str:
    """Its whole lines."""
    text = "" if raw is None else raw.stdout
    text = text if isinstance(text, str) else text.decode(errors="replace")
    return text[: text.rfind("\n") + 1]


def _with(text: str, *lines: Mapping[str, Any]) -> str:
    return text + "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in lines)
