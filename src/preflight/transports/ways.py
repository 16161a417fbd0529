"""What a way to hosts is: it opens a session with each, or says why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from preflight.faults import fault
from preflight.model import Missing


class Unreached(Exception):  # noqa: N818 - no error of ours: a host that could not be reached
    """A host could not be reached; `missing` says why."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.missing = fault(name, text)


class Session(Protocol):
    """An open way to a shell that runs the script."""

    def filenos(self) -> Sequence[int]:
        """What becomes readable when there are bytes."""

    def read(self, fileno: int) -> Sequence[tuple[int, bytes]]:
        """(stream, bytes) that are there, never waiting; no bytes say that the stream ended."""

    def ended(self, begun: bool, said: str) -> Missing:
        """Why it ended before the last mark. `said`: what came in place of the first."""

    def close(self) -> None:
        """End it, without waiting."""


class Way(Protocol):
    """How hosts are reached."""

    def open(self, host: str, script: bytes, phase: Callable[[str], None]) -> Session:
        """Reach the host and start the script there; waits. `phase` is told what it waits for.
        Raises Unreached."""
