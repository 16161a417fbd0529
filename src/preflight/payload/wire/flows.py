"""TCP connections that carry as much as they can, and what arrives of it.

What is sent lies in memory that the kernel sends from, and what arrives is thrown away by the
kernel: no byte is copied to or from this process, so that Python is not what is measured
(sendfile(2); MSG_TRUNC in tcp(7)).
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Sequence

from . import processors

#: Bytes of one call.
_PIECE = 1 << 20
#: A call that moves nothing for so long is given up.
_STUCK_S = 5.0
#: Where tcp_info holds tcpi_total_retrans and tcpi_segs_out.
_AGAIN_SENT = (100, 136)


class Flow:
    """One connection with a thread that sends, or receives, until it is told to stop. `moved`:
    bytes so far; `cpu_s`: how long the thread had a processor, or waited for one."""

    def __init__(self, connection: socket.socket, *, sends: bool) -> None:
        self.socket, self.moved, self.cpu_s = connection, 0, 0.0
        self._over = threading.Event()
        _limit(connection)
        work = self._send if sends else self._receive
        self._thread = threading.Thread(target=self._run, args=[work], daemon=True)
        self._thread.start()

    def _run(self, work: object) -> None:
        assert callable(work)
        with contextlib.suppress(OSError):  # the other end has closed it: no more arrives
            work()
        self.cpu_s = processors.had_or_awaited_s()

    def _send(self) -> None:
        try:
            fd = _zeros()
        except OSError:  # a kernel without such files: with a copy
            data = bytes(_PIECE)
            while not self._over.is_set():
                self.moved += self.socket.send(data)
            return
        try:
            out = self.socket.fileno()
            while not self._over.is_set():
                self.moved += os.sendfile(out, fd, 0, _PIECE)
        finally:
            os.close(fd)

    def _receive(self) -> None:
        room = bytearray(_PIECE)
        while not self._over.is_set():
            got = self.socket.recv_into(room, _PIECE, socket.MSG_TRUNC)
            if not got:
                return
            self.moved += got

    def packets(self) -> tuple[int, int]:
        """Sent so far, and how many of them once more (tcp_info of linux/tcp.h)."""
        with contextlib.suppress(OSError, struct.error):
            told = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
            (again,), (sent,) = (struct.unpack_from("I", told, at) for at in _AGAIN_SENT)
            return sent, again
        return 0, 0

    def stop(self) -> None:
        """At once, whatever is under way."""
        self._over.set()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(_STUCK_S)
        self.socket.close()


def _zeros() -> int:
    """A file of zeros in memory."""
    fd = os.memfd_create("preflight-wire")
    os.truncate(fd, _PIECE)
    return fd


def _limit(connection: socket.socket) -> None:
    """Each call ends after some time; Python's own limit would double the calls."""
    connection.settimeout(None)
    limit = struct.pack("ll", int(_STUCK_S), 0)
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, limit)


def counted(flows: Sequence[Flow], each_s: float, times: int) -> list[float]:
    """Gbit/s of all flows together, of each of so many spans of time."""
    marks = [(time.monotonic(), sum(one.moved for one in flows))]
    for _ in range(times):
        time.sleep(each_s)
        marks.append((time.monotonic(), sum(one.moved for one in flows)))
    pairs = zip(marks, marks[1:])  # noqa: B905, RUF007 - Python 3.9
    return [8e-9 * (after[1] - before[1]) / (after[0] - before[0]) for before, after in pairs]


def ping(connection: socket.socket, seconds: float, most: int = 10_000) -> list[float]:
    """Seconds of each trip of one byte there and back. The other end calls `pong`."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _limit(connection)
    trips: list[float] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s and len(trips) < most:
        began = time.perf_counter()
        connection.send(b"x")
        if not connection.recv(1):
            break
        trips.append(time.perf_counter() - began)
    connection.close()
    return trips


def pong(connection: socket.socket) -> None:
    """Send back each byte until there are no more."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _limit(connection)
    with contextlib.suppress(OSError):
        while byte := connection.recv(1):
            connection.send(byte)
    connection.close()
