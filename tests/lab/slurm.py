"""A real Slurm of several nodes on this machine: munged, slurmctld and one slurmd for each node.

All of its files are in one folder, and its processes are ended with the context. Every node lies on
this machine, under a port of its own; a task prolog puts a folder of that node's own tools first in
PATH, so that each can give other answers.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.conftest import require

NODES = ("n1", "n2", "n3", "n4")
_PATH = "/usr/sbin:/sbin"

_CONF = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={base}/state
SlurmctldPidFile={base}/slurmctld.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdSpoolDir={base}/spool-%n
SlurmdPidFile={base}/slurmd-%n.pid
SlurmdLogFile={base}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
MpiDefault=none
SwitchType=switch/none
ReturnToService=0
SlurmdTimeout=5
SlurmctldTimeout=10
InactiveLimit=0
KillWait=2
SlurmdParameters=config_overrides
TaskProlog={base}/task-prolog
DebugFlags=NO_CONF_HASH
MessageTimeout=5
{more}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""

#: What it prints as `export NAME=value` is in the task's environment.
_TASK_PROLOG = """\
#!/bin/sh
echo "export PATH={base}/tools/$SLURMD_NODENAME:$PATH"
"""


@dataclass
class Cluster:
    """What runs, and how to reach it: `environment` makes any Slurm command talk to it."""

    base: Path
    nodes: tuple[str, ...]
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def command(self, *argv: str, timeout_s: float = 30) -> str:
        """What a Slurm command prints; CalledProcessError where it fails."""
        return subprocess.run(
            argv, env=self.environment, check=True, capture_output=True, text=True,
            timeout=timeout_s,
        ).stdout  # fmt: skip

    def tool(self, node: str, name: str, script: str) -> None:
        """Put a tool of that name before the others of the node: a shell script."""
        path = self.base / "tools" / node / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def state(self, node: str) -> str:
        """As sinfo writes it: idle, drained*, down ..."""
        return self.command("sinfo", "-h", "-N", "-n", node, "-o", "%T").strip()

    def wait_until(self, node: str, state: str, limit_s: float = 30) -> None:
        """Until the node's state begins with that."""
        self.wait(lambda: self.state(node).startswith(state), f"{node} to be {state}", limit_s)

    def wait(self, holds: Callable[[], bool], what: str, limit_s: float = 30) -> None:
        """Poll until it holds; AssertionError with the logs' ends where it does not in time."""
        until_s = time.monotonic() + limit_s
        while not holds():
            assert time.monotonic() < until_s, f"waited {limit_s:g} s for {what}\n{self.logs()}"
            time.sleep(0.1)

    def logs(self) -> str:
        """The last lines of every daemon's log."""
        return "\n".join(
            f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-8:])
            for path in sorted(self.base.glob("*.log"))
        )

    def start(self, node: str) -> None:
        """Start, or start again, the node's slurmd."""
        self._spawn(node, "slurmd", "-D", "-N", node)

    def kill(self, node: str) -> None:
        """As if the node lost power: slurmd and all the tasks that it has started, at once."""
        daemon = self.processes.pop(node)
        # The step's daemon first, or it would still tell how its tasks ended.
        for pid in [*self.step_daemons(node), daemon.pid, *self.tasks(node)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()
        daemon.wait(timeout=10)

    def mend(self) -> None:
        """No jobs, all nodes up and idle, no tools of their own."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.command("scancel", "--user=root", "--signal=KILL")
        for node in self.nodes:
            for tool in (self.base / "tools" / node).iterdir():
                tool.unlink()
            if node not in self.processes:
                self.start(node)
        self.wait(lambda: not self._unmended(), "the cluster to be whole")

    def _unmended(self) -> list[str]:
        """The nodes that are not idle, which are told to be. One that died with a job would be
        `completing` for a minute: down, it forgets the job."""
        told = self.command("sinfo", "-h", "-N", "-o", "%N %T").split()
        states = dict(zip(told[::2], told[1::2], strict=True))
        bad = [node for node, state in states.items() if state != "idle"]
        for node in bad:
            wanted = "down" if states[node].startswith("completing") else "resume"
            with contextlib.suppress(subprocess.CalledProcessError):
                self.command(
                    "scontrol", "update", f"nodename={node}", f"state={wanted}", "reason=mended"
                )
        return bad

    def step_daemons(self, node: str) -> list[int]:
        """The slurmstepd of a node's steps: they have its log open."""
        log = str(self.base / f"slurmd-{node}.log")
        return [
            process.pid
            for process in _processes()
            if _first_word(process).startswith("slurmstepd")
            and any(file.path == log for file in process.open_files())
        ]

    def tasks(self, node: str) -> list[int]:
        """What runs on a node for its steps."""
        return [
            process.pid
            for process in _processes()
            if (environ := _environ(process)).get("SLURMD_NODENAME") == node
            and environ.get("SLURM_CONF") == str(self.base / "slurm.conf")
        ]

    def _spawn(self, name: str, *argv: str) -> None:
        with (self.base / f"{name}.out").open("ab") as out:
            self.processes[name] = subprocess.Popen(
                argv, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip

    def start_all(self) -> None:
        """munged, slurmctld and the nodes; returns once all are idle."""
        self._spawn(
            "munged", "munged", "-F", "--force", f"--socket={self.base}/munge.socket",
            f"--key-file={self.base}/munge.key", f"--pid-file={self.base}/munged.pid",
            f"--log-file={self.base}/munged.log", f"--seed-file={self.base}/munged.seed",
        )  # fmt: skip
        self.wait((self.base / "munge.socket").exists, "munged", 10)
        self._spawn("slurmctld", "slurmctld", "-D", "-c", "-f", str(self.base / "slurm.conf"))
        for node in self.nodes:
            self.start(node)
        self.wait(self._all_idle, "all nodes to be idle")

    def _all_idle(self) -> bool:
        with contextlib.suppress(subprocess.CalledProcessError):
            told = self.command("sinfo", "-h", "-N", "-o", "%T").split()
            return told == ["idle"] * len(self.nodes)
        return False

    def stop_all(self) -> None:
        """Jobs first, so that their steps end; then the daemons, last started first."""
        with contextlib.suppress(subprocess.SubprocessError):
            self.command("scancel", "--user=root", "--signal=KILL", timeout_s=5)
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in reversed(self.processes.values()):
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _processes() -> Iterator[psutil.Process]:
    yield from psutil.process_iter()


def _first_word(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return "".join(process.cmdline()[:1])
    return ""


def _environ(process: psutil.Process) -> dict[str, str]:
    with contextlib.suppress(psutil.Error):
        return process.environ()
    return {}


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:{_PATH}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def slurm(
    base: Path, nodes: tuple[str, ...] = NODES, options: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A cluster of these nodes, all idle. `options`: more lines of slurm.conf."""
    daemons = ("munged", "slurmctld", "slurmd", "srun")
    there = all(shutil.which(name, path=_path()) for name in daemons)
    require("root, munge and slurm-wlm", os.geteuid() == 0 and there)
    # Without what an allocation of a Slurm around us would set.
    ours = {name: value for name, value in os.environ.items() if "SLURM" not in name}
    conf = str(base / "slurm.conf")
    cluster = Cluster(base, nodes, {**ours, "SLURM_CONF": conf, "PATH": _path()})
    _write(cluster, options or {})
    try:
        cluster.start_all()
        yield cluster
    finally:
        cluster.stop_all()


def _write(cluster: Cluster, options: Mapping[str, str]) -> None:
    base = cluster.base
    base.mkdir(parents=True, exist_ok=True)
    base.chmod(0o755)  # munged and slurmctld refuse folders that others may write to
    (base / "state").mkdir(mode=0o700)
    for node in cluster.nodes:
        (base / "tools" / node).mkdir(parents=True)
        (base / f"spool-{node}").mkdir(mode=0o755)
    key = base / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    prolog = base / "task-prolog"
    prolog.write_text(_TASK_PROLOG.format(base=base), encoding="utf-8")
    prolog.chmod(0o755)
    lines = [f"{name}={value}" for name, value in options.items()]
    lines += [
        f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={_free_port()} CPUs=4"
        for node in cluster.nodes
    ]
    (base / "slurm.conf").write_text(
        _CONF.format(
            base=base, host=socket.gethostname(), control_port=_free_port(), more="\n".join(lines)
        ),
        encoding="utf-8",
    )
