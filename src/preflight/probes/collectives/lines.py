"""The JSON lines of a bench by what they are about (payload/collectives writes them)."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from preflight.errors import ParseError

PROBE = "nccl-bench"
#: By signal 6: NCCL ends a process so whose peer is gone.
_ABORTED = -6

Line = dict[str, Any]


class Told:
    """All lines of one bench, each with its number as `line`."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        self.of: dict[str, list[Line]] = defaultdict(list)
        for one in lines:
            self.of[one["kind"]].append(one)
        self.begin = next(iter(self.of["begin"]), {})
        self.plan: Line = dict(self.begin.get("plan", {}))

    def text(self, kind: str) -> str:
        return next((str(one["text"]) for one in self.of[kind]), "")


def read(text: str) -> Told:
    """The whole lines of a text; a last line that is cut short is left out. Raises ParseError where
    a line is no JSON of ours, or none is there."""
    whole = text.rpartition("\n")[0].split("\n")
    lines = []
    for number, line in enumerate(whole, 1):
        if line.strip():
            told = json.loads(line)
            if not isinstance(told, dict) or not isinstance(told.get("kind"), str):
                raise ParseError("expected a JSON object with a kind", number)
            lines.append({**told, "line": number})
    if not lines:
        raise ParseError("expected JSON lines of a bench", 1)
    return Told(lines)


def is_lost(one: Line, host: str) -> bool:
    """Whether a line of `host` tells that another host was lost: it did not come, is gone, or its
    ranks were killed or are stopped. One that ended itself may have done so as its peer was
    gone."""
    kind = one.get("kind")
    if not one.get("of") or one["of"] == host:
        return False
    killed = kind == "died" and int(one["status"]) < 0 and int(one["status"]) != _ABORTED
    return kind in ("absent", "gone") or killed or (kind == "silent" and bool(one.get("stopped")))


def said(one: Line) -> str:
    """What became of a rank or a host, in words."""
    who = f"{one['of']}, " if "of" in one else ""
    rank = f"{who}rank {one['rank']}" if "rank" in one else who.rstrip(", ")
    if one["kind"] == "died":
        return f"{rank} ended with {one['status']}"
    if one["kind"] == "silent":
        ranks = ", ".join(map(str, one["suspects"]))
        return f"{who}rank {ranks} said nothing for {one['after_s']:g} s"
    if one["kind"] == "absent":
        why = f": {str(one['text'])[:300]}" if one.get("text") else ""
        return f"{who.rstrip(', ')} did not come{why}"
    text = str(one["text"])[:300]
    return f"{rank}: {text}" if rank else text
