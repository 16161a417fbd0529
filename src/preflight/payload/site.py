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
#: ioctl(2) on a socket: the flags of an interface, and its address (linux/sockios.h).
_SIOCGIFFLAGS, _SIOCGIFADDR = 0x8913, 0x8915
#: Of the flags that it is set up, and that the kernel finds it working (linux/if.h, and
#: Documentation/networking/operstates.rst: without carrier, or dormant, it is not running).
_UP, _RUNNING = 0x1, 0x40
#: That it leads nowhere but to the host itself.
_LOOPBACK = 0x8
#: An address of documentation (RFC 5737): nothing is sent, the kernel only chooses the way.
_SOMEWHERE = ("192.0.2.1", 9)
#: Ports in a row: one for each launch of the ranks, and one where the hosts meet before.
_PORTS, _TRIES = 4, 20
_BOOT = "/proc/sys/kernel/random/boot_id"


def site(interface: str, job: str, *, even_if_busy: bool) -> dict[str, Any]:
    """What it has, or in `cannot` why it can be no part of the job: where that is a fault of the
    host itself `fault` says of what."""
    torch = torch_version()
    address = address_of(interface)
    unusable = not_usable(interface)
    cannot = "" if torch else pythons.no_torch()
    cannot = (unusable or cannot) if interface else (cannot or unusable)
    gpus = len(alone.visible_gpus())
    return {
        "preflight": FORM, "cannot": cannot, "torch": torch, "python": sys.executable,
        **({"fault": "interface"} if unusable and interface else {}),
        "busy": alone.others(job, gpus=gpus > 0, even_if_busy=even_if_busy),
        "gpus": gpus, "cores": len(os.sched_getaffinity(0)), "address": address,
        "interface": interface or interface_of(address), "loopbacks": loopbacks(interface),
        "port": free_port(address) if address else 0, "boot": _boot(), "network": _network(),
    }  # fmt: skip


def not_usable(interface: str) -> str:
    """Why ranks cannot talk over the interfaces, of several each; "" where they can. Without a name
    it is whether there is any address."""
    names = interface.split(",")
    whys = [why for name in names if (why := _why_not(name))]
    if not whys:
        return ""
    usable = [name for _, name in socket.if_nameindex() if not _why_not(name)]
    usable = sorted(set(usable) - set(loopbacks(",".join(usable))))
    have = [f"{name} ({_address_on(name)})" for name in usable]
    hint = f"there are: {', '.join(have)}: --interface NAME" if have else "`ip -brief address`"
    return f"{'; '.join(whys)}; {hint}"


def loopbacks(interface: str) -> list[str]:
    """Those of the interfaces that lead to nobody else."""
    return [name for name in interface.split(",") if (_flags(name) or 0) & _LOOPBACK]


def _why_not(interface: str) -> str:
    if not interface:
        return "" if address_of("") else "no IPv4 address on any interface"
    flags = _flags(interface)
    if flags is None:
        return f"there is no interface {interface}"
    if not flags & _UP:
        return f"{interface} is down"
    if not flags & _RUNNING:
        return f"{interface} is up and has no link (no carrier)"
    return "" if _address_on(interface) else f"no IPv4 address on {interface}"


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
    answer = _asked(interface, _SIOCGIFADDR)
    return socket.inet_ntoa(answer[20:24]) if answer else ""


def _flags(interface: str) -> int | None:
    """None where there is no such interface."""
    answer = _asked(interface, _SIOCGIFFLAGS)
    return int(struct.unpack_from("H", answer, 16)[0]) if answer else None


def _asked(interface: str, question: int) -> bytes:
    """What ioctl(2) says of an interface; nothing where it refuses."""
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            return fcntl.ioctl(one.fileno(), question, request)
        except OSError:
            return b""


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
