"""One line of a list of mounts -> the mount: of proc(5), mount(8) or nfsstat(8)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from preflight.facts.storage import Mount, Nfs
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.storage.kinds import NFS, OTHERS, REACH_OF

_ELSEWHERE = re.compile(OTHERS)
_OCTAL = re.compile(r"\\([0-7]{3})")
_SIZE = re.compile(r"([0-9]{1,18})([kKmMgGtT]?)")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NUMBER = re.compile(r"[0-9]{1,12}", re.ASCII)
#: ZFS has properties of its own for it, of which the options do not tell.
_KEEPS_ATIME = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs")
_NO_LOCKS = Missing("not-applicable", "its options do not tell who sees a lock")
_NO_NFS = Missing("not-applicable", "it is not NFS")


class Told(NamedTuple):
    """What a line tells, in its own order of words."""

    point: str
    source: str
    kind: str
    options: tuple[str, ...]
    line: int
    device: str = ""
    root: str = "/"
    above: int = 0  # the id of the mount that it is mounted in


def unescaped(text: str) -> str:
    """A blank is written as \\040: proc_pid_mountinfo(5)."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def mounts_of(told: Iterable[Told], probe: str, automounts: frozenset[int]) -> tuple[Mount, ...]:
    """The mounts that hold files of people. What is mounted over another of the same place hides
    it. `automounts`: ids of mounts that put others there when they are looked at."""
    found: dict[str, Mount] = {}
    for one in told:
        if one.kind in REACH_OF and not _ELSEWHERE.fullmatch(one.point):
            found.pop(one.point, None)
            found[one.point] = _mount(one, probe, one.above in automounts)
    return tuple(found.values())


def _mount(told: Told, probe: str, automounted: bool) -> Mount:
    options = set(told.options)
    return Mount(
        name=told.point,
        source=told.source,
        kind=told.kind,
        reach=REACH_OF[told.kind],
        options=tuple(dict.fromkeys(told.options)),
        read_only="ro" in options,
        atime=_atime(told.kind, options),
        synchronous="sync" in options,
        locks=_locks(told.kind, told.options),
        nfs=nfs_of(told, probe) if told.kind in NFS else _NO_NFS,
        device=told.device,
        root=told.root,
        automounted=automounted,
        size_bytes=_size(told) if REACH_OF[told.kind] == "memory" else NOT_IN_INPUT,
        line=told.line,
        probe=probe,
    )


def _atime(kind: str, options: set[str]) -> str:
    """The kernel writes nothing for strictatime (fs/proc_namespace.c, show_mnt_opts)."""
    if kind not in _KEEPS_ATIME:
        return ""
    named = next((one for one in ("noatime", "relatime", "lazytime") if one in options), "")
    return named or "strictatime"


def _locks(kind: str, options: Iterable[str]) -> Known[str]:
    """nfs(5), `local_lock` and `nolock`, which only versions before 4 heed; mount.lustre(8)."""
    told = dict(_pairs(options))
    if kind in NFS:
        if told.get("vers", "").startswith("4"):
            return "all"
        mine = "nolock" in told or told.get("local_lock", "none") != "none"
        return "host" if mine else "all"
    if kind == "lustre":
        words = {"noflock": "none", "localflock": "host", "flock": "all"}
        return next((who for word, who in words.items() if word in told), _NO_LOCKS)
    return _NO_LOCKS


def _pairs(options: Iterable[str]) -> Iterable[tuple[str, str]]:
    for option in options:
        name, _, value = option.partition("=")
        yield name, value


def nfs_of(told: Told, probe: str) -> Nfs:
    """The options that the kernel shows of an NFS mount (nfs(5))."""
    found = dict(_pairs(told.options))
    version = found.get("vers") or found.get("nfsvers") or ""
    words = {"soft": False, "softerr": False, "hard": True}
    hard = next((value for word, value in words.items() if word in found), NOT_IN_INPUT)
    return Nfs(
        version=version or NOT_IN_INPUT,
        read_bytes=_whole(found.get("rsize")),
        write_bytes=_whole(found.get("wsize")),
        hard=hard,
        transport=found.get("proto", "").removesuffix("6") or NOT_IN_INPUT,
        connections=int(found["nconnect"]) if _NUMBER.fullmatch(found.get("nconnect", "")) else 1,
        line=told.line,
        probe=probe,
    )


def _whole(text: str | None) -> Known[int]:
    return int(text) if text and _NUMBER.fullmatch(text) else NOT_IN_INPUT


def _size(told: Told) -> Known[int]:
    """tmpfs(5): `size=24684092k`; without it half of the memory, which the line does not tell."""
    match = _SIZE.fullmatch(dict(_pairs(told.options)).get("size", ""))
    return int(match[1]) * _UNITS[match[2].lower()] if match else NOT_IN_INPUT
