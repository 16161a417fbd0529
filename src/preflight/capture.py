"""The on-disk form of raws: gzip of JSON lines, a header first, then one answer per line.

Each host's lines are flushed together, so a file that was cut reads to its last whole line. The
unpacked form is read too: it is what a person sees and edits.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from preflight import __version__
from preflight.errors import PreflightError, UsageError
from preflight.model import Raw
from preflight.unpack import Unpacking

SCHEMA = "preflight.capture/1"
#: What is unpacked of one file: 350 KB a host make this 3,000 hosts.
MAX_BYTES = 1 << 30
MAX_LINE_BYTES = 256 << 20
_HEADER_BYTES = 1 << 20
_GZIP = 31  # zlib's wbits: the largest window, gzip's header and trailer
_BAD_LINES_TOLD = 5


class Header(Struct, frozen=True):
    """The first line of a capture."""

    schema: str
    preflight: str = ""
    created_at: str = ""
    argv: tuple[str, ...] = ()
    ends: bool = False  # whether a last line {"answers": N} closes it: without, it was cut


class _End(Struct, frozen=True, forbid_unknown_fields=True):
    """The last line of a capture."""

    answers: int


class Captured(Struct, frozen=True):
    """A whole capture. `damage` says what could not be read, None where nothing is amiss."""

    raws: list[Raw]
    created_at: str
    damage: str | None


class _Base64(Struct, frozen=True):
    base64: bytes


class _Line(Raw, frozen=True):
    """A Raw as it is stored: JSON has no bytes for output that is not UTF-8."""

    stdout: str | _Base64 = ""  # type: ignore[assignment]
    stderr: str | _Base64 = ""  # type: ignore[assignment]


_DECODER = msgspec.json.Decoder(_Line)
_UNREADABLE = (msgspec.DecodeError, RecursionError)  # the second where a line nests deep


def encode(raw: Raw) -> bytes:
    """One line of a capture, with its line end."""
    output = {"stdout": _storable(raw.stdout), "stderr": _storable(raw.stderr)}
    return msgspec.json.encode(_Line(**{**asdict(raw), **output})) + b"\n"


def decode(line: bytes) -> Raw:
    """The Raw in one line; raises msgspec.DecodeError or RecursionError."""
    stored = asdict(_DECODER.decode(line))
    packed = {name: value.base64 for name, value in stored.items() if isinstance(value, _Base64)}
    return Raw(**{**stored, **packed})


def pack(raws: Iterable[Raw]) -> bytes:
    """Answers of one host in about a tenth of their size, to be kept in memory for a while."""
    return zlib.compress(b"".join(map(encode, raws)), 1)


def unpack(packed: bytes) -> list[Raw]:
    """The answers in what `pack` made."""
    return [decode(line) for line in zlib.decompress(packed).splitlines()]


def _storable(output: str | bytes) -> str | _Base64:
    # Lone surrogates, which stand for undecodable bytes, are no UTF-8 either.
    data = output if isinstance(output, bytes) else output.encode("utf-8", "surrogatepass")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _Base64(data)


class Writer:
    """Writes a capture: opened before the work starts, under its own name only at the end.

    An exception in the block keeps what was collected; so does an error of the disk, cut after the
    last whole host and raised as PreflightError where it is met. Without an answer neither leaves
    a file, and an earlier one stays. Not for several threads at once.
    """

    def __init__(self, path: Path | str, argv: Sequence[str] = (), created_at: str = "") -> None:
        self.path = Path(path)
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        # An argument that is no UTF-8 has lone surrogates, which JSON cannot hold.
        shown = tuple(one.encode("utf-8", "backslashreplace").decode() for one in argv)
        header = Header(SCHEMA, __version__, created_at or now, shown, ends=True)
        self._unwritten = msgspec.json.encode(header) + b"\n"
        self._target = Path(os.path.realpath(path))
        self._part = self._target.with_name(f".{self._target.name}.{os.urandom(4).hex()}.part")
        self._answers = self._kept_answers = self._kept_bytes = 0
        self._intact = True
        self._broken: PreflightError | None = None

    def __enter__(self) -> Writer:
        """Raises UsageError where the file cannot be made."""
        try:
            if self._target.exists() and not self._target.is_file():
                raise UsageError(f"{self.path} is not a file", "name one that ends in .capture.gz")
            self._file: BinaryIO = self._part.open("xb")
        except OSError as error:
            hint = f"mkdir -p {self.path.parent}" if isinstance(error, FileNotFoundError) else ""
            raise UsageError(f"{self.path}: cannot be written: {error.strerror}", hint) from error
        self._engine = zlib.compressobj(6, zlib.DEFLATED, _GZIP)  # its header has no time, no name
        return self

    def write(self, raws: Iterable[Raw] | Raw) -> None:
        """Add the answers of one host; raises PreflightError where the disk takes no more."""
        lines = [encode(raw) for raw in ((raws,) if isinstance(raws, Raw) else raws)]
        self._answers += len(lines)
        self._put(b"".join(lines), zlib.Z_SYNC_FLUSH)

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        failure: PreflightError | None = None
        try:
            if self._intact:
                end = msgspec.json.encode(_End(self._answers)) + b"\n"
                self._put(end, zlib.Z_FINISH)
        except PreflightError as full:
            failure = full
        with suppress(OSError):
            self._file.close()  # after an error this tries once more to write what is left
        if not self._intact:
            os.truncate(self._part, self._kept_bytes)
        if self._kept_answers or (self._intact and kind is None):
            self._part.replace(self._target)
        else:
            self._part.unlink()
        if failure and kind is None:
            raise failure

    def _put(self, data: bytes, flush: int) -> None:
        """Write through to the system. An error or an interrupt leaves the file not intact."""
        if self._broken:
            raise self._broken
        self._intact = False
        try:
            self._file.write(self._engine.compress(self._unwritten + data))
            self._file.write(self._engine.flush(flush))
            self._file.flush()
            if flush == zlib.Z_FINISH:  # a network file system tells of a full disk only here
                os.fsync(self._file.fileno())
        except OSError as error:
            kept = f"its first {self._kept_answers} answers" if self._kept_answers else "nothing"
            what = f"{self.path}: the capture cannot be written: {error.strerror}; {kept} kept"
            hint = f"make room (df -h {self.path.parent}), or name a file elsewhere"
            self._broken = PreflightError(what, hint)
            raise self._broken from error
        self._unwritten, self._intact = b"", True
        self._kept_bytes, self._kept_answers = self._file.tell(), self._answers


class Reader:
    """Reads a capture as a stream, one line in memory; `damage` is whole when iteration ends.

    Raises UsageError at once where the file cannot be opened or is no capture.
    """

    def __init__(self, source: Path | str | bytes, name: str = "") -> None:
        self._source = source
        self._name = name or ("the input" if isinstance(source, bytes) else str(source))
        self._cut, self._bad_lines = "", 0
        self._bad: list[str] = []
        header = _header(_first_line(source))
        if header is None:
            hint = "preflight capture -o x.capture.gz"
            raise UsageError(f"{self._name} is not a capture", hint)
        if header.schema != SCHEMA:
            what = f"{self._name} has the form {header.schema}; this version reads {SCHEMA}"
            raise UsageError(what, "pip install --upgrade gpu-preflight")
        self.created_at = header.created_at
        self._ends = header.ends

    @property
    def damage(self) -> str | None:
        """What the last iteration could not read."""
        more = self._bad_lines - len(self._bad)
        told = [*self._bad, f"and {more} lines more" if more else "", self._cut]
        return "; ".join(filter(None, told)) or None

    def __iter__(self) -> Iterator[Raw]:
        self._cut, self._bad, self._bad_lines = "", [], 0
        open_ended, number, answers = self._ends, 1, 0
        for number, line in self._lines():
            end = _end(line)
            if end is not None:
                open_ended = open_ended and end.answers != answers
                continue
            try:
                yield decode(line)
                answers += 1
            except _UNREADABLE as error:
                if not line.endswith(b"\n"):
                    self._cut = f"cut short after line {number - 1}"
                elif not _header(line):  # `cat a.capture.gz b.capture.gz` is a capture
                    self._bad_lines += 1
                    if len(self._bad) < _BAD_LINES_TOLD:
                        self._bad.append(f"line {number} is not an answer ({error})")
        if open_ended and not self._cut:
            self._cut = f"cut short after line {number}"

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines after the header, counted from 1 with the header, blank ones left out."""
        with _opened(self._source) as file:
            unpacking = Unpacking(file, MAX_BYTES)
            lines = io.BufferedReader(unpacking, 1 << 20)
            lines.readline(_HEADER_BYTES)
            number = 1
            while line := lines.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    unpacking.cause = "read no further: a line is too long, cut"
                    break
                if unpacking.cause and not line.endswith(b"\n"):
                    break
                number += 1
                if not line.isspace():
                    yield number, line
            if unpacking.cause:
                self._cut = f"{unpacking.cause} after line {number}"


def _end(line: bytes) -> _End | None:
    if len(line) > 64:
        return None
    try:
        return msgspec.json.decode(line, type=_End)
    except msgspec.MsgspecError:
        return None


def read(source: Path | str | bytes) -> Captured:
    """A whole capture, from a file or from its bytes; UsageError where it is none."""
    reader = Reader(source)
    return Captured(list(reader), reader.created_at, reader.damage)


def is_capture(source: Path | str | bytes) -> bool:
    """Whether it begins like one, of this version or another; UsageError where unreadable."""
    return _header(_first_line(source)) is not None


def _first_line(source: Path | str | bytes) -> bytes:
    with _opened(source) as file:
        return io.BufferedReader(Unpacking(file, _HEADER_BYTES)).readline(_HEADER_BYTES)


def _header(line: bytes) -> Header | None:
    with suppress(*_UNREADABLE):
        header = msgspec.json.decode(line, type=Header)
        return header if header.schema.startswith("preflight.capture/") else None
    return None


def _opened(source: Path | str | bytes) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    try:
        return Path(source).open("rb")
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}") from error
