"""`preflight.pyz site`: what this host has for a job over several, in one line. Starts nothing."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import alone, pythons

FORM = "micro-train-site/1"
#: ioctl(2) on a socket: the address of an interface (linux/sockios.h).
_SIOCGIFADDR = 0x8915
#: An address of documentation (RFC 5737): nothing is sent, the kernel only chooses the way.
_SOMEWHERE = ("192.0.2.1", 9)
#: Ports in a row: one for each launch of the ranks, and one where the hosts meet before.
_PORTS, _TRIES = 4, 20
_BOOT = "/proc/sys/kernel/random/boot_id"


def site(interface: str, job: str, *, even_if_busy: bool) -> dict[str, Any]:
    """What it has, or in `cannot` why it can be no part of the job."""
    torch = torch_version()
    cannot = "" if torch else pythons.no_torch()
    address = address_of(interface)
    without = [one for one in interface.split(",") if not address_of(one)]
    if without:
        cannot = cannot or _no_address(without[0])
    gpus = len(alone.visible_gpus())
    return {
        "preflight": FORM, "cannot": cannot, "torch": torch, "python": sys.executable,
        "busy": alone.others(job, gpus=gpus > 0, even_if_busy=even_if_busy),
        "gpus": gpus, "cores": len(os.sched_getaffinity(0)), "address": address,
        "interface": interface or interface_of(address),
        "port": free_port(address) if address else 0, "boot": _boot(), "network": _network(),
    }  # fmt: skip


def _no_address(interface: str) -> str:
    names = sorted(name for _, name in socket.if_nameindex())
    have = [f"{name} ({address})" for name in names if (address := _address_on(name))]
    hint = f"there are: {', '.join(have)}: --interface NAME" if have else "`ip -brief address`"
    return f"no IPv4 address on {interface or 'any interface'}; {hint}"


def _boot() -> str:
    """What tells one machine from another, whatever they are called; "" where it is not there."""
    try:
        with open(_BOOT, encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


def _network() -> str:
    """What tells apart containers of one machine that have a loopback each; "" if unknown."""
    try:
        return os.readlink("/proc/self/ns/net")  # noqa: PTH115
    except OSError:
        return ""


def torch_version() -> str:
    """The version of the torch that would be imported; importing it takes seconds."""
    spec = find_spec("torch")
    if spec is None or not spec.origin or not _is_whole(spec.origin):
        return ""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "unknown"


def _is_whole(module: str) -> bool:
    """Whether what an installation that broke off leaves behind is more than a folder."""
    return all(
        Path(module).parent.joinpath(one).exists() for one in ("nn/__init__.py", "version.py")
    )


def address_of(interface: str) -> str:
    """The IPv4 address of the interface, of several the first's; without one that of the default
    route, else the one by which SSH came in."""
    if interface:
        return _address_on(interface.partition(",")[0])
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(_SOMEWHERE)
        return str(one.getsockname()[0])
    came_in = os.environ.get("SSH_CONNECTION", "").split()
    return came_in[2] if len(came_in) == 4 and ":" not in came_in[2] else ""


def interface_of(address: str) -> str:
    """The interface that has the address as its first; "" where none has."""
    found = (name for _, name in socket.if_nameindex() if _address_on(name) == address)
    return next(found, "") if address else ""


def _address_on(interface: str) -> str:
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            answer = fcntl.ioctl(one.fileno(), _SIOCGIFADDR, request)
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def free_port(address: str) -> int:
    """The first of some ports in a row at which nobody listens just now; 0 where none are found."""
    for _ in range(_TRIES):
        with contextlib.suppress(OSError, OverflowError), contextlib.ExitStack() as stack:
            port = 0
            for after in range(_PORTS):
                one = stack.enter_context(socket.socket())
                one.bind((address, port + after if port else 0))
                port = port or int(one.getsockname()[1])
            return port
    return 0
