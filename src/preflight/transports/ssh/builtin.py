"""SSH without the ssh command: one connection and one channel per host and run.

fabric makes the connection as the user's SSH configuration wants it; the channel is read without
its `run`, whose reader threads poll.
"""

from __future__ import annotations

import logging
import os
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import paramiko
from fabric import Config, Connection
from msgspec import Struct, field

from preflight.faults import fault
from preflight.hostlists import Target
from preflight.model import Missing
from preflight.transports.conversation import ERR, OUT
from preflight.transports.ssh import errors
from preflight.transports.ssh.dialing import BANNER_S, CONNECT_S, by_command, dial
from preflight.transports.ssh.keys import Keys
from preflight.transports.ssh.known_hosts import KnownHosts, name_of
from preflight.transports.ssh.settings import (
    Settings,
    connect_wait_s,
    known_hosts_files,
    load,
    target_of,
)
from preflight.transports.ways import Unreached

#: Seconds to agree on keys and let us in (PAM and LDAP may be slow).
LOGIN_S = 30.0
#: How often an idle connection's thread looks whether it was closed. paramiko's own is 0.1 s: a
#: hundred of them would keep a core busy with nothing.
_IDLE_LOOK_S = 20.0
_READ_BYTES = 1 << 16
#: So often before it is the next host's turn.
_READS = 8


class Ssh(Struct):
    """The way to hosts by SSH. Shared by the threads in which hosts are reached."""

    targets: dict[str, Target]
    config: Config
    settings: Settings
    known: KnownHosts
    accept_new: bool = False
    #: Jump hosts by the way to them.
    _jumps: dict[tuple[str, ...], _Jump] = field(default_factory=dict)
    _jumping: Any = field(default_factory=threading.Lock)
    _writing: Any = field(default_factory=threading.Lock)

    def open(self, host: str, script: bytes, phase: Callable[[str], None]) -> SshSession:
        """Reach the host, prove who both are, start the script; raises Unreached."""
        target = self.targets[host]
        jump = self._jump_to(target.host, phase)
        connection = self._connection(target.host, target.user, target.port, jump)
        try:
            self._connect(connection, phase)
            phase("session")
            channel = _start(connection, script)
        except BaseException:
            connection.close()
            raise
        return SshSession(connection, channel)

    def _connection(
        self, host: str, user: str | None, port: int | None, jump: Connection | None
    ) -> Connection:
        # Each its own options: fabric writes into what it is given.
        return _Connection(
            host, user, port, config=self.config, gateway=jump or False, forward_agent=False,
            connect_kwargs={"banner_timeout": BANNER_S, "auth_timeout": LOGIN_S},
        )  # fmt: skip

    def _jump_to(self, host: str, phase: Callable[[str], None]) -> Connection | None:
        """The jump host on the way, open; all hosts behind it share one connection."""
        hops = self.settings.jumps(host)
        jump: Connection | None = None
        for at, hop in enumerate(hops, 1):
            phase(f"jump host {hop}")
            with self._jumping:
                found = self._jumps.setdefault(hops[:at], _Jump())
            with found.lock:  # the first host opens it, the others behind it wait
                jump = found.opened(partial(self._open_jump, hop, jump))
        return jump

    def _open_jump(self, hop: str, before: Connection | None) -> Connection:
        user, host, port = target_of(hop)
        connection = self._connection(host, user, port, before)
        try:
            self._connect(connection, lambda _: None)
        except Unreached as error:
            connection.close()
            raise Unreached("proxy", f"jump host {hop}: {error.missing.text}") from None
        return connection

    def _connect(self, connection: Connection, phase: Callable[[str], None]) -> None:
        settings = connection.ssh_config
        connection.connect_timeout = None
        known = self._trust(connection, settings)
        command = settings.get("proxycommand", "none")
        if not connection.gateway and command.lower() != "none":
            connection.connect_kwargs["sock"] = by_command(command, phase)
        elif not connection.gateway:
            wait_s = connect_wait_s(settings, CONNECT_S, LOGIN_S)
            sock = dial(connection.host, connection.port, wait_s, phase)
            connection.connect_kwargs["sock"] = sock
        phase("login")
        began_s = time.monotonic()
        try:
            connection.open()
        except paramiko.BadHostKeyException as error:
            raise errors.changed(error, known) from None
        except (OSError, EOFError, paramiko.SSHException) as error:
            taken_s = time.monotonic() - began_s
            raise errors.at_login(error, connection.user, connection.host, taken_s) from None
        connection.transport.sock.settimeout(_IDLE_LOOK_S)

    def _trust(self, connection: Connection, settings: dict[str, Any]) -> str:
        """Give the connection the host keys that are known, and what to do without one. What takes
        them out again is returned."""
        name = name_of(connection.host, connection.port)
        asked = name_of(settings["hostkeyalias"], 22) if "hostkeyalias" in settings else name
        files = known_hosts_files(settings)
        lines = self.known.of(asked, files)
        revoked = {line.blob for line in lines if line.marker == "revoked"}
        keys = connection.client.get_host_keys()
        for line in lines:
            with suppress(Exception):  # a kind of key that this library does not know
                if not line.marker and line.blob not in revoked:
                    keys.add(name, line.kind, paramiko.PKey.from_type_string(line.kind, line.blob))
        strict = settings.get("stricthostkeychecking", "ask").lower()
        accept = self.accept_new or strict in ("no", "off", "accept-new")
        policy = errors.KeyPolicy(asked, lines, files[0], accept, self._writing)
        connection.client.set_missing_host_key_policy(policy)
        file = next((line.source.rpartition(":")[0] for line in lines), str(files[0]))
        return shlex.join(["ssh-keygen", "-f", file, "-R", asked])


class _Jump(Struct):
    """A jump host; of one that cannot be reached why, which no second host waits for."""

    lock: Any = field(default_factory=threading.Lock)
    connection: Connection | None = None
    failed: Unreached | None = None

    def opened(self, connect: Callable[[], Connection]) -> Connection:
        """The connection, made by the first who needs it; raises Unreached."""
        if self.failed:
            raise self.failed
        if self.connection is None or not self.connection.is_connected:
            try:
                self.connection = connect()
            except Unreached as error:
                self.failed = error
                raise
        return self.connection


class _Connection(Connection):  # type: ignore[misc]
    """One that writes nothing into the configuration, which all threads read: setting an attribute
    that the class lacks becomes a key of it, for which invoke builds all of it anew."""

    inline_ssh_env = None


class _Bell:
    """What paramiko's buffers ring when bytes come or the channel ends.

    Not the pipe of `channel.fileno()`, which both streams share: where one is emptied while the
    other fills, the byte that tells of the other can be lost, and what it holds is not read until
    more comes, or the end, which a process left behind keeps away.
    """

    def __init__(self) -> None:
        self.fileno, self._rings = os.pipe()
        os.set_blocking(self.fileno, False)
        os.set_blocking(self._rings, False)

    def set(self) -> None:
        """Called by paramiko's thread, which holds the lock of the buffer."""
        with suppress(BlockingIOError):  # it rings already
            os.write(self._rings, b"x")

    def clear(self) -> None:
        """One buffer was emptied; of the other nothing is known, so it rings on."""

    def hear(self) -> None:
        """It is silent until something sets it again."""
        with suppress(BlockingIOError):
            os.read(self.fileno, 65536)

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


def make(targets: Sequence[Target], *, accept_new: bool = False) -> Ssh:
    """The way to these hosts, configuration and known_hosts read once. Raises UsageError where the
    configuration cannot be read."""
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)  # each fault is told by us
    settings, known = load(targets)
    overrides = {"authentication": {"strategy_class": Keys().strategy}}
    config = Config(ssh_config=settings, overrides=overrides)
    return Ssh({one.name: one for one in targets}, config, settings, known, accept_new)


def _start(connection: Connection, script: bytes) -> paramiko.Channel:
    """A channel in which the script runs. Only `sh -s` passes through the login shell, which may be
    a csh or fish; the script is read by sh from its standard input."""
    try:
        channel = connection.client.get_transport().open_session(timeout=LOGIN_S)
        channel.settimeout(LOGIN_S)
        channel.exec_command("/bin/sh -s")
    except paramiko.ChannelException as error:
        why = f"it lets us in and refuses a session: {error.text}"
        raise Unreached("no-session", why) from None
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise Unreached("no-session", f"it lets us in and then: {error or 'closes'}") from None
    with suppress(OSError):  # it may have ended without reading: what it said tells why
        channel.sendall(script)
        channel.shutdown_write()
    return channel
