"""Which binaries of nccl-tests lie in a folder here, and what keeps each of them from starting."""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
import re
import subprocess
from typing import Any

#: e_machine of an ELF header, at byte 18 (elf(5), linux/elf-em.h) -> what uname calls it.
_MACHINES = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 243: "riscv64"}
_ELF, _MACHINE_AT = b"\x7fELF", 18
#: What a binary that was built with MPI=1 calls first, and holds the name of.
_MPI = b"MPI_Init"
_LDD_S = 20
_ABSENT = re.compile(r"^\s*(\S{1,200}) => not found", re.MULTILINE)


def look(folder: str, names: list[str]) -> dict[str, Any]:
    """Of each name its path, whether it was built with MPI, and in `cannot` why it will not start;
    `cannot` of all where the folder has none of them."""
    path = os.path.expanduser(folder)  # noqa: PTH111
    places = [path, f"{path}/build"]
    if not os.path.isdir(path):  # noqa: PTH112
        return {"cannot": f"there is no folder {path}", "found": {}}
    found = {name: one for name in names if (one := _binary(places, name))}
    if found:
        return {"cannot": "", "found": found}
    return {"cannot": f"there is no {names[0]} in {path} nor in {path}/build", "found": {}}


def _binary(places: list[str], name: str) -> dict[str, Any]:
    for place in places:
        path = f"{place}/{name}"
        if os.path.isfile(path):  # noqa: PTH113
            return {"path": path, **_told(path)}
    return {}


def _told(path: str) -> dict[str, Any]:
    if not os.access(path, os.X_OK):
        return {"mpi": False, "cannot": f"{path} may not be run: chmod +x {path}"}
    try:
        machine, mpi = _header(path)
    except OSError as error:
        return {"mpi": False, "cannot": f"{path} cannot be read: {error.strerror}"}
    here = platform.machine()
    if machine and machine != here:
        why = f"{path} is built for {machine}, and this host is {here}: build nccl-tests here"
        return {"mpi": mpi, "cannot": why}
    lacks = _lacks(path) if machine else []
    return {"mpi": mpi, "cannot": _without(path, lacks) if lacks else ""}


def _header(path: str) -> tuple[str, bool]:
    """The machine that it is for, "" where it is no ELF file (a script around one); MPI or not."""
    with open(path, "rb") as file:  # noqa: PTH123
        head = file.read(20)
        with (
            contextlib.suppress(ValueError),
            mmap.mmap(  # ValueError: an empty file
                file.fileno(), 0, access=mmap.ACCESS_READ
            ) as whole,
        ):
            mpi = whole.find(_MPI) >= 0
            return _machine(head), mpi
    return "", False


def _machine(head: bytes) -> str:
    if len(head) < 20 or not head.startswith(_ELF):
        return ""
    number = int.from_bytes(head[_MACHINE_AT:20], "little" if head[5] == 1 else "big")
    return _MACHINES.get(number, f"machine {number}")


def _lacks(path: str) -> list[str]:
    """Libraries that the loader does not find; none where ldd does not tell."""
    try:
        done = subprocess.run(
            ["ldd", path], capture_output=True, stdin=subprocess.DEVNULL, timeout=_LDD_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    return _ABSENT.findall(done.stdout.decode(errors="replace"))


def _without(path: str, lacks: list[str]) -> str:
    return (
        f"{path} needs {', '.join(lacks)}, and the loader does not find it: "
        f"export LD_LIBRARY_PATH=FOLDER of it (`find / -name '{lacks[0]}*'`), on every host"
    )
