"""The channel of a host: no byte of either stream waits for the next one."""

from __future__ import annotations

import select
from types import SimpleNamespace
from typing import Any, cast

from paramiko.buffered_pipe import BufferedPipe

from preflight.transports.conversation import ERR, OUT
from preflight.transports.ssh.builtin import SshSession


class Channel:
    """paramiko's buffers; what comes late comes while standard output is read."""

    def __init__(self, late: tuple[bytes, bytes]) -> None:
        self.in_buffer, self.in_stderr_buffer = BufferedPipe(), BufferedPipe()
        self.eof_received = self.closed = False
        self._late: list[tuple[bytes, bytes]] = [late]

    def recv_ready(self) -> bool:
        return bool(self.in_buffer.read_ready())

    def recv_stderr_ready(self) -> bool:
        return bool(self.in_stderr_buffer.read_ready())

    def recv(self, most: int) -> bytes:
        data = bytes(self.in_buffer.read(most))
        while self._late:
            out, err = self._late.pop()
            self.in_stderr_buffer.feed(err)
            self.in_buffer.feed(out)
        return data

    def recv_stderr(self, most: int) -> bytes:
        return bytes(self.in_stderr_buffer.read(most))

    def close(self) -> None:
        self.closed = True


def _session(channel: Channel) -> SshSession:
    return SshSession(cast("Any", SimpleNamespace(transport=None)), cast("Any", channel))


def _until_silent(session: SshSession) -> dict[int, bytes]:
    came = {OUT: b"", ERR: b""}
    for _ in range(20):
        [fileno] = session.filenos()
        if not select.select([fileno], [], [], 0)[0]:
            return came
        for stream, data in session.read(fileno):
            came[stream] += data
    raise AssertionError("it never fell silent")


def test_what_comes_while_the_other_is_read_is_read_too() -> None:
    channel = Channel(late=(b"late", b"error"))
    session = _session(channel)
    channel.in_buffer.feed(b"first ")
    assert _until_silent(session) == {OUT: b"first late", ERR: b"error"}


def test_what_was_there_before_is_read() -> None:
    channel = Channel(late=(b"", b""))
    channel.in_buffer.feed(b"early")
    assert _until_silent(_session(channel))[OUT] == b"early"


def test_more_than_a_read_takes_is_read() -> None:
    channel = Channel(late=(b"x" * 1_000_000, b"y" * 1_000_000))
    session = _session(channel)
    channel.in_buffer.feed(b"x")
    came = _until_silent(session)
    assert len(came[OUT]) == 1_000_001 and len(came[ERR]) == 1_000_000


def test_bytes_that_come_after_the_close_harm_nobody() -> None:
    channel = Channel(late=(b"", b""))
    session = _session(channel)
    session.close()
    channel.in_buffer.feed(b"too late")
