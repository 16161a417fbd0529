"""The way to an SSH server, until it has begun to speak: by TCP, or through a ProxyCommand."""

from __future__ import annotations

import select
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack

from preflight.transports.ssh.errors import at_dialing
from preflight.transports.ways import Unreached

#: Seconds for a host to take the connection, unless ConnectTimeout says otherwise; to say that it
#: is an SSH server.
CONNECT_S = 10.0
BANNER_S = 15.0


#: Bytes that are read at once: some packets of answers.
_AHEAD_BYTES = 1 << 14


class _Ahead(socket.socket):
    """Reads what has come: paramiko asks for the head and the rest of each packet, two system calls
    and two turns of the interpreter's lock, where one does for all packets that are there."""

    _read, _at = b"", 0

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """At most so many bytes, as those of any socket."""
        if flags:
            return super().recv(size, flags)
        if self._at == len(self._read):
            self._read, self._at = super().recv(max(size, _AHEAD_BYTES)), 0
        data = self._read[self._at : self._at + size]
        self._at += len(data)
        return data


def reading_ahead(sock: socket.socket) -> socket.socket:
    """The same connection, in its place."""
    wait_s = sock.gettimeout()
    ahead = _Ahead(fileno=sock.detach())
    ahead.settimeout(wait_s)
    return ahead


def dial(host: str, port: int, wait_s: float, phase: Callable[[str], None]) -> socket.socket:
    """A connection on which an SSH server has begun to speak; raises Unreached."""
    with ExitStack() as stack:  # closes it unless all goes well
        try:
            phase("connect")
            made = socket.create_connection((host, port), timeout=wait_s)
            sock = stack.enter_context(reading_ahead(made))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            phase("banner")
            hear_banner(sock, BANNER_S)
        except OSError as error:
            raise at_dialing(error, host) from None
        stack.pop_all()
    return sock


def by_command(command: str, phase: Callable[[str], None]) -> socket.socket:
    """The same through a ProxyCommand, whose end is seen at once and whose words are told."""
    plain, theirs = socket.socketpair()
    ours = reading_ahead(plain)
    with tempfile.TemporaryFile() as said, theirs:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=said, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        threading.Thread(target=process.wait, daemon=True).start()  # no zombie when it ends
        try:
            phase("banner")
            hear_banner(ours, BANNER_S)
        except (OSError, Unreached) as error:
            ours.close()
            process.terminate()
            said.seek(0)
            words = " ".join(said.read(2000).decode(errors="replace").split())
            why = words or (error.missing.text if isinstance(error, Unreached) else str(error))
            raise Unreached("proxy", f"ProxyCommand {command}: {why}") from None
    return ours


def hear_banner(sock: socket.socket, wait_s: float) -> None:
    """Wait until the server says something; raises Unreached where it does not, or is none."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    if not poll.poll(wait_s * 1000):
        raise Unreached("no-banner", f"it took the connection and said nothing for {wait_s:g} s")
    sock.settimeout(wait_s)
    head = sock.recv(64, socket.MSG_PEEK)
    if not head:
        raise Unreached("no-banner", "it took the connection and closed it without a word")
    # A server may send other lines first (RFC 4253, 4.2), but no control characters.
    if not head.startswith(b"SSH-") and (b"HTTP" in head or min(head) < 9):
        said = " ".join(head.decode("ascii", "replace").split())
        raise Unreached("not-ssh", f"it says {said!r}")
