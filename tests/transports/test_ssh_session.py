"""The channel of a host: no byte of either stream waits for the next one."""

from __future__ import annotations

import select
import socket
import threading
from types import SimpleNamespace
from typing import Any, cast

import paramiko
from paramiko.buffered_pipe import BufferedPipe

from preflight.transports.conversation import ERR, OUT
from preflight.transports.ssh.builtin import transport_over
from preflight.transports.ssh.session import SshSession


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


def test_no_byte_is_lost_to_a_thread_that_hears_while_another_rings() -> None:
    channel = Channel(late=(b"", b""))
    session = _session(channel)
    sent = 20_000

    def feed() -> None:
        for _ in range(sent):
            channel.in_buffer.feed(b"x")

    feeding = threading.Thread(target=feed)
    feeding.start()
    came, [fileno] = 0, session.filenos()
    while came < sent and select.select([fileno], [], [], 5)[0]:
        came += sum(len(data) for _, data in session.read(fileno))
    feeding.join()
    assert came == sent


def test_ciphers_that_authenticate_come_first_and_none_is_left_out() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        plain = paramiko.Transport(ours).get_security_options().ciphers
        offered = transport_over(ours).get_security_options().ciphers
    first = [name for name in offered if "gcm" in name]
    assert first and list(offered[: len(first)]) == first
    assert sorted(offered) == sorted(plain)
