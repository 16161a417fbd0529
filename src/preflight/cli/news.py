"""Lines of active work in words for a terminal, while it goes on."""

from __future__ import annotations

import json
from typing import Any

from preflight.cli.streams import Streams


def news_of(probe: str, line: str) -> str:
    """What a line of a question's answer says; "" for one that is no news."""
    if probe == "micro-train":
        from preflight.cli.training import told_of as told_of_training

        return told_of_training(_decoded(line))
    if probe == "stress":
        from preflight.cli.stress import told_of

        return told_of(_decoded(line))
    if probe == "nccl-bench":
        from preflight.cli.benches import told_of as told_of_bench

        return told_of_bench(_decoded(line))
    if probe == "io-bench":
        from preflight.cli.storing import told_of as told_of_storage

        return told_of_storage(_decoded(line))
    if probe == "objects":
        from preflight.cli.objects import told_of as told_of_objects

        return told_of_objects(_decoded(line))
    if probe == "checkpoint":
        from preflight.cli.checkpoint_verify import told_of as told_of_scan

        return told_of_scan(_decoded(line))
    return ""


class News:
    """What is shown of lines as they come in: on a terminal what goes on now, where nobody watches
    each part once when it begins. With -q nothing of either."""

    def __init__(self, streams: Streams, *, quiet: bool) -> None:
        self._streams, self._quiet = streams, quiet
        self._parts: set[str] = set()
        self.latest = ""

    def hear(self, probe: str, line: str) -> None:
        """`line`: the last of the answer to `probe` that came in; the same one as before where
        nothing more came."""
        if self._quiet:
            return
        self.latest = (news_of(probe, line) if line else "") or self.latest
        part = part_of(probe, line) if line and not self._streams.progress else ""
        if part and part not in self._parts:
            self._parts.add(part)
            self._streams.note(f"{probe}: {part}")


def part_of(probe: str, line: str) -> str:
    """The part that takes minutes, which a line begins or is of; "" where it is of none."""
    if probe == "nccl-bench":
        from preflight.cli.benches import part_of as part_of_bench

        return part_of_bench(_decoded(line))
    return news_of(probe, line) if '"kind":"sweep"' in line[:80] else ""


def _decoded(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
