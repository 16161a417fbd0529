"""A list of adapters as NCCL reads it from NCCL_IB_HCA: mlx5_0,mlx5_1:1; =mlx5_0; ^mlx5_4.

Names by commas, each perhaps with a port. With = names are whole, else a beginning is enough; with
^ before the list it tells what is left out (NCCL User Guide, NCCL_IB_HCA).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKS = "^="
_ENTRY = r"=?[A-Za-z][\w.-]{0,63}(?::\d{1,3})?"
_LIST = re.compile(rf"\^?{_ENTRY}(?:,{_ENTRY})*", re.ASCII)


def is_list(value: str) -> bool:
    """Whether it is written as such a list."""
    return _LIST.fullmatch(value) is not None


def names_in(value: str) -> list[str]:
    """'=mlx5_0:1,mlx5_1' -> mlx5_0, mlx5_1."""
    return [name for name, _ in entries(value)]


def entries(value: str) -> list[tuple[str, str]]:
    """The names, each with its port; "" where none is named."""
    words = (word.strip().lstrip("=") for word in value.lstrip(_MARKS).split(","))
    pairs = (word.partition(":") for word in words if word)
    return [(name, port) for name, _, port in pairs]


def is_meant(name: str, value: str, one: str) -> bool:
    """Whether a name of the list means this device."""
    return one == name if value.lstrip("^").startswith("=") else one.startswith(name)


def leaves_out(value: str) -> bool:
    """Whether the list tells what is not to be used."""
    return value.startswith("^")


def takes(value: str, adapter: str, port: str = "") -> bool:
    """Whether NCCL takes this port of an adapter. Without a number it is of the adapter as a whole,
    which an entry for one of its ports means too."""
    named = [number for name, number in entries(value) if is_meant(name, value, adapter)]
    listed = any(not port or number in ("", port) for number in named)
    return listed != leaves_out(value)


def unmatched(value: str, ports: Iterable[str]) -> list[str]:
    """Entries that mean none of these ports (mlx5_0/1), as they are written: mlx5_9, mlx5_0:2."""
    there = [tuple(port.rsplit("/", 1)) for port in ports]
    return [
        f"{name}:{number}" if number else name
        for name, number in entries(value)
        if not any(_fits(name, number, value, port) for port in there)
    ]


def _fits(name: str, number: str, value: str, port: Sequence[str]) -> bool:
    return is_meant(name, value, port[0]) and number in ("", port[-1])
