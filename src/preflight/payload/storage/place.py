"""Where a bench may write: a directory that the user names, or one of a local file system; and a
directory of its own in it, which goes with the run, however that ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .. import owner
from ..scratch import sweep
from .mounts import OWNERLESS, Mount, free_and_all, is_local_disk, is_shared, mount_of
from .watched import within

#: So much stays free, of all of the file system and beyond what is written.
_FREE_SHARE, _BEYOND = 0.10, 1.10
#: Looked at in this order where no directory is named.
_DEFAULTS = ("$TMPDIR", "/tmp", "/var/tmp", "$HOME")
_PREFIX = ".preflight-io"
#: No run takes longer.
_LONGEST_S = 86400.0
#: A look at a directory, and the removal of all files, take no longer.
_LOOKS_S, _REMOVES_S = 10.0, 300.0


class RefusedError(Exception):
    """Why nothing is written there, and what to type."""


class Place(NamedTuple):
    """A directory without links in it, and what it is on."""

    path: str
    mount: Mount


def chosen(asked: str, size_bytes: int) -> Place:
    """The directory to work in. Raises RefusedError."""
    if asked:
        return held(asked, size_bytes)
    whys = []
    for one in _DEFAULTS:
        path = os.path.normpath(os.path.expandvars(one))
        if not path.startswith("/") or is_shared(mount_of(path)):
            continue  # a server that does not answer is not waited for
        within(_LOOKS_S, "it was looked at", path)
        if not os.path.isdir(path):  # noqa: PTH112
            continue
        try:
            found = held(path, size_bytes)
        except RefusedError as error:
            whys.append(str(error))
            continue
        if is_local_disk(found.mount):
            return found
        whys.append(f"{path} is {found.mount.kind}, no local disk")
    told = "; ".join(dict.fromkeys(whys))
    raise RefusedError(f"no directory of a local disk takes it ({told}): --dir DIR names one")


def held(asked: str, size_bytes: int) -> Place:
    """This directory, if so much may be written there. Raises RefusedError."""
    path = os.path.normpath(os.path.expanduser(asked))  # noqa: PTH111
    within(_LOOKS_S, "it was looked at", path)
    path = os.path.realpath(path)
    within(_LOOKS_S, "it was looked at", path)
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError as error:
        make = f"mkdir -p {asked}, or " if isinstance(error, FileNotFoundError) else ""
        raise RefusedError(f"{asked}: {error.strerror}: {make}another --dir") from error
    if not stat.S_ISDIR(mode):
        raise RefusedError(f"{asked} is {_named(mode)}: --dir DIR names a directory, for a device "
                           "one of the file system on it")  # fmt: skip
    if not os.access(path, os.W_OK | os.X_OK):
        why = "is mounted read-only" if os.statvfs(path).f_flag & os.ST_RDONLY else (
            "may not be written by this user"
        )  # fmt: skip
        raise RefusedError(f"{asked} {why}: another --dir")
    free, whole = free_and_all(path)
    if not whole:
        raise RefusedError(f"{asked} is {mount_of(path).kind}, which has no room for files: "
                           "another --dir")  # fmt: skip
    if free < _FREE_SHARE * whole or free < _BEYOND * size_bytes:
        raise RefusedError(
            f"{asked} has {_size(free)} free of {_size(whole)}; a tenth stays free, and "
            f"{_size(size_bytes)} would be written: --size, or another --dir"
        )
    return Place(path, mount_of(path))


def _named(mode: int) -> str:
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
        return "a device, which is never written to"
    return "a file, which is never written to" if stat.S_ISREG(mode) else "no directory"


def _size(count: float) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**29 else f"{count / 2**20:.0f} MiB"


@contextlib.contextmanager
def own_folder(place: Place, left: Callable[[str], None] = lambda _: None) -> Iterator[str]:
    """A fresh directory, which nobody else has, by a path of the kernel's (proc_pid_fd(5)) that
    leads to it whatever its name leads to meanwhile. What an earlier run left is removed. `left` is
    told what could not be removed, and why."""
    _remove_left(place)
    name = owner.name(_PREFIX)
    above = os.open(place.path, os.O_RDONLY | os.O_DIRECTORY)
    fd = -1
    try:
        os.mkdir(name, 0o700, dir_fd=above)
        sweep(f"{place.path}/{name}")
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        _hold_own(fd, place)
        path = f"/proc/{os.getpid()}/fd/{fd}"
        yield path
    finally:
        within(_REMOVES_S, "what was written was removed")
        if fd >= 0:
            shutil.rmtree(f"/proc/{os.getpid()}/fd/{fd}/.", ignore_errors=True)
            os.close(fd)
        try:
            os.rmdir(name, dir_fd=above)
        except FileNotFoundError:
            pass
        except OSError as error:
            left(f"{place.path}/{name} ({error.strerror})")
        os.close(above)


def _hold_own(fd: int, place: Place) -> None:
    """Servers may tell of other owners, and some file systems know of none."""
    uid = os.fstat(fd).st_uid
    told = not is_shared(place.mount) and place.mount.kind not in OWNERLESS
    if told and uid != os.geteuid():
        raise RefusedError(f"{place.path}: somebody (user {uid}) puts another directory in the "
                           "place of one that is made there: another --dir")  # fmt: skip


def _remove_left(place: Place) -> None:
    """Directories of runs of this host and user that are no more."""
    for entry in os.scandir(place.path):
        if not entry.is_dir(follow_symlinks=False):
            continue
        mine = entry.stat(follow_symlinks=False).st_uid == os.getuid()
        if mine and _is_left(entry.name, entry.path, shared=is_shared(place.mount)):
            shutil.rmtree(entry.path, ignore_errors=True)


def _is_left(name: str, path: str, *, shared: bool) -> bool:
    """Whether nobody works in it any more. Where another host may see the same directory, one that
    is called as this one is could be at work: then what was written within a day is left alone."""
    runs = owner.runs(name, _PREFIX)
    if runs is None:  # another boot
        return not shared or _written_s(path) < time.time() - _LONGEST_S
    return runs is False


def _written_s(path: str) -> float:
    """When something in it was last written."""
    with contextlib.suppress(OSError):
        times = [one.stat(follow_symlinks=False).st_mtime for one in os.scandir(path)]
        return max([os.stat(path).st_mtime, *times])  # noqa: PTH116
    return time.time()
