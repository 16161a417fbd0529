"""The way to an SSH server through a command."""

from __future__ import annotations

import socket
import time

import pytest

from preflight.transports.ssh.dialing import by_command
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
