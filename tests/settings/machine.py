"""A machine below a folder: the kernel's files and the site's, with values that are low."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

from preflight.settings.wanted import Change

FILES = {
    "proc/sys/net/core/somaxconn": "4096\n",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t1048576\n",
    "proc/sys/vm/swappiness": "60\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "never\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference": "balance_power\n",
    "etc/sysctl.d/90-preflight.conf": "# ours\nvm.swappiness = 10\nfs.aio-max-nr = 1048576\n",
    "etc/security/limits.d/20-site.conf": "* soft nofile 1024\n",
}
CHANGES = (
    Change("sysctl", "net.core.somaxconn", "65535"),
    Change("sysctl", "net.ipv4.tcp_rmem", "4096 131072 6291456"),
    Change("sysctl", "vm.swappiness", "1"),
    Change("sysfs", "cpu.governor", "performance"),
    Change("sysfs", "thp.enabled", "madvise"),
    Change("limit", "nofile", "1048576"),
)
Snapshot = dict[str, tuple[int, int, int, bytes]]


def machine(root: Path) -> Path:
    """The folder, filled; one file is somebody else's, with a mode of its own."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ours = root / "etc/sysctl.d/90-preflight.conf"
    ours.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(ours, 12, 34)
    return root


def snapshot(root: Path, *, without: str = "var") -> Snapshot:
    """Everything below the folder: mode, owner, group, bytes."""
    found: Snapshot = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.split("/")[0] != without:
            told = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(told.st_mode) else b""
            found[name] = (told.st_mode, told.st_uid, told.st_gid, content)
    return found


#: What changes anything on a disk or in the kernel.
_CALLS = ("open", "write", "fsync", "fchown", "fchmod", "link", "unlink", "replace", "mkdir")


def killed_before_call(number: int, action: Callable[[], object]) -> bool:
    """Do it in a process that is killed before its call `number` of those that change something;
    whether it came so far."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _count_down(number)
            action()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def _count_down(number: int) -> None:
    left = [number]

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **named: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return run

    for name in _CALLS:
        setattr(os, name, counted(getattr(os, name)))
