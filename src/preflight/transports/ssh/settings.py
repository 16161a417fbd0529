"""What the user's SSH configuration says of each host, and which known_hosts lines are about it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import paramiko
from msgspec import Struct, field

from preflight.errors import UsageError
from preflight.hostlists import Target
from preflight.transports.ssh import config, known_hosts
from preflight.transports.ssh.known_hosts import KnownHosts, name_of


class Settings(paramiko.SSHConfig):  # type: ignore[misc]
    """The user's configuration; what it says of a host is found out once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._blocks = config.Blocks(text)
        self._told: dict[str, Any] = {}

    def lookup(self, hostname: str) -> Any:
        """Raises paramiko.ConfigParseError."""
        if hostname not in self._told:
            text = self._blocks.text_for(hostname)
            self._told[hostname] = paramiko.SSHConfig.from_text(text).lookup(hostname)
        return self._told[hostname]

    def jumps(self, host: str) -> tuple[str, ...]:
        """The jump hosts on the way to a host, the first one first; those of a jump host are before
        it. A host is not its own jump host, though `Host *` may say so."""
        return self._jumps(host, frozenset({host}))

    def _jumps(self, host: str, seen: frozenset[str]) -> tuple[str, ...]:
        told = self.lookup(host).get("proxyjump", "none")
        hops = [one.strip() for one in told.split(",") if one.strip().lower() != "none"]
        if not hops or target_of(hops[0])[1] in seen:
            return ()
        first = target_of(hops[0])[1]
        return (*self._jumps(first, seen | {first}), *hops)


def target_of(hop: str) -> tuple[str | None, str, int | None]:
    """User, host and port of `[ssh://][USER@]HOST[:PORT]`, as ProxyJump has it."""
    user, _, rest = hop.removeprefix("ssh://").rstrip("/").rpartition("@")
    name, colon, port = rest.rpartition(":")
    if not (colon and port.isdigit()) or (":" in name and not name.startswith("[")):
        name, port = rest, ""
    return user or None, name.strip("[]"), int(port) if port else None


def load(targets: Iterable[Target]) -> tuple[Settings, KnownHosts]:
    """Configuration and known_hosts, each file read once. Raises UsageError where the configuration
    cannot be read."""
    files = (config.user_file(), config.SYSTEM)
    settings = Settings("Host *\n".join(map(config.text_of, files)))
    asked = _Asked(settings)
    try:
        for target in targets:
            asked.add(target.host, target.port)
    except paramiko.ConfigParseError as error:
        what = f"the SSH configuration ({files[0]}, {files[1]}): {error}"
        raise UsageError(what, "--ssh system reads it as ssh does") from None
    return settings, known_hosts.read(asked.files, asked.names)


class _Asked(Struct):
    """What known_hosts may call the hosts and the jump hosts before them, and its files."""

    settings: Settings
    names: dict[str, None] = field(default_factory=dict)
    files: dict[Path, None] = field(default_factory=dict)

    def add(self, host: str, port: int | None) -> None:
        """A host, and whom its configuration jumps through."""
        self._add(host, port)
        for hop in self.settings.jumps(host):
            _, jump, at = target_of(hop)
            self._add(jump, at)

    def _add(self, host: str, port: int | None) -> None:
        told = self.settings.lookup(host)
        if not told.get("port", "22").isdigit():
            raise UsageError(f"the SSH configuration: Port {told['port']!r} of {host} is no number")
        number = port or int(told.get("port", 22))
        self.names[name_of(told.get("hostname", host), number)] = None
        if "hostkeyalias" in told:
            self.names[told["hostkeyalias"]] = None
        self.files.update(dict.fromkeys(known_hosts_files(told)))


def known_hosts_files(settings: dict[str, Any]) -> list[Path]:
    """The user's files first: a new key is written to the first of them."""
    user = settings.get("userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2")
    system = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
    everyone = settings.get("globalknownhostsfile", system)
    # `none` is no file; a new key is then kept nowhere.
    names = [name for name in f"{user} {everyone}".split() if name.lower() != "none"]
    kept = [Path(name).expanduser() for name in names]
    return kept if user.lower() != "none" else [Path("/dev/null"), *kept]


def connect_wait_s(settings: dict[str, Any], usual_s: float, most_s: float) -> float:
    """Seconds to wait for a host to take the connection; ConnectTimeout is a number, `none`, or a
    time such as 1m30s, which is longer than any host is waited for here."""
    told = str(settings.get("connecttimeout", usual_s))
    return min(float(told), most_s) if told.replace(".", "", 1).isdigit() else most_s
