"""The undo file: what was there, byte for byte; written before anything is changed."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from preflight.errors import PreflightError, UsageError
from preflight.probes.parameters.sysctls import NAMES
from preflight.settings.dropins import FILES
from preflight.writable import FOLLOWS, SYSFS

SCHEMA = "preflight.undo/1"
FOLDER = "/var/lib/preflight"
_MAX_BYTES = 4 << 20
_MAX_ID = (1 << 32) - 2  # of a user or group: 32 bits, and the last one means "leave it"


class Value(Struct, frozen=True, tag="value"):
    """A running value. `before` is what the kernel's file read, `restores` what is written to have
    it back: of `always [madvise] never` the word in brackets. `written`: what --apply wrote; None
    for what only follows from another parameter."""

    path: str
    before: bytes
    restores: bytes
    written: bytes | None = None


class File(Struct, frozen=True, tag="file"):
    """A file that stays. `before` is None where there was none. `written` as in Value."""

    path: str
    before: bytes | None = None
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    written: bytes | None = None


class Folder(Struct, frozen=True, tag="folder"):
    """A folder that was made."""

    path: str


class Undo(Struct, frozen=True):
    """What to put back, in the order in which it was changed."""

    schema: str
    preflight: str  # the version that wrote it
    host: str
    made_at: str
    entries: tuple[Value | File | Folder, ...]


def write(undo: Undo, path: Path) -> None:
    """Whole and on the disk, or not at all; an earlier file is never overwritten."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(undo), indent=1) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.link(part, path)  # fails where there is one already
        finally:
            with suppress(OSError):
                part.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise UsageError(
            f"the undo file {path} cannot be written: {error.strerror}; nothing was changed",
            "--undo-file FILE names another place",
        ) from None


def sync_folder(folder: Path) -> None:
    """What was made or renamed in a folder is on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path) -> Undo:
    """The undo file, held against what preflight may write. UsageError where it is none of ours."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            _hold_owner(path, os.fstat(file.fileno()))
            text = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"the undo file {path} cannot be read: {error.strerror}") from None
    try:
        undo = msgspec.json.decode(text, type=Undo)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is no whole undo file: {error}") from None
    if undo.schema != SCHEMA:
        raise UsageError(
            f"{path}: its schema is {undo.schema[:60]!r}, this preflight reads {SCHEMA}"
        )
    if not undo.entries:
        raise UsageError(f"{path} holds nothing to put back", "--apply never writes such a file")
    for entry in undo.entries:
        if not may_write(entry):
            raise UsageError(f"{path}: {entry.path[:200]!r} is nothing that preflight writes",
                             "nothing was changed")  # fmt: skip
    return undo


def _hold_owner(path: Path, told: os.stat_result) -> None:
    """Whoever may write the file decides what is written as root."""
    if not stat.S_ISREG(told.st_mode):
        raise UsageError(f"the undo file {path} is no regular file")
    if told.st_uid not in (0, os.geteuid()) or told.st_mode & 0o022:
        raise UsageError(
            f"the undo file {path} could have been changed by another user",
            f"look into it, then: sudo chown root {path}; sudo chmod 600 {path}",
        )


def may_write(entry: Value | File | Folder) -> bool:
    """Whether the path is one that `--apply` could have written."""
    if isinstance(entry, File):
        ids = entry.uid, entry.gid
        sound = 0 <= entry.mode <= 0o777 and all(0 <= one <= _MAX_ID for one in ids)
        return entry.path in FILES and sound
    if isinstance(entry, Folder):
        return any(entry.path == str(Path(file).parent) for file in FILES)
    name = entry.path.removeprefix("/proc/sys/").replace("/", ".")
    of_sysfs = (*SYSFS.values(), *FOLLOWS.values())
    known = entry.path == f"/proc/sys/{name.replace('.', '/')}" and name in NAMES
    return known or any(_fits(entry.path, pattern) for pattern in of_sysfs)


def _fits(path: str, pattern: str) -> bool:
    """Whether the path is one of those that the pattern of a shell means: a star is digits."""
    head, star, tail = pattern.partition("[0-9]*")
    if not star:
        return path == pattern
    middle = path[len(head) : len(path) - len(tail)]
    return path == f"{head}{middle}{tail}" and middle.isascii() and middle.isdigit()


def default_path(root: Path, made_at: str) -> Path:
    """/var/lib/preflight/undo-20260102T030405Z.json, with a number where that is there."""
    folder = root / FOLDER.lstrip("/")
    stem = f"undo-{made_at.replace('-', '').replace(':', '')}"
    for number in range(1, 1000):
        path = folder / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        if not path.exists():
            return path
    raise PreflightError(f"{folder} is full of undo files of one second")
