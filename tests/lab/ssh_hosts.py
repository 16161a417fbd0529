"""What the hosts of the SSH lab are like: who logs in, where they stand, what their tools say."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from bench.inputs import small_xml

Reach = Literal[
    "direct",
    "jump",  # in a network of its own, by way of the host "jump"
    "jump-refused",
    "refused",
    "no-route",
    "dropped",  # nothing comes back, as from a machine that is off
    "silent",  # takes the connection and says nothing
    "stuck",  # says its banner and nothing more
    "closing",  # takes the connection and closes it
    "http",  # another server than SSH
]
#: The network of each, as the first two parts of its addresses, and the port.
PLACES: dict[Reach, tuple[str, int]] = {
    "direct": ("10.77", 22),
    "jump": ("10.89", 22),
    "jump-refused": ("10.89", 2),
    "refused": ("10.77", 2),
    "no-route": ("10.66", 22),
    "dropped": ("10.55", 22),
    "silent": ("10.77", 2023),
    "stuck": ("10.77", 2024),
    "closing": ("10.77", 2025),
    "http": ("10.77", 2080),
}

#: Users by name: login shell, and the rc file that it reads in every session, with its text.
_NOISE = "echo 'Welcome to the cluster'\necho 'quota: 93 % used' >&2\n"
USERS: dict[str, tuple[str, str, str]] = {
    "dash": ("/bin/dash", "", ""),
    "bash": ("/bin/bash", "", ""),
    "noisy": ("/bin/bash", ".bashrc", _NOISE + "stty erase x\nmesg n\ncd /nowhere\n"),
    "leaves": ("/bin/bash", ".bashrc", "exec true\n"),
    "tcsh": ("/usr/bin/tcsh", ".tcshrc", "echo 'Welcome to the cluster'\n"),
    "csh": ("/bin/bsd-csh", ".cshrc", "echo 'Welcome to the cluster'\n"),
    "fish": ("/usr/bin/fish", ".config/fish/config.fish", _NOISE),
    "zsh": ("/usr/bin/zsh", ".zshenv", _NOISE),
    "nologin": ("/usr/sbin/nologin", "", ""),
    "keyless": ("/bin/dash", "", ""),
}
#: Of the first user of USERS; the next has the next.
FIRST_UID = 31000


class LabHost(Struct, frozen=True, kw_only=True):
    """One host. `user`: one of USERS, or root, for work with this machine's Python. `tools`: more
    fake commands, or others than those it has, as text of a sh script.

    `key`: what known_hosts has of it. `sshd`: more of its sshd's configuration. `mounts`: lines of
    sh that are run before its sshd starts, in a mount namespace of its own. `hostname`, `boot_id`:
    its own unless they are given.
    """

    user: str = "dash"
    reach: Reach = "direct"
    key: Literal["known", "unknown", "changed"] = "known"
    tools: Mapping[str, str] = {}
    sshd: str = ""
    mounts: str = ""
    hostname: str = ""
    boot_id: str = ""
    clock_ahead_s: int = 0


class Place(Struct, frozen=True):
    """Where a host is found."""

    address: str
    port: int

    @property
    def known_as(self) -> str:
        """The address as known_hosts writes it."""
        return self.named(self.address)

    def named(self, name: str) -> str:
        """Another name of the host as known_hosts writes it."""
        return name if self.port == 22 else f"[{name}]:{self.port}"


def places(hosts: Mapping[str, LabHost]) -> dict[str, Place]:
    """An address for each; a host with mounts, which has its own sshd, also has its own port."""
    found = {}
    for number, (name, host) in enumerate(hosts.items(), 1):
        network, port = PLACES[host.reach]
        port = 2200 + number if host.mounts else port
        found[name] = Place(f"{network}.{number // 200}.{number % 200 + 1}", port)
    return found


def write_tools(folder: Path, name: str, number: int, host: LabHost) -> None:
    """The host's own commands, for a folder that stands before the rest of its PATH."""
    folder.mkdir(parents=True)
    for tool, text in {**dict(_tools(name, number, host)), **host.tools}.items():
        path = folder / tool
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)


def _tools(name: str, number: int, host: LabHost) -> Iterator[tuple[str, str]]:
    hostname = shlex.quote(host.hostname or name)
    boot_id = host.boot_id or f"{number:08x}-0000-4000-8000-000000000000"
    yield "hostname", f"echo {hostname}"
    yield "uname", f'[ "$*" != -n ] || exec echo {hostname}\nexec /bin/uname "$@"'
    yield (
        "cat",
        f'[ "$*" != /proc/sys/kernel/random/boot_id ] || exec echo {boot_id}\nexec /bin/cat "$@"',
    )
    if host.clock_ahead_s:
        yield "date", f"exec /bin/date -d '{host.clock_ahead_s} seconds' \"$@\""
    yield (
        "nvidia-smi",
        '[ "$*" != "-q -x" ] || exec /bin/cat /srv/nvidia-smi.xml\n'
        'echo "Invalid combination of input arguments." >&2; exit 2',
    )


def write_texts(base: Path) -> None:
    """What tools of all hosts replay."""
    (base / "nvidia-smi.xml").write_text(small_xml(), encoding="utf-8")


def write_users(base: Path, public_key: str) -> None:
    """Homes, keys, and passwd and group files with the lab's users and root; the home of root, by
    which OpenSSH finds its files, is the client's."""
    passwd = ["root:*:0:0:root:/srv/client:/bin/bash", "sshd:*:30999:65534::/run/sshd:/bin/false"]
    (base / "keys").mkdir()
    (base / "keys" / "root").write_text(public_key, encoding="utf-8")
    for uid, (user, (shell, rc, text)) in enumerate(USERS.items(), FIRST_UID):
        home = base / "home" / user
        home.mkdir(parents=True)
        if rc:
            (home / rc).parent.mkdir(parents=True, exist_ok=True)
            (home / rc).write_text(text, encoding="utf-8")
        for path in (home, *home.rglob("*")):
            _chown(path, uid)
        passwd.append(f"{user}:*:{uid}:{uid}::/srv/home/{user}:{shell}")
        if user != "keyless":
            (base / "keys" / user).write_text(public_key, encoding="utf-8")
    (base / "passwd").write_text("\n".join(passwd) + "\n", encoding="utf-8")
    ids = range(FIRST_UID, FIRST_UID + len(USERS))
    groups = ["root:x:0:", "tty:x:5:", "nogroup:x:65534:", *(f"lab{uid}:x:{uid}:" for uid in ids)]
    (base / "group").write_text("\n".join(groups) + "\n", encoding="utf-8")


def _chown(path: Path, uid: int) -> None:
    import os

    os.chown(path, uid, uid)
