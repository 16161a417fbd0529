"""One file or stream of recorded answers: a capture, a large log, or what a tool wrote."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import BinaryIO

from preflight.capture import Reader, is_capture
from preflight.errors import UsageError
from preflight.model import Raw
from preflight.pasted import MAX_BYTES
from preflight.recognise import recognise

#: Smaller files, packed or not, are read whole.
SMALLEST_BYTES = 2 << 20
#: Of a stream no more is held before it is a file.
SPOOL_BYTES = 32 << 20
#: So many names of a folder are looked at for the one that was meant.
_NAMES_MAX = 2000


def answers_of(path: Path, label: str) -> Reader | list[Raw]:
    """The answers in one file, named `label`; UsageError where there are none."""
    if not _is_file(path):
        with _opened(path, label) as stream:
            return answers_of_stream(stream, label)
    if is_capture(path):
        return Reader(path, label)
    log = _large_log(path, label)
    return [log] if log else recognise(_read(path, label), label)


def answers_of_stream(stream: BinaryIO | None, label: str) -> Reader | list[Raw]:
    """The standard input, or a pipe by name: what is too large to be held becomes a file for as
    long as it is read."""
    if stream is None:
        raise UsageError(f"{label} is closed", "dmesg | preflight gpu-health --from -")
    data = _of(stream, SPOOL_BYTES, label)
    if is_capture(data):
        return Reader(data + _of(stream, MAX_BYTES, label), label)
    if len(data) < SPOOL_BYTES:
        return recognise(data, label)
    from tempfile import NamedTemporaryFile

    try:
        with NamedTemporaryFile(prefix="preflight-") as file:
            while data:
                file.write(data)
                data = stream.read(1 << 20)
            file.flush()
            return answers_of(Path(file.name), label)
    except OSError as error:
        what = f"{label} is large and could not be put into a file for a while: {error.strerror}"
        raise UsageError(what, "give the file by its name, or make room: TMPDIR=DIR") from error


def _large_log(path: Path, label: str) -> Raw | None:
    if path.stat().st_size < SMALLEST_BYTES:  # nor need the modules be loaded
        return None
    from preflight.transports.fio_sieve import fio_sieved
    from preflight.transports.nccl_sieve import nccl_sieved
    from preflight.transports.sieve import sieved

    return fio_sieved(path, label) or sieved(path, label) or nccl_sieved(path, label)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _read(path: Path, label: str) -> bytes:
    """A whole file; at most one byte more than is recognised."""
    with _opened(path, label) as file:
        return _of(file, MAX_BYTES + 1, label)


def _opened(path: Path, label: str) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise UsageError(f"{label} cannot be read: {error.strerror}", _instead(path)) from error


def _instead(path: Path) -> str:
    """The file whose name is nearly the same, else where to look."""
    import difflib  # for mistakes only
    import shlex

    try:
        names = [one.name for one in islice(path.parent.iterdir(), _NAMES_MAX)]
    except OSError:
        names = []
    near = [name for name in difflib.get_close_matches(path.name, names, 2) if name != path.name]
    if near:
        return f"did you mean {' or '.join(str(path.with_name(name)) for name in near)}?"
    return f"ls -l {shlex.quote(str(path if path.name in names else path.parent))}"


def _of(file: BinaryIO, size: int, label: str) -> bytes:
    try:
        return file.read(size)
    except OSError as error:
        raise UsageError(f"{label} cannot be read: {error.strerror}") from error
