"""Hosts on one switch, each behind a link of its own that carries so much and no more.

Network namespaces joined by a bridge, or by several, in namespaces of mounts, network and processes
of their own: nothing of the machine is changed, and all ends with the first process. `ssh` inside
is a few lines that enter the namespace of the host that is named, so that the command works as ever
with `--ssh system`. A link is slowed by `tc tbf`, a host by a quota of processor time, packets are
lost by nftables.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.conftest import require

_TOOLS = ("ip", "tc", "nft", "unshare", "nsenter", "setpriv")
_APART = ("setpriv", "--pdeathsig", "KILL", "unshare", "-m", "-n", "-p", "--fork",
          "--kill-child", "--mount-proc")  # fmt: skip
#: Where quotas of processor time are given, cgroups(7), version 1.
_CPU = Path("/sys/fs/cgroup/cpu")
#: Two processors carry the traffic of six hosts: with this it is the links that are measured.
RATE_MBIT = 400
_ENTER = """\
base=$1; many=$2; rate=$3; networks=$4
mount -t tmpfs tmpfs /run; mkdir /run/netns
# No server of names is reached from here.
sed 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf >/run/nsswitch.conf
mount --bind /run/nsswitch.conf /etc/nsswitch.conf
ip link set lo up
for i in $(seq 1 $many); do ip netns add h$i; ip -n h$i link set lo up; done
for n in $(seq 0 $((networks - 1))); do
  ip link add name switch$n type bridge; ip link set switch$n up
  for i in $(seq 1 $many); do
    ip link add name h$i.$n type veth peer name eth$n netns h$i
    ip link set h$i.$n master switch$n; ip link set h$i.$n up
    ip -n h$i addr add 10.79.$n.$i/24 dev eth$n; ip -n h$i link set eth$n up
    tc qdisc add dev h$i.$n root tbf rate ${rate}mbit burst 256k latency 50ms
    ip netns exec h$i tc qdisc add dev eth$n root tbf rate ${rate}mbit burst 256k latency 50ms
  done
done
for i in $(seq 1 $many); do ip -n h$i route add default via 10.79.0.254; done
echo ready
exec sleep infinity
"""
#: The last two words are the host and the remote command.
_SSH = """\
#!/bin/sh
for word do before=$host; host=$word; done
[ -e {base}/$before.cgroup ] && echo 0 > "$(cat {base}/$before.cgroup)/cgroup.procs"
exec ip netns exec "$before" unshare -u env PREFLIGHT_LOCK="{base}/$before.lock" \
  sh -c 'hostname "$1"; exec /bin/sh -s' sh "$before"
"""


class Shaped:
    """A running network of hosts h1, h2 ..."""

    def __init__(self, base: Path, many: int, pid: int) -> None:
        self.base, self.pid = base, pid
        self.hosts = [f"h{number}" for number in range(1, many + 1)]
        #: The cgroup of a host, and what it is to have of each 0.1 s of a processor.
        self.quota: tuple[Path, int] | None = None

    def inside(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` among the hosts."""
        enter = ["nsenter", "-t", str(self.pid), "-m", "-n", "-p"]
        path = f"PATH={self.base / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
        return [*enter, "env", path, f"TMPDIR={self.base}", *argv]

    def sh(self, text: str) -> None:
        """Run a shell command among them."""
        subprocess.run(self.inside(["sh", "-ec", text]), check=True, timeout=30)

    def rate(self, host: str, mbit: float, network: int = 0) -> None:
        """Another rate for the link of one host, both ways; of several the one to this network."""
        new = f"root tbf rate {mbit}mbit burst 256k latency 50ms"
        self.sh(f"tc qdisc replace dev {host}.{network} {new}; "
                f"ip netns exec {host} tc qdisc replace dev eth{network} {new}")  # fmt: skip

    def loses(self, host: str, of_a_thousand: int) -> None:
        """So many of the packets that reach a host are lost."""
        rule = f"numgen random mod 1000 < {of_a_thousand} drop"
        self.sh(
            f"ip netns exec {host} nft 'add table ip t; add chain ip t c {{ type filter hook input "
            f"priority 0 ; }}; add rule ip t c {rule}'"
        )

    def starves(self, host: str, percent: int) -> None:
        """Of the next run a host's ranks have so much of one processor, once there are any: to load
        torch with so little would take minutes."""
        folder = _CPU / f"preflight-{self.base.name}-{host}"
        folder.mkdir(exist_ok=True)
        (self.base / f"{host}.cgroup").write_text(str(folder), encoding="utf-8")
        self.quota = folder, 1000 * percent

    def heals(self, host: str) -> None:
        """Nothing is wrong with it any more."""
        self.quota = None
        (self.base / f"{host}.cgroup").unlink(missing_ok=True)
        self.sh(f"ip netns exec {host} nft flush ruleset")
        self.rate(host, RATE_MBIT)
        with contextlib.suppress(OSError):
            (_CPU / f"preflight-{self.base.name}-{host}").rmdir()

    def preflight(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run this repository's preflight over all hosts."""
        argv = [sys.executable, "-m", "preflight", *words, "--ssh", "system",
                "--hosts", ",".join(self.hosts), "--python", sys.executable]  # fmt: skip
        starved = threading.Thread(target=self._starve, daemon=True)
        starved.start()
        done = subprocess.run(self.inside(argv), capture_output=True, text=True, timeout=240)
        self.quota = None
        starved.join()
        return done

    def _starve(self) -> None:
        """Give a host its quota once ranks run there: the agent, and what it has forked."""
        while self.quota is not None:
            folder, quota_us = self.quota
            pids = (folder / "cgroup.procs").read_text().split()
            if sum(map(_benches, pids)) > 2:  # the agent, what sweeps after it, a rank
                (folder / "cpu.cfs_quota_us").write_text(str(quota_us), encoding="utf-8")
                return
            time.sleep(0.02)


def _benches(pid: str) -> bool:
    """Whether it is an agent of a bench, or was forked from one."""
    try:
        words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"bench" in words and b"timeout" not in words[0]


@contextmanager
def shaped(base: Path, many: int, networks: int = 1) -> Iterator[Shaped]:
    """Start it in the empty folder `base`; end all of it afterwards. Of several networks each host
    has a link to each: eth0, eth1 ..."""
    absent = [tool for tool in _TOOLS if shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin")
              is None]  # fmt: skip
    require(", ".join(absent) or "all", not absent)
    (base / "bin").mkdir()
    ssh = base / "bin" / "ssh"
    ssh.write_text(_SSH.format(base=base), encoding="utf-8")
    ssh.chmod(0o755)
    argv = [
        *_APART,
        "sh",
        "-ec",
        _ENTER,
        "shaped",
        str(base),
        str(many),
        str(RATE_MBIT),
        str(networks),
    ]
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stdout and process.stderr
    try:
        if process.stdout.readline() != "ready\n":
            process.kill()
            raise RuntimeError(process.stderr.read())
        yield Shaped(base, many, psutil.Process(process.pid).children()[0].pid)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
