"""Whether hosts that share a file system see what another of them renames: each publishes a file in
its own directory of the run, replaces it once it has seen those of all others, and reads theirs.

It may take a minute: NFS asks its server again no later (nfs(5), acregmax and acdirmax).
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import zlib
from typing import Any

from .proof import WORKS

#: Seconds until all others have come; until their second version is seen; between two looks.
COMES_S, SEES_S, LOOKS_S = 30.0, 75.0, 0.2
_PAD = b"preflight " * 6000  # so that a part of it is seen as such
_FILE = "seen"
#: How the directories of a bench are called: place.py.
FOLDERS = ".preflight-io."


def seen(parent: str, folder: str, job: str, hosts: int) -> dict[str, Any]:
    """One line: how many were seen, how soon, and in words what went wrong. `folder` is this
    host's own in `parent`, where all have theirs."""
    me = _Published(folder, job)
    began = time.monotonic()
    me.put(1)
    told = _until(parent, job, hosts, version=1, within_s=COMES_S)
    if len(told) < hosts:
        return _line(f"{len(told)} of {hosts} hosts were seen there within {COMES_S:g} s",
                     told, began)  # fmt: skip
    me.put(2)
    changed = time.monotonic()
    told = _until(parent, job, hosts, version=2, within_s=SEES_S)
    line = _line(_words(told, hosts), told, changed)
    me.put(3)  # this host needs the others no more
    _until(parent, job, hosts, version=3, within_s=SEES_S, gone=True)
    return line


def _line(words: str, told: dict[str, int], since_s: float) -> dict[str, Any]:
    return {"kind": "seen", "other_hosts": words, "hosts": len(told),
            "other_hosts_s": round(time.monotonic() - since_s, 3)}  # fmt: skip


def _words(told: dict[str, int], hosts: int) -> str:
    if any(version == _TORN for version in told.values()):
        return "a part of another host's file was seen"
    late = sum(version < 2 for version in told.values())
    if late or len(told) < hosts:
        return f"the new version of {late or hosts - len(told)} was not seen in {SEES_S:g} s"
    return WORKS


class _Published:
    """This host's file."""

    def __init__(self, folder: str, job: str) -> None:
        self.folder, self.job = folder, job

    def put(self, version: int) -> None:
        """Beside it, on the device, then in its place."""
        body = f"{self.job} {version} ".encode() + _PAD
        path = f"{self.folder}/{_FILE}"
        fd = os.open(f"{path}.next", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            data = body + b" %08x" % zlib.crc32(body)
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(f"{path}.next", path)  # noqa: PTH104


_TORN, _NONE = -1, 0


def _until(
    parent: str, job: str, hosts: int, *, version: int, within_s: float, gone: bool = False
) -> dict[str, int]:
    """The last version that was seen of each host's file, once all are so far. `gone`: who is not
    there any more is done."""
    until = time.monotonic() + within_s
    told: dict[str, int] = {}
    while True:
        now = _look(parent, job)
        told = now if gone else {**told, **now}
        far = sum(one >= version for one in told.values())
        if _TORN in told.values() or far >= (len(told) if gone else hosts):
            return told
        if time.monotonic() > until:
            return told
        time.sleep(LOOKS_S)


def _look(parent: str, job: str) -> dict[str, int]:
    found = {}
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(FOLDERS):
                version = _version(f"{parent}/{entry.name}/{_FILE}", job)
                if version != _NONE:
                    found[entry.name] = version
    return found


def _version(path: str, job: str) -> int:
    """_NONE where there is no such file of this job; a stale handle is looked at again later."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return _NONE
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return _NONE
        data = os.read(fd, 2 * len(_PAD))
    except OSError:
        return _NONE
    finally:
        os.close(fd)
    body, _, sum_of_it = data.rpartition(b" ")
    if not data.startswith(f"{job} ".encode()):
        return _TORN if job.encode().startswith(data[: len(job)]) else _NONE
    whole = sum_of_it == b"%08x" % zlib.crc32(body)
    return int(data.split(b" ", 2)[1]) if whole else _TORN
