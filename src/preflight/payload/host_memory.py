"""Memory of this host as its processes may use it, and whom the kernel ended for want of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

#: Version 2 of control groups, and where a host has version 1 their memory controller.
_GROUPS = "/sys/fs/cgroup"
#: A group of version 1 without a limit has one of 2^63 less a page.
_NO_LIMIT = 1 << 62


def available_bytes() -> int | None:
    """What can still be had, swap and the limits of our control groups counted; None where the
    kernel does not tell."""
    told = _named_numbers("/proc/meminfo")
    if "MemAvailable:" not in told:
        return None
    free = 1024 * (told["MemAvailable:"] + told.get("SwapFree:", 0))
    return max(0, min([free, *_rooms()]))


def limit_bytes() -> int | None:
    """The smallest limit of our control groups; None where none of them has one."""
    names = ("memory.max", "memory.limit_in_bytes")
    limits = [_number(f"{folder}/{name}") for folder in _folders() for name in names]
    return min((one for one in limits if one is not None and one < _NO_LIMIT), default=None)


def oom_kills() -> int:
    """Processes of our control group that the kernel has ended for want of memory; of the whole
    host where the group does not count them."""
    for folder in _folders():
        for name in ("memory.events", "memory.oom_control"):
            told = _named_numbers(f"{folder}/{name}")
            if "oom_kill" in told:
                return told["oom_kill"]
    return _named_numbers("/proc/vmstat").get("oom_kill", 0)


def _rooms() -> Iterator[int]:
    """What each group that we are in, and each around it, may still take; caches are given back."""
    for folder in _folders():
        names = ("memory.max", "memory.current", "inactive_file")
        if not os.path.exists(f"{folder}/memory.current"):  # noqa: PTH110
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        limit, used = (_number(f"{folder}/{name}") for name in names[:2])
        caches = _named_numbers(f"{folder}/memory.stat").get(names[2], 0)
        if limit is not None and used is not None and limit < _NO_LIMIT:
            yield limit - used + caches


def _folders() -> Iterator[str]:
    """Of our groups, from the innermost out. In a container the outermost is all that is seen."""
    for line in _text("/proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" or "memory" in controllers.split(","):
            root = _GROUPS if number == "0" else f"{_GROUPS}/memory"
            parts = [one for one in path.split("/") if one]
            for depth in range(len(parts), -1, -1):
                yield "/".join([root, *parts[:depth]])


def _named_numbers(path: str) -> dict[str, int]:
    """Of lines such as `oom_kill 3`."""
    lines = [line.split() for line in _text(path).splitlines()]
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _number(path: str) -> int | None:
    """None for `max`, and where there is no such file."""
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""
