"""The control groups above a shell with their files, as the question of cgroup.py lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_FILE = re.compile(r"(/.*)/((?:cpu|memory|pids)\.[a-z_]+):(.*)")


class Level(NamedTuple):
    """A group: file -> (line, lines of the file)."""

    path: str
    files: dict[str, tuple[int, list[str]]]


#: Version, controller, path of the shell's group, groups from its own to the top.
Tree = tuple[str, str, str, list[Level]]


def by_controller(lines: Sequence[str], trees: Sequence[Tree]) -> dict[str, list[Level]]:
    """The groups of each controller, the shell's own first; none where they are hidden."""
    levels: dict[str, list[Level]] = {}
    for _, name, _, found in trees:
        levels.setdefault(name, found)
    v1 = {name for line in lines if line.startswith("v1 ") for name in line[3:].split(",")}
    # Of a controller of version 1 the tree of version 2 tells nothing.
    return {
        name: levels.get(name, [] if name in v1 else levels.get("all", []))
        for name in ("cpu", "memory", "pids")
    }


def trees_of(lines: Sequence[str]) -> Iterator[Tree]:
    """(version, controller, path, groups from its own to the top) of each tree."""
    head: list[str] | None = None
    levels: dict[str, Level] = {}
    for number, line in enumerate([*lines, "group"], 1):
        if line.startswith("group"):
            if head and len(head) >= 3:
                # A top of a tree, which limits nothing, may have none of the files.
                path = head[3] if len(head) > 3 else "/"
                yield head[1], head[2], path, list(levels.values()) or [Level(path, {})]
            head, levels = line.split(" ", 3), {}
        elif match := _FILE.fullmatch(line):
            level = levels.setdefault(match[1], Level(match[1], {}))
            level.files.setdefault(match[2], (number, []))[1].append(match[3].strip())


def first_line(level: Level, *names: str) -> str:
    """The first line of the first of these files that is there."""
    return next((level.files[name][1][0] for name in names if name in level.files), "")


def counted(level: Level, name: str, *keys: str) -> int | None:
    """The number behind one of the keys of a file of `key number` lines."""
    told = dict(line.split(" ", 1) for line in level.files.get(name, (0, []))[1] if " " in line)
    found = next((told[key] for key in keys if key in told), "")
    return int(found) if re.fullmatch(r"[0-9]{1,20}", found) else None


def quota_of(level: Level) -> float | None:
    """Cores that a group may use; None where it has no quota or does not tell."""
    quota, _, period = first_line(level, "cpu.max").partition(" ")
    if not quota:
        quota = first_line(level, "cpu.cfs_quota_us")
        period = first_line(level, "cpu.cfs_period_us")
    if not re.fullmatch(r"[0-9]{1,12}", quota) or not re.fullmatch(r"[1-9][0-9]{0,11}", period):
        return None
    return int(quota) / int(period)


def limit_of(level: Level, *names: str) -> int | None:
    """A limit in numbers; None where there is none. Version 1 writes "none" as the largest number
    of whole pages."""
    text = first_line(level, *names)
    if not re.fullmatch(r"[0-9]{1,20}", text):
        return None
    return int(text) if int(text) < (1 << 62) else None
