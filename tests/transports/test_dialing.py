"""The way to an SSH server through a command."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from preflight.transports.ssh.dialing import by_command, reading_ahead
from preflight.transports.ways import Unreached


def test_a_command_that_leads_to_a_server() -> None:
    sock = by_command("sh -c 'echo SSH-2.0-x; cat'", lambda _: None)
    assert sock.recv(64).startswith(b"SSH-2.0-x")
    sock.sendall(b"hello\n")
    assert sock.recv(64) == b"hello\n"
    sock.close()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("false", "without a word"),
        ("sh -c 'echo no way there >&2; exit 1'", "no way there"),
        ("preflight-no-such-command", "not found"),
    ],
)
def test_a_command_that_ends_is_told_at_once_with_its_words(command: str, said: str) -> None:
    began_s = time.monotonic()
    with pytest.raises(Unreached) as raised:
        by_command(command, lambda _: None)
    assert raised.value.missing.fault == "proxy"
    assert said in raised.value.missing.text
    assert time.monotonic() - began_s < 5


def test_the_socket_is_one_that_a_selector_takes() -> None:
    sock = by_command("sh -c 'echo SSH-2.0-x; cat'", lambda _: None)
    assert isinstance(sock, socket.socket)
    sock.close()


def test_what_is_read_ahead_is_given_in_order_and_to_its_end() -> None:
    plain, server = socket.socketpair()
    sock = reading_ahead(plain)
    data = bytes(range(256)) * 400

    def write() -> None:
        with server:
            server.sendall(data)

    writer = threading.Thread(target=write)
    writer.start()
    came = b""
    while more := sock.recv((16, 1, 70_000)[len(came) % 3]):
        came += more
    assert came == data
    writer.join()
    sock.close()


def test_what_is_read_ahead_was_there_and_is_not_waited_for() -> None:
    plain, server = socket.socketpair()
    with server, reading_ahead(plain) as sock:
        sock.settimeout(0.01)
        server.sendall(b"head and body")
        assert sock.recv(1, socket.MSG_PEEK) == b"h"
        assert sock.recv(4) == b"head"
        server.sendall(b", more")
        assert sock.recv(99) == b" and body"
        assert sock.recv(99) == b", more"
        with pytest.raises(TimeoutError):
            sock.recv(1)
