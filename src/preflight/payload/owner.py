"""Names that tell which process made a thing: a later run knows by them whether it is there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket


def name(prefix: str) -> str:
    """PREFIX.host.boot.pid.start of this process."""
    pid = os.getpid()
    return f"{prefix}.{host()}.{boot()}.{pid}.{start_of(pid)}"


def runs(made: str, prefix: str) -> bool | None:
    """Whether the process that made this is still there; None where this host has booted since.
    True for what is no such name, and for what another host or container made: nobody sees it."""
    before, _, rest = made.partition(f".{host()}.")
    words = rest.split(".")
    if before != prefix or len(words) != 3 or not words[1].isdigit():
        return True
    since, pid, start = words
    if since.partition("-")[0] != boot().partition("-")[0]:
        return None
    return since != boot() or start_of(int(pid)) == start


def host() -> str:
    """This host, in twelve letters."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]


def boot() -> str:
    """This boot, and which processes are seen: a container sees others under the same numbers."""
    told, path = "", "/proc/sys/kernel/random/boot_id"
    with contextlib.suppress(OSError), open(path, encoding="ascii") as file:  # noqa: PTH123
        told = file.read().strip().replace("-", "")[:12]
    seen = 0
    with contextlib.suppress(OSError):
        seen = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    return f"{told}-{seen}"


def start_of(pid: int) -> str:
    """When a process began, in ticks since the boot; "" where there is none (proc(5))."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
