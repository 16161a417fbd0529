"""A host's channel, read without threads of its own."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import paramiko
from fabric import Connection

from preflight.faults import fault
from preflight.model import Missing
from preflight.transports.conversation import ERR, OUT

_READ_BYTES = 1 << 16
#: So often before it is the next host's turn.
_READS = 8


class _Bell:
    """What paramiko's buffers ring when bytes come or the channel ends.

    Not the pipe of `channel.fileno()`, which both streams share: where one is emptied while the
    other fills, the byte that tells of the other can be lost, and what it holds is not read until
    more comes, or the end, which a process left behind keeps away.
    """

    def __init__(self) -> None:
        self.fileno, self._rings = os.pipe()
        os.set_blocking(self.fileno, False)
        self._ringing = False

    def set(self) -> None:
        """Called by paramiko's thread, which holds the lock of the buffer until its bytes are in
        it: whoever hears, then looks, finds them."""
        if not self._ringing:
            self._ringing = True
            os.write(self._rings, b"x")

    def clear(self) -> None:
        """One buffer was emptied; of the other nothing is known, so it rings on."""

    def hear(self) -> None:
        """It is silent until something sets it again. In this order: a byte written before the
        other thread is let write again would be taken with nobody to write the next."""
        with suppress(BlockingIOError):
            os.read(self.fileno, 64)
        self._ringing = False

    def close(self) -> None:
        """Once nothing rings it any more."""
        os.close(self.fileno)
        os.close(self._rings)


class SshSession:
    """A shell at the end of a channel."""

    def __init__(self, connection: Connection, channel: paramiko.Channel) -> None:
        self._connection, self._channel = connection, channel
        self._bell = _Bell()
        self._ring(self._bell)

    def _ring(self, bell: Any) -> None:
        for buffer in (self._channel.in_buffer, self._channel.in_stderr_buffer):
            buffer.set_event(bell)

    def filenos(self) -> Sequence[int]:
        """What rings when there are bytes."""
        return (self._bell.fileno,)

    def read(self, _fileno: int) -> Sequence[tuple[int, bytes]]:
        """What is there of both streams; both have ended when the channel has."""
        self._bell.hear()  # first: what comes from now on rings again
        over = self._channel.eof_received or self._channel.closed
        parts: list[tuple[int, bytes]] = []
        for _ in range(_READS):
            more = list(self._parts())
            parts += more
            if not more:
                break
        if parts and (more or over):
            self._bell.set()  # there is more, or the end is yet to be told
        return parts or ([(OUT, b""), (ERR, b"")] if over else [])

    def _parts(self) -> Iterator[tuple[int, bytes]]:
        if self._channel.recv_ready():
            yield OUT, self._channel.recv(_READ_BYTES)
        if self._channel.recv_stderr_ready():
            yield ERR, self._channel.recv_stderr(_READ_BYTES)

    def ended(self, begun: bool, said: str) -> Missing:
        """The shell went away, or the connection did."""
        if not begun and not self._lost():
            return fault("no-shell", f"it ended without running it, and said: {said or 'nothing'}")
        jump = self._connection.gateway
        if jump and not jump.is_connected:
            return fault("proxy", f"the jump host {jump.original_host} broke the connection off")
        return fault("died", "the connection broke off")

    def _lost(self) -> bool:
        transport = self._connection.transport
        return transport is None or not transport.is_active()

    def close(self) -> None:
        """Shut the socket first: its thread waits for bytes and would not see that it is over."""
        transport = self._connection.transport
        with suppress(Exception):
            self._channel.close()
        if transport is not None:
            with suppress(Exception):
                if isinstance(transport.sock, socket.socket):
                    transport.sock.shutdown(socket.SHUT_RDWR)
            with suppress(Exception):
                transport.close()
        self._ring(threading.Event())  # the number of a closed pipe may soon be another file's
        self._bell.close()
