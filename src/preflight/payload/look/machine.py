"""The host over the look: disks, network, pressure, NCCL's service, GPUs."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

from .proc import text_of

#: NCCL's service of reliability on each host of a job, since 2.24 (NCCL_RAS_ADDR).
_RAS = ("127.0.0.1", 28028)
_RAS_S, _RAS_BYTES = 3.0, 64 * 1024


def disks() -> dict[str, int]:
    """Milliseconds in which a device had something to do, since the boot (iostats.rst)."""
    rows = (line.split() for line in text_of("/proc/diskstats").splitlines())
    return {row[2]: int(row[12]) for row in rows
            if len(row) > 12 and os.path.isdir(f"/sys/block/{row[2]}")}  # noqa: PTH112  # fmt: skip


def networks() -> dict[str, int]:
    """Bytes both ways by interface."""
    found = {}
    for line in text_of("/proc/net/dev").splitlines()[2:]:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) > 8 and name.strip() != "lo":
            found[name.strip()] = int(words[0]) + int(words[8])
    return found


def pressure() -> dict[str, int]:
    """Microseconds in which something waited, since the boot: cpu, io, memory (psi.rst)."""
    found = {}
    for name in ("cpu", "io", "memory"):
        for word in text_of(f"/proc/pressure/{name}").partition("\n")[0].split():
            key, _, value = word.partition("=")
            if key == "total":
                found[name] = int(value)
    return found


def ras() -> str:
    """What NCCL's service says of the job; "" where none answers."""
    until_s = time.monotonic() + _RAS_S
    try:
        with socket.create_connection(_RAS, timeout=0.5) as one:
            one.sendall(b"verbose status\n")
            told = b""
            while len(told) < _RAS_BYTES and time.monotonic() < until_s:
                one.settimeout(max(until_s - time.monotonic(), 0.05))
                piece = one.recv(8192)
                if not piece:
                    break
                told += piece
    except OSError:
        return ""
    return told.decode(errors="replace")


def machine(before: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The line of the host, from `counted` before: percent of the look, MB/s."""
    now = counted()

    def grown(what: str, per: float, digits: int) -> dict[str, float]:
        return {name: round((value - before[what].get(name, value)) / seconds / per, digits)
                for name, value in now[what].items()}  # fmt: skip

    return {
        "kind": "machine", "pressure": grown("pressure", 1e4, 2), "ras": ras(),
        "disks": grown("disks", 10, 1), "network": grown("networks", 1e6, 3),
    }  # fmt: skip


def counted() -> dict[str, Any]:
    """Counters at one moment."""
    return {"disks": disks(), "networks": networks(), "pressure": pressure()}
