"""The two hosts of a pair, and how they agree on what comes next: a connection of JSON lines."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

from ..collectives.agents import Wire

Line = dict[str, Any]

#: Until the other end is there, and until it has answered.
_COMES_S, _AGAIN_S, ANSWER_S = 20.0, 0.1, 30.0


class ApartError(Exception):
    """The two hosts of a pair do not come together, or one of them went away: why."""


class Side:
    """One host of a pair: number 0 is the first that its order names."""

    def __init__(self, number: int, own: str, other: str, wire: Wire) -> None:
        self.number, self.own, self.other, self.wire = number, own, other, wire
        self._lines: list[Line] = []

    def say(self, **told: Any) -> None:
        """To the other side. Raises ApartError."""
        try:
            self.wire.send(told)
        except OSError as error:
            raise ApartError(f"{self.other} is gone: {error.strerror or error}") from error

    def hear(self, limit_s: float = ANSWER_S) -> Line:
        """From the other side. Raises ApartError."""
        try:
            self.wire.socket.settimeout(limit_s)
            while not self._lines:
                self._lines += self.wire.received()
        except (OSError, ValueError) as error:
            late = f"it said nothing for {limit_s:.0f} s" if _is_late(error) else str(error)
            raise ApartError(f"{self.other}: {late}") from error
        return self._lines.pop(0)

    def swap(self, **told: Any) -> Line:
        """Tell the other side something, and hear what it has to tell."""
        self.say(**told)
        return self.hear()


def _is_late(error: Exception) -> bool:
    return isinstance(error, (TimeoutError, socket.timeout))


@contextlib.contextmanager
def met(number: int, own: str, other: str, port: int) -> Iterator[Side]:
    """Come together: the first listens at its address, the second calls it from its own. Raises
    ApartError."""
    wire = Wire(_called(own, port) if number == 0 else _calling(own, other, port))
    try:
        yield Side(number, own, other, wire)
    finally:
        wire.close()


def _called(own: str, port: int) -> socket.socket:
    try:
        with socket.create_server((own, port)) as server:
            server.settimeout(_COMES_S)
            return server.accept()[0]
    except OSError as error:
        late = f"the other host did not call within {_COMES_S:.0f} s"
        why = late if _is_late(error) else error.strerror or str(error)
        raise ApartError(f"{own} port {port}: {why}; is a firewall between them? "
                         f"`nc -vz {own} {port}` from the other") from error  # fmt: skip


def _calling(own: str, other: str, port: int) -> socket.socket:
    until_s, why = time.monotonic() + _COMES_S, ""
    while time.monotonic() < until_s:
        try:
            return socket.create_connection((other, port), 5.0, (own, 0))
        except OSError as error:
            why = error.strerror or str(error)
            time.sleep(_AGAIN_S)
    raise ApartError(f"{other} port {port}: {why}; is a firewall between them? "
                     f"`nc -vz {other} {port}` shows it")  # fmt: skip
