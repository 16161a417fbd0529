"""SSH without the ssh command: one connection and one channel per host and run.

fabric makes the connection as the user's SSH configuration wants it; the channel is read without
its `run`, whose reader threads poll.
"""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import paramiko
from fabric import Config, Connection
from msgspec import Struct, field

from preflight.hostlists import Target
from preflight.transports.ssh import errors
from preflight.transports.ssh.dialing import BANNER_S, CONNECT_S, by_command, dial
from preflight.transports.ssh.keys import Keys
from preflight.transports.ssh.known_hosts import KnownHosts, name_of
from preflight.transports.ssh.session import SshSession
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
            connect_kwargs={
                "banner_timeout": BANNER_S, "auth_timeout": LOGIN_S,
                "transport_factory": transport_over,
            },
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


def make(targets: Sequence[Target], *, accept_new: bool = False) -> Ssh:
    """The way to these hosts, configuration and known_hosts read once. Raises UsageError where the
    configuration cannot be read."""
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)  # each fault is told by us
    settings, known = load(targets)
    overrides = {"authentication": {"strategy_class": Keys().strategy}}
    config = Config(ssh_config=settings, overrides=overrides)
    return Ssh({one.name: one for one in targets}, config, settings, known, accept_new)


def transport_over(sock: Any, **options: Any) -> paramiko.Transport:
    """One that would rather have ciphers that authenticate: of the others paramiko compares each
    packet's MAC byte by byte in Python, which takes longer than all else that it does with it."""
    transport = paramiko.Transport(sock, **options)
    offered = transport.get_security_options()
    offered.ciphers = sorted(offered.ciphers, key=lambda name: "-gcm@" not in name)
    return transport


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
