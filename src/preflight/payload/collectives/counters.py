"""What the network and PCIe of this host have counted so far: told before all parts and after them.

Names are the kernel's: Documentation/networking/statistics.rst and snmp_counter.rst; of its
Documentation/ABI stable/sysfs-class-infiniband and testing/sysfs-bus-pci-devices-aer; those of RDMA
transports are of mlx5 and bnxt_re. What a host does not count is not there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..site import address_of, interface_of
from .plan import Plan

Counts = dict[str, int]
_NET = (
    "rx_packets", "tx_packets", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped",
    "rx_crc_errors", "rx_missed_errors", "rx_fifo_errors", "tx_carrier_errors",
)  # fmt: skip
_RDMA = {
    "counters": (
        "port_rcv_packets", "port_xmit_packets", "symbol_error", "link_error_recovery",
        "link_downed", "port_rcv_errors", "port_xmit_discards", "local_link_integrity_errors",
        "excessive_buffer_overrun_errors", "VL15_dropped", "port_xmit_wait",
    ),
    "hw_counters": (
        "out_of_buffer", "out_of_sequence", "packet_seq_err", "local_ack_timeout_err",
        "rnr_nak_retry_err", "rx_icrc_encapsulated", "roce_adp_retrans", "roce_slow_restart",
        "np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets",
    ),
}  # fmt: skip
_TCP = {
    "snmp": ("Tcp", ("InSegs", "OutSegs", "RetransSegs", "InErrs")),
    "netstat": ("TcpExt", ("TCPOFOQueue", "TCPTimeouts", "TCPRcvQDrop")),
}
_AER = ("correctable", "nonfatal", "fatal")
#: Network adapters, and displays and 3D controllers (PCI code and ID assignment).
_CLASSES = ("0x02", "0x03", "0x12")
_ETHTOOL_S = 5.0


def counters(plan: Plan, _at: int, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One line."""
    found = read(Path("/"), interfaces(plan))
    yield {"kind": "counters", "when": order["when"], "at_s": round(time.monotonic(), 3), **found,
           "pause": {name: told for name in found["net"] if (told := _pauses(name))}}  # fmt: skip


def interfaces(plan: Plan) -> list[str]:
    """Those over which the ranks of this host talk by sockets."""
    named = plan.interface or os.environ.get("GLOO_SOCKET_IFNAME", "")
    if not plan.interface and len(plan.hosts) > 1:
        named = interface_of(address_of(""))
    return (named or "lo").split(",")


def read(root: Path, carries: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By kind and device. `carries`: interfaces of sockets; with them count those they are made of,
    and those of RDMA ports."""
    names = dict.fromkeys([*_with_members(root, carries), *_of_rdma(root)])
    return {
        "net": {name: told for name in names if (told := _net(root, name))},
        "rdma": dict(_rdma(root)), "pci": dict(_pci(root)), "tcp": _tcp(root),
    }  # fmt: skip


def _with_members(root: Path, carries: Iterable[str]) -> Iterator[str]:
    for name in carries:
        yield name
        for one in _listed(root / "sys/class/net" / name):
            if one.startswith("lower_"):
                yield one[len("lower_") :]


def _of_rdma(root: Path) -> Iterator[str]:
    base = root / "sys/class/infiniband"
    for name in _listed(base):
        yield from _listed(base / name / "device/net")


def _net(root: Path, name: str) -> Counts:
    base = root / "sys/class/net" / name
    found = _numbers(base / "statistics", _NET)
    return {**found, **_numbers(base, ("carrier_down_count",))} if found else {}


def _rdma(root: Path) -> Iterator[tuple[str, Counts]]:
    base = root / "sys/class/infiniband"
    for nic in _listed(base):
        for port in _listed(base / nic / "ports"):
            where = base / nic / "ports" / port
            found = {}
            for folder, names in _RDMA.items():
                found.update(_numbers(where / folder, names))
            if found:
                yield f"{nic}/{port}", found


def _pci(root: Path) -> Iterator[tuple[str, Counts]]:
    """Errors that devices reported by AER."""
    base = root / "sys/bus/pci/devices"
    for address in _listed(base):
        if _text(base / address / "class").startswith(_CLASSES):
            found = {
                kind: total
                for kind in _AER
                if (total := _total(_text(base / address / f"aer_dev_{kind}"))) is not None
            }
            if found:
                yield address, found


def _total(text: str) -> int | None:
    """TOTAL_ERR_COR 3"""
    rows = [line.split() for line in text.splitlines()]
    told = [row[1] for row in rows if len(row) == 2 and row[0].startswith("TOTAL_ERR")]
    return int(told[0]) if told and told[0].isdigit() else None


def _tcp(root: Path) -> Counts:
    """Of this network namespace: a line of names, and below it one of values."""
    found: Counts = {}
    for file, (protocol, names) in _TCP.items():
        rows = [line.split() for line in _text(root / "proc/net" / file).splitlines()]
        mine = [row[1:] for row in rows if row and row[0] == f"{protocol}:"]
        if len(mine) == 2:
            told = dict(zip(*mine))  # noqa: B905 - Python 3.9
            found.update({name: int(told[name]) for name in names if told.get(name, "").isdigit()})
    return found


def _pauses(name: str) -> Counts:
    """Frames that hold up the sender, where ethtool is there to tell."""
    tool = shutil.which("ethtool", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not tool:
        return {}
    try:
        done = subprocess.run([tool, "-S", name], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=_ETHTOOL_S)  # fmt: skip
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return {}
    rows = [line.strip().partition(": ") for line in done.stdout.splitlines()]
    return {key: int(value) for key, _, value in rows
            if ("pause" in key or "pfc" in key) and value.isdigit()}  # fmt: skip


def _numbers(folder: Path, names: Iterable[str]) -> Counts:
    return {name: int(text) for name in names if (text := _text(folder / name).strip()).isdigit()}


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(one.name for one in folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
