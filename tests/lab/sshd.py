"""Many hosts on one machine: a real sshd, reached under an address for each host.

The whole lab is a set of namespaces (mounts, network, processes), so that it changes nothing of the
machine, any number of labs run side by side, and all of a lab ends with its first process. Its
files are /srv inside. `Match LocalAddress` with `SetEnv PATH=...` puts each host's own commands
before the others.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.conftest import require
from tests.lab.ssh_hosts import USERS, LabHost, Place, places, write_texts, write_tools, write_users

_TOOLS = ("sshd", "ssh", "ssh-keygen", "ip", "unshare", "nsenter", "setpriv")
#: A killed test run leaves no lab behind either.
_APART = ("setpriv", "--pdeathsig", "KILL", "unshare", "-m", "-n", "-p", "--fork",
          "--kill-child", "--mount-proc")  # fmt: skip

# 10.88.0.2 is the jump host, the only way to 10.89; its network forwards nothing, so that what is
# sent to 10.55 by way of it is lost.
_ENTER = """\
base=$1; python=$2
mount --bind "$base" /srv
for f in passwd group hosts nsswitch.conf; do mount --bind "/srv/$f" "/etc/$f"; done
mount -t tmpfs tmpfs /run; mkdir /run/sshd
ip link set lo up
ip route add local 10.77.0.0/16 dev lo
ip route add unreachable 10.66.0.0/16
: >/srv/run/far; unshare --net=/srv/run/far true
ip link add near type veth peer name far
ip link set far netns /srv/run/far
ip addr add 10.88.0.1/24 dev near; ip link set near up
far() { nsenter --net=/srv/run/far "$@"; }
far ip link set lo up; far ip link set far up; far ip addr add 10.88.0.2/24 dev far
far ip route add local 10.89.0.0/16 dev lo
ip route add 10.55.0.0/16 via 10.88.0.2
/usr/sbin/sshd -f /srv/sshd_config -E /srv/run/near.log -o PidFile=/srv/run/near.up
far /usr/sbin/sshd -f /srv/sshd_config -E /srv/run/far.log -o PidFile=/srv/run/far.up
"$python" /srv/listeners.py /srv/run/listeners.up &
"""
_READY = """\
for f in {awaited}; do until [ -e "/srv/run/$f.up" ]; do sleep 0.01; done; done
echo ready
exec sleep infinity
"""
_SSHD = """\
HostKey /srv/host_key
AuthorizedKeysFile /srv/keys/%u
Banner /srv/banner
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
MaxStartups 1000:30:2000
MaxSessions 100
LoginGraceTime 600
LogLevel VERBOSE
Subsystem sftp internal-sftp
"""


class Lab:
    """A running lab. `base` is its folder, seen from inside as /srv."""

    def __init__(self, base: Path, hosts: Mapping[str, LabHost]) -> None:
        self.base = base
        self.hosts = hosts
        self.places: dict[str, Place] = places(hosts)
        self.pid = 0

    @property
    def names(self) -> str:
        """All hosts, as --hosts takes them."""
        return ",".join(self.hosts)

    def inside(self, argv: list[str], env: Mapping[str, str] | None = None) -> list[str]:
        """The command that runs `argv` inside, as root with the client's home."""
        shown = {"HOME": "/srv/client", "SSH_AUTH_SOCK": "", **(env or {})}
        enter = ["nsenter", "-t", str(self.pid), "-m", "-n", "-p", "env", f"--chdir={self.base}"]
        return [*enter, *(f"{key}={value}" for key, value in shown.items()), *argv]

    def run(
        self, *argv: str, env: Mapping[str, str] | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside to its end."""
        return subprocess.run(
            self.inside(list(argv), env),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
        )

    def preflight(
        self, *words: str, env: Mapping[str, str] | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run this repository's preflight inside."""
        return self.run(*self.program(*words), env=env, timeout_s=timeout_s)

    def program(self, *words: str) -> list[str]:
        """preflight's command line."""
        return [sys.executable, "-m", "preflight", *words]

    def address(self, name: str) -> str:
        """A host's address with its port, as --hosts takes it."""
        return f"{self.places[name].address}:{self.places[name].port}"


@contextmanager
def lab(base: Path, hosts: Mapping[str, LabHost], *, banner: str = "") -> Iterator[Lab]:
    """Start the lab with these hosts in the empty folder `base`; end all of it afterwards."""
    missing = lacking(hosts)
    require(missing or "all", not missing)
    made = Lab(base, hosts)
    write_files(made, banner)
    script = _ENTER + _own_servers(made) + _READY.format(awaited=" ".join(_awaited(made)))
    with (base / "run" / "lab.log").open("w") as log:
        process = subprocess.Popen(
            [*_APART, "sh", "-ec", script, "lab", str(base), sys.executable],
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    assert process.stdout
    try:
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError((base / "run" / "lab.log").read_text())
        made.pid = psutil.Process(process.pid).children()[0].pid
        yield made
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def lacking(hosts: Mapping[str, LabHost]) -> str:
    """What a lab with these hosts needs and this machine has not; empty where it has all."""
    if os.geteuid() != 0:
        return "root"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    shells = {USERS[host.user][0] for host in hosts.values() if host.user in USERS}
    return ", ".join(tool for tool in (*_TOOLS, *shells) if not shutil.which(tool, path=path))


def _own_servers(made: Lab) -> str:
    """A host with mounts of its own has an sshd in a mount namespace of its own."""
    lines = []
    for name, host in made.hosts.items():
        if host.mounts:
            script = made.base / "run" / f"{name}.sh"
            port = made.places[name].port
            options = f"-E /srv/run/{name}.log -o PidFile=/srv/run/{name}.up -p {port}"
            script.write_text(f"{host.mounts}\nexec /usr/sbin/sshd -f /srv/sshd_config {options}\n")
            lines.append(f"unshare -m sh -e /srv/run/{name}.sh\n")
    return "".join(lines)


def _awaited(made: Lab) -> list[str]:
    own = (name for name, host in made.hosts.items() if host.mounts)
    return ["near", "far", "listeners", *own]


def write_files(made: Lab, banner: str) -> None:
    """All that stands in /srv when the lab starts."""
    base = made.base
    base.chmod(0o755)
    for folder in ("run", "client/.ssh", "bin"):
        (base / folder).mkdir(parents=True)
    keys = {name: _key(base / name) for name in ("host_key", "other_key")}
    write_users(base, _key(base / "client" / ".ssh" / "id_ed25519"))
    write_texts(base)
    shutil.copy(Path(__file__).with_name("listeners.py"), base)
    for number, (name, host) in enumerate(made.hosts.items(), 1):
        write_tools(base / "bin" / name, name, number, host)
    texts = {
        "banner": banner,
        "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
        "hosts": "127.0.0.1 localhost\n" + "".join(_names(made)),
        "sshd_config": _SSHD + "".join(_matches(made)),
        "client/.ssh/config": "".join(_config(made)),
        "client/.ssh/known_hosts": "".join(_known(made, keys)),
    }
    for path, text in texts.items():
        (base / path).write_text(text, encoding="utf-8")


def _key(path: Path) -> str:
    """A new key pair; its public half."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(path)]
    subprocess.run(argv, check=True)
    return path.with_name(path.name + ".pub").read_text(encoding="utf-8")


def _names(made: Lab) -> Iterator[str]:
    yield "10.88.0.2 jump\n"
    for name, place in made.places.items():
        yield f"{place.address} {name}\n"


def _matches(made: Lab) -> Iterator[str]:
    for name, place in made.places.items():
        path = f"/srv/bin/{name}:/usr/local/bin:/usr/bin:/bin"
        own = made.hosts[name].sshd
        yield f"Match LocalAddress {place.address}\n  SetEnv PATH={path}\n{own}"


def _config(made: Lab) -> Iterator[str]:
    """Only what is not usual stands under a host's name, as in a file that a person keeps."""
    for name, host in made.hosts.items():
        port = made.places[name].port
        lines = [f"  User {host.user}\n"] if host.user != "dash" else []
        lines += [f"  Port {port}\n"] if port != 22 else []
        lines += ["  ProxyJump jump\n"] if host.reach.startswith("jump") else []
        if lines:
            yield f"Host {name}\n{''.join(lines)}"
    yield "Host *\n  User dash\n"


def _known(made: Lab, keys: Mapping[str, str]) -> Iterator[str]:
    yield f"jump,10.88.0.2 {keys['host_key']}"
    for name, host in made.hosts.items():
        place = made.places[name]
        if host.key != "unknown":
            key = keys["host_key" if host.key == "known" else "other_key"]
            yield f"{place.named(name)},{place.known_as} {key}"
