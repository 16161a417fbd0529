"""A checkpoint of several hosts in one shared directory: begun together, what all reach at once,
and a restart from another host's shards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .meeting import Meeting, Words
from .room import Room, Row
from .shards import Shard

#: Of a row, for the others.
_TELLING = ("done_bytes", "elapsed_s", "processes", "count", "began_at")


class Others:
    """Nobody, where there is no meeting."""

    def __init__(self, folder: str, meeting: Meeting | None) -> None:
        self._name, self._meeting = os.path.basename(folder), meeting  # noqa: PTH119
        self._saves: list[Words] = []

    @property
    def note(self) -> str:
        """What is to be said of this host's figures; "" where they began together, or alone."""
        missed = self._meeting.missed if self._meeting else ""
        return missed and f"not begun together with the other hosts: {missed}"

    def begin(self) -> None:
        """All of them."""
        if self._meeting:
            self._meeting.meet()

    def done(self, part: str, row: Row, shards: Sequence[Shard]) -> Iterator[Row]:
        """Wait for all to have done it; one of them tells what they reached. Who has failed waits
        too: the others may be reading its shards."""
        if not self._meeting or not row:
            return
        words = {} if row.get("trouble") else {
            "row": {key: row[key] for key in _TELLING}, "block_bytes": row["block_bytes"],
            "shards": [(os.path.basename(one.path), one.blocks) for one in shards],  # noqa: PTH119
        }  # fmt: skip
        self._saves = told = [one for one in self._meeting.meet(part, words) if "row" in one]
        if words and len(told) > 1 and told[0]["folder"] == self._meeting.own:
            yield {"part": f"{part}, all hosts", "way": row["way"], "through": row.get("through"),
                   "block_bytes": row["block_bytes"], **_all(told)}  # fmt: skip

    def shards_of_next(self, own: Sequence[Shard], block_bytes: int) -> Sequence[Shard]:
        """Of the host behind this one: they are in no memory here; else our own."""
        meeting = self._meeting
        if not meeting or meeting.missed or len(self._saves) < 2:
            return own
        at = [one["folder"] for one in self._saves].index(meeting.own)
        told = self._saves[(at + 1) % len(self._saves)]
        place = f"{meeting.parent}/{told['folder']}/{self._name}"
        return [
            Shard(f"{place}/{name}", 0, blocks * told["block_bytes"] // block_bytes)
            for name, blocks in told["shards"]
        ]


@contextmanager
def others_of(room: Room) -> Iterator[Others]:
    """Those of the room's meeting; whoever waits for this host is told when it is through."""
    others = Others(room.folder, room.meeting)
    try:
        yield others
    finally:
        if room.meeting:
            room.meeting.leave()


def _all(told: Sequence[Words]) -> dict[str, Any]:
    """All bytes in the time of the slowest, and each host's rate."""
    rows = [one["row"] for one in told]
    began = [one["began_at"] for one in rows]
    return {
        **{key: sum(one[key] for one in rows) for key in ("processes", "done_bytes", "count")},
        "elapsed_s": max(one["elapsed_s"] for one in rows),
        "hosts_mbps": [
            (one["host"], round(one["row"]["done_bytes"] / one["row"]["elapsed_s"] / 1e6, 3))
            for one in told
        ],
        "apart_s": round(max(began) - min(began), 3),
    }  # fmt: skip
