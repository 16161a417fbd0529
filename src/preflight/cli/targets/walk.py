"""From what was typed to files of a kind, each with what it is."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from preflight.cli.targets.kinds import HEAD_BYTES, KINDS, Kind
from preflight.errors import UsageError
from preflight.unpack import Unpacking

#: More files of a folder are not looked at.
MOST_FILES = 20_000
_HINT = "TARGET is a log, a trace, dumps, a folder of these, or the PID of a running process"
#: Folders in which nothing is a run's own record.
_NOT_WALKED = {".git", "__pycache__", "node_modules", ".venv", "site-packages"}


class Input(Struct, frozen=True):
    """A file and its kind. `named`: typed by the user, not found in a folder."""

    path: Path
    shown: str  # how it is called in what is told
    kind: Kind
    named: bool = True


class Walked(Struct):
    """What was given. `unknown`: kind of file that is not understood -> its files, each kind told
    once; `failed`: what could not be opened, and why; `pids`: processes."""

    inputs: list[Input] = []
    pids: list[int] = []
    unknown: dict[str, list[str]] = {}
    failed: dict[str, str] = {}


def walk(targets: Sequence[str], spool: Path) -> Walked:
    """UsageError where a target is not there. `spool`: an empty folder, for standard input."""
    if not targets:
        raise UsageError("nothing to diagnose", _HINT)
    found = Walked()
    seen: set[tuple[int, int]] = set()
    for target in targets:
        if target == "-":
            _add(_spooled(spool), "standard input", found, seen)
        elif is_pid(target):
            found.pids.append(_pid(target))
        else:
            _add_path(Path(target), found, seen)
    return found


def is_pid(target: str) -> bool:
    """Whether it is meant as a process: a number that is no file's name."""
    return target.isdecimal() and not Path(target).exists()


def _pid(text: str) -> int:
    if not 0 < int(text) < 2**31:
        raise UsageError(f"{text} is neither a file nor a process", _HINT)
    return int(text)


def _spooled(folder: Path) -> Path:
    """Standard input as a file: readers look at their input more than once."""
    handle, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as file, open(0, "rb", closefd=False) as source:
        while piece := source.read(1 << 20):
            file.write(piece)
    return Path(name)


def _add_path(path: Path, found: Walked, seen: set[tuple[int, int]]) -> None:
    if not path.exists():
        what = f"there is no {path}" if not path.is_symlink() else f"{path} leads nowhere"
        raise UsageError(what, _HINT)
    if path.is_dir():
        for one in _files(path, found):
            _add(one, str(one), found, seen, named=False)
    else:
        _add(path, str(path), found, seen)


def _files(folder: Path, found: Walked) -> Iterator[Path]:
    """Files below the folder in order; links are not followed out of it."""
    count = 0
    for here, folders, names in os.walk(folder, onerror=lambda e: _failed(found, e)):
        folders[:] = sorted(set(folders) - _NOT_WALKED)
        for name in sorted(names):
            count += 1
            if count > MOST_FILES:
                found.failed[str(folder)] = f"only its first {MOST_FILES:,} files were looked at"
                return
            yield Path(here, name)


def _failed(found: Walked, error: OSError) -> None:
    found.failed[str(error.filename)] = error.strerror or str(error)


def _add(
    path: Path, shown: str, found: Walked, seen: set[tuple[int, int]], *, named: bool = True
) -> None:
    """The file under its kind; the same file given twice counts once."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            if named:
                found.failed[shown] = "it is no plain file"
            return
        if (state.st_dev, state.st_ino) in seen:
            return
        seen.add((state.st_dev, state.st_ino))
        head = head_of(path)
    except OSError as error:
        if named or not path.is_symlink():  # in a folder links that lead nowhere are no news
            found.failed[shown] = error.strerror or str(error)
        return
    kind = kind_of(head, path.name)
    if kind is not None:
        found.inputs.append(Input(path, shown, kind, named))
    elif named or head:
        found.unknown.setdefault(what_it_is(head, path.name), []).append(shown)


def head_of(path: Path) -> bytes:
    """Its first bytes, unpacked."""
    with path.open("rb") as file:
        source = Unpacking(file, HEAD_BYTES)
        pieces, size = [], 0
        while size < HEAD_BYTES and (piece := source.read(HEAD_BYTES - size)):
            pieces.append(piece)
            size += len(piece)
    return b"".join(pieces)


def kind_of(head: bytes, name: str, kinds: Sequence[Kind] = KINDS) -> Kind | None:
    """The first kind that takes it."""
    return next((kind for kind in kinds if kind.sniff(head, name)), None)


#: What files that nobody reads begin with.
_FORMATS: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip archive (of weights, or others)"),
    (b"\x89HDF", "HDF5"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "PDF"),
    (b"\x89PNG", "a picture"),
    (b"\x1f\x8b", "gzip within gzip"),
    (b"BZh", "bzip2: unpack it first"),
    (b"\xfd7zXZ", "xz: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "zstd: unpack it first"),
)


def what_it_is(head: bytes, name: str) -> str:
    """A file that is not understood, in words: the same for all of its kind."""
    if not head:
        return "an empty file"
    for begin, words in _FORMATS:
        if head.startswith(begin):
            return words
    suffix = Path(name).suffix
    if b"\0" in head[:4096]:
        return f"binary data ({suffix or 'no suffix'})"
    return f"text of no known form ({suffix or 'no suffix'})"
