"""SSH without the ssh command: one connection and one channel per host and run.

fabric makes the connection as the user's SSH configuration wants it; the channel is read without
its `run`, whose reader threads poll.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import paramiko
from fabric import Config, Connection
from msgspec import Struct, field
from paramiko.auth_strategy import AuthSource, AuthStrategy

from preflight.errors import UsageError
from preflight.faults import fault
from preflight.hostlists import Target
from preflight.model import Missing
from preflight.transports import known_hosts, ssh_config, ssh_errors
from preflight.transports.conversation import ERR, OUT
from preflight.transports.fan import Unreached
from preflight.transports.known_hosts import KnownHosts, name_of

#: Seconds for a host to take the connection, unless ConnectTimeout says otherwise; to say that it
#: is an SSH server; to agree on keys and let us in (PAM and LDAP may be slow).
CONNECT_S = 10.0
BANNER_S = 15.0
LOGIN_S = 30.0
#: Looked for in this order where the configuration names none (OpenSSH 9, ssh_config(5)).
_IDENTITIES = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk")
#: How often an idle connection's thread looks whether it was closed. paramiko's own is 0.1 s: a
#: hundred of them would keep a core busy with nothing.
_IDLE_LOOK_S = 20.0
_READ_BYTES = 1 << 16


class Ssh(Struct):
    """The way to hosts by SSH. Shared by the threads in which hosts are reached."""

    targets: dict[str, Target]
    config: Config
    known: KnownHosts
    accept_new: bool = False
    _keys: dict[str, paramiko.PKey | str] = field(default_factory=dict)
    _jumps: dict[tuple[str, ...], Connection] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.RLock)

    def open(self, host: str, script: bytes, phase: Callable[[str], None]) -> SshSession:
        """Reach the host, prove who both are, start the script; raises Unreached."""
        target = self.targets[host]
        jump = self._jump_of(target)
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
        command = self.config.base_ssh_config.lookup(host).get("proxycommand", "none")
        gateway = jump or (command if command != "none" else False)
        return _Connection(
            host, user, port, config=self.config, gateway=gateway, forward_agent=False,
            connect_kwargs={"banner_timeout": BANNER_S, "auth_timeout": LOGIN_S},
        )  # fmt: skip

    def _jump_of(self, target: Target) -> Connection | None:
        """The jump host on the way, open; all hosts behind it share one connection."""
        told = self.config.base_ssh_config.lookup(target.host).get("proxyjump", "none")
        if told.lower() == "none":
            return None
        hops = tuple(one.strip() for one in told.split(","))
        with self._lock:  # the first host opens it, the others wait
            jump: Connection | None = None
            for at, hop in enumerate(hops):
                before, path = jump, hops[: at + 1]
                jump = self._jumps.get(path)
                if jump is None or not jump.is_connected:
                    jump = self._jumps[path] = self._open_jump(hop, before)
        return jump

    def _open_jump(self, hop: str, before: Connection | None) -> Connection:
        connection = self._connection(hop.removeprefix("ssh://"), None, None, before)
        try:
            self._connect(connection, lambda _: None)
        except Unreached as error:
            raise Unreached("proxy", f"jump host {hop}: {error.missing.text}") from None
        return connection

    def _connect(self, connection: Connection, phase: Callable[[str], None]) -> None:
        settings = connection.ssh_config
        connection.connect_timeout = None
        self._trust(connection, settings)
        if not connection.gateway:
            wait_s = min(float(settings.get("connecttimeout", CONNECT_S)), LOGIN_S)
            sock = _dial(connection.host, connection.port, wait_s, phase)
            connection.connect_kwargs["sock"] = sock
        phase("login")
        began_s = time.monotonic()
        try:
            connection.open()
        except (OSError, EOFError, paramiko.SSHException) as error:
            taken_s = time.monotonic() - began_s
            raise ssh_errors.at_login(error, connection.user, connection.host, taken_s) from None
        connection.transport.sock.settimeout(_IDLE_LOOK_S)

    def _trust(self, connection: Connection, settings: dict[str, Any]) -> None:
        """Give the connection the host keys that are known, and what to do without one."""
        name = name_of(connection.host, connection.port)
        asked = name_of(settings["hostkeyalias"], 22) if "hostkeyalias" in settings else name
        lines = self.known.of(asked)
        keys = connection.client.get_host_keys()
        for line in lines:
            with suppress(Exception):  # a kind of key that this library does not know
                if not line.marker:
                    keys.add(name, line.kind, paramiko.PKey.from_type_string(line.kind, line.blob))
        strict = settings.get("stricthostkeychecking", "ask").lower()
        accept = self.accept_new or strict in ("no", "off", "accept-new")
        policy = ssh_errors.KeyPolicy(asked, lines, _known_hosts_files(settings)[0], accept,
                                      self._lock)  # fmt: skip
        connection.client.set_missing_host_key_policy(policy)

    def key(self, path: str) -> paramiko.PKey | str:
        """The private key in a file, read once; else why it cannot be used, empty for no file."""
        with self._lock:
            if path not in self._keys:
                self._keys[path] = _private_key(Path(path))
            return self._keys[path]


class _Connection(Connection):  # type: ignore[misc]
    """One that writes nothing into the configuration, which all threads read: setting an attribute
    that the class lacks becomes a key of it, for which invoke builds all of it anew."""

    inline_ssh_env = None


class SshSession:
    """A shell at the end of a channel."""

    def __init__(self, connection: Connection, channel: paramiko.Channel) -> None:
        self._connection, self._channel = connection, channel
        self._fileno: int = channel.fileno()

    def filenos(self) -> Sequence[int]:
        """The pipe by which the channel tells that there are bytes."""
        return (self._fileno,)

    def read(self, _fileno: int) -> Sequence[tuple[int, bytes]]:
        """What is there of both streams; both have ended when the channel has."""
        over = self._channel.eof_received or self._channel.closed
        return list(self._parts()) or ([(OUT, b""), (ERR, b"")] if over else [])

    def _parts(self) -> Iterator[tuple[int, bytes]]:
        if self._channel.recv_ready():
            yield OUT, self._channel.recv(_READ_BYTES)
        if self._channel.recv_stderr_ready():
            yield ERR, self._channel.recv_stderr(_READ_BYTES)

    def ended(self, begun: bool, said: str) -> Missing:
        """The shell went away, or the connection did."""
        if not begun and not self._lost():
            return fault("no-shell", f"it ended without running it, and said: {said or 'nothing'}")
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


class _Identities(AuthStrategy):  # type: ignore[misc]
    """The user's keys, as the configuration names them; then those of the agent."""

    def __init__(self, ssh: Ssh, **settings: Any) -> None:
        super().__init__(ssh_config=settings["ssh_config"])
        self._ssh, self._user, self._settings = ssh, settings["username"], settings["ssh_config"]

    def get_sources(self) -> Iterator[AuthSource]:
        """One after another: whatever is not needed is not read."""
        files = self._settings.get("identityfile") or [
            str(Path.home() / ".ssh" / name) for name in _IDENTITIES
        ]
        for file in files:
            key = self._ssh.key(str(Path(file).expanduser()))
            if isinstance(key, paramiko.PKey):
                yield ssh_errors.Key(self._user, key, file)
            elif key:
                yield ssh_errors.Unusable(self._user, key)
        if self._settings.get("identitiesonly", "no").lower() != "yes":
            for key in paramiko.Agent().get_keys():
                yield ssh_errors.Key(self._user, key, f"the agent's {key.get_name()}")


class _Settings(paramiko.SSHConfig):  # type: ignore[misc]
    """The user's configuration; what it says of a host is found out once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._blocks = ssh_config.Blocks(text)
        self._told: dict[str, Any] = {}

    def lookup(self, hostname: str) -> Any:
        """Raises paramiko.ConfigParseError."""
        if hostname not in self._told:
            text = self._blocks.text_for(hostname)
            self._told[hostname] = paramiko.SSHConfig.from_text(text).lookup(hostname)
        return self._told[hostname]


def make(targets: Sequence[Target], *, accept_new: bool = False) -> Ssh:
    """The way to these hosts, configuration and known_hosts read once. Raises UsageError where the
    configuration cannot be read."""
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)  # each fault is told by us
    files = (ssh_config.user_file(), ssh_config.SYSTEM)
    settings = _Settings("Host *\n".join(map(ssh_config.text_of, files)))
    asked = _Asked(settings)
    try:
        for target in targets:
            asked.add(target.host, target.port)
    except paramiko.ConfigParseError as error:
        what = f"the SSH configuration ({files[0]}, {files[1]}): {error}"
        raise UsageError(what, "--ssh system reads it as ssh does") from None
    known = known_hosts.read(asked.files, asked.names)
    ssh = Ssh({target.name: target for target in targets}, Config(), known, accept_new)

    def strategy(**told: Any) -> AuthStrategy:
        return _Identities(ssh, **told)

    overrides = {"authentication": {"strategy_class": strategy}}
    ssh.config = Config(ssh_config=settings, overrides=overrides)
    return ssh


class _Asked(Struct):
    """What known_hosts may call the hosts and the jump hosts before them, and its files."""

    settings: paramiko.SSHConfig
    names: dict[str, None] = field(default_factory=dict)
    files: dict[Path, None] = field(default_factory=dict)
    hops: set[str] = field(default_factory=set)

    def add(self, host: str, port: int | None) -> None:
        """A host, and whom its configuration jumps through."""
        told = self.settings.lookup(host)
        number = port or int(told.get("port", 22))
        self.names[name_of(told.get("hostname", host), number)] = None
        if "hostkeyalias" in told:
            self.names[told["hostkeyalias"]] = None
        self.files.update(dict.fromkeys(_known_hosts_files(told)))
        for hop in told.get("proxyjump", "none").split(","):
            if hop.lower() != "none" and hop not in self.hops:
                self.hops.add(hop)
                jump = hop.strip().removeprefix("ssh://").rpartition("@")[2]
                name, _, at = jump.partition(":")
                self.add(name, int(at) if at.isdigit() else None)


def _known_hosts_files(settings: dict[str, Any]) -> list[Path]:
    """The user's files first: a new key is written to the first of them."""
    user = settings.get("userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2")
    system = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
    everyone = settings.get("globalknownhostsfile", system)
    return [Path(name).expanduser() for name in f"{user} {everyone}".split()]


def _dial(host: str, port: int, wait_s: float, phase: Callable[[str], None]) -> socket.socket:
    """A connection on which an SSH server has begun to speak."""
    with ExitStack() as stack:  # closes it unless all goes well
        try:
            phase("connect")
            sock = stack.enter_context(socket.create_connection((host, port), timeout=wait_s))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            phase("banner")
            ssh_errors.hear_banner(sock, BANNER_S)
        except OSError as error:
            raise ssh_errors.at_dialing(error, host) from None
        stack.pop_all()
    return sock


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


def _private_key(path: Path) -> paramiko.PKey | str:
    if not path.is_file():
        return ""
    try:
        return paramiko.PKey.from_path(path)
    except paramiko.PasswordRequiredException:
        return f"{path} is encrypted: ssh-add {path}"
    except Exception as error:  # noqa: BLE001 - by library and kind of key anything
        if "assw" in str(error) or "encrypted" in str(error):
            return f"{path} is encrypted: ssh-add {path}"
        return f"{path} cannot be used: {error}"
