"""Files that are read and written byte for byte, links never followed, below a root of choice."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from preflight.settings.undo_file import File, sync_folder

#: Of a file that is being put in place; left there only where the process was killed.
_PART = "preflight-part"


def at(root: Path, path: str) -> Path:
    """/proc/sys/vm/swappiness below the root."""
    return root / path.lstrip("/")


def read_value(path: Path) -> bytes:
    """What a file of the kernel reads."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as file:
        return file.read(4096)


def write_value(path: Path, value: bytes) -> None:
    """In one write, as the kernel wants it."""
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_TRUNC)
    try:
        os.write(handle, value)
    finally:
        os.close(handle)


def chosen(read: bytes) -> bytes:
    """What to write so that a file reads as it does: of `always [madvise] never` the word in
    brackets."""
    _, bracket, rest = read.partition(b"[")
    word, closed, _ = rest.partition(b"]")
    return word + b"\n" if bracket and closed else read


def read_file(root: Path, path: str) -> File:
    """A file as it is, or that it is not there. OSError for a link and what is no file."""
    try:
        handle = os.open(at(root, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return File(path)
    with os.fdopen(handle, "rb") as file:
        told = os.fstat(file.fileno())
        if not stat.S_ISREG(told.st_mode):
            raise OSError(0, "it is no regular file")
        return File(path, file.read(), stat.S_IMODE(told.st_mode), told.st_uid, told.st_gid)


def put_file(root: Path, file: File) -> None:
    """The file in place as it is told, whole or not at all; gone where it is told so."""
    path = at(root, file.path)
    part = path.with_name(f".{path.name}.{_PART}")
    with suppress(FileNotFoundError):
        part.unlink()
    if file.before is None:
        with suppress(FileNotFoundError):
            path.unlink()
        if not path.parent.is_dir():
            return
    else:
        _write(part, file)
        part.replace(path)
    sync_folder(path.parent)


def _write(part: Path, file: File) -> None:
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(file.before or b"")
        out.flush()
        os.fchown(out.fileno(), file.uid, file.gid)
        os.fchmod(out.fileno(), file.mode)  # after the owner, which may clear bits
        os.fsync(out.fileno())
