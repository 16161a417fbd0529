"""Who can decode a shard here: modules of Python and programs, by what a file begins with.

A decoder is a function from bytes to pairs of (bytes that it has taken, a decoded piece). It raises
EOFError where the bytes end within their data, and whatever its library raises where they are
damaged.
"""

from __future__ import annotations

import bz2
import contextlib
import importlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Pieces = Iterator[tuple[int, bytes]]
Decode = Callable[[bytes], Pieces]

#: What files begin with (RFC 1952, 8878; the formats of lz4, xz and bzip2).
MAGIC = {
    "gzip": b"\x1f\x8b\x08", "zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18",
    "xz": b"\xfd7zXZ\x00", "bzip2": b"BZh",
}  # fmt: skip
#: What may be compressed within, which its own reader decodes.
WITHIN = {
    "hdf5": b"\x89HDF\r\n\x1a\n", "parquet": b"PAR1", "arrow": b"ARROW1", "zip": b"PK\x03\x04",
}  # fmt: skip
#: What may follow a stream: zeros of a tape or a block device, and frames to be passed over, each
#: with its size (RFC 8878, 3.1.2, which lz4 shares).
_ZEROS = re.compile(rb"\0*")
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18(.{4})", re.DOTALL)
PIECE = 1 << 20
_STEP, _SMALL = 1 << 18, 1 << 11
_MEMORY = 128 << 20  # for the window of a stream; what asks for more is refused
_CUT = re.compile(r"premature|unfinished|truncated|end of|incomplete", re.IGNORECASE)


class Decoder(NamedTuple):
    """`by`: zlib of Python 3.11.7; the program zstd. `program`: its work is that of a child."""

    by: str
    decode: Decode
    program: bool = False


def format_of(head: bytes) -> str:
    """gzip, hdf5 ...; "" for anything else, which is as good as not compressed."""
    return next((name for name, magic in {**MAGIC, **WITHIN}.items() if head.startswith(magic)), "")


def decoders(form: str) -> list[Decoder]:
    """All that are here for this format; none where nothing is."""
    python = f"of Python {'.'.join(map(str, sys.version_info[:3]))}"
    own: dict[str, tuple[str, Callable[[], Any]]] = {
        "gzip": ("zlib", _Gzip),
        "xz": ("lzma", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _MEMORY)),
        "bzip2": ("bz2", bz2.BZ2Decompressor),
    }
    found = []
    if form in own:
        name, make = own[form]
        found.append(Decoder(f"{name} {python}", lambda data: _streamed(make, data, MAGIC[form])))
    found += filter(None, (_zstandard(), _standard_zstd(python)) if form == "zstd" else ())
    if form == "lz4" and (module := _module("lz4.frame")):
        found.append(Decoder(
            f"lz4 {_version('lz4')}",
            lambda data: _streamed(module.LZ4FrameDecompressor, data, MAGIC[form]),
        ))  # fmt: skip
    if form in _PROGRAMS and shutil.which(form):
        found.append(Decoder(f"the program {form}", _piped(_PROGRAMS[form]), program=True))
    return found


_PROGRAMS = {
    "zstd": ["zstd", "-dcq", f"--memory={_MEMORY >> 20}MB"], "lz4": ["lz4", "-dcq"],
}  # fmt: skip


def _module(name: str) -> Any:
    with contextlib.suppress(ImportError, OSError):
        return importlib.import_module(name)
    return None


def _version(name: str) -> str:
    return str(getattr(_module(name), "__version__", ""))


class _Gzip:
    """zlib with the manners of the other decompressors."""

    def __init__(self) -> None:
        self._one = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._one.eof

    @property
    def needs_input(self) -> bool:
        return not self._one.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._one.unused_data

    def decompress(self, data: Any, most: int) -> bytes:
        return self._one.decompress(data or self._one.unconsumed_tail, most)


def _streamed(make: Callable[[], Any], data: bytes, magic: bytes, size: int = _STEP) -> Pieces:
    """One stream after the other. What follows them and is neither padding nor passed over is
    damage, though many readers keep quiet about it."""
    view, at = memoryview(data), 0
    while (at := _next(data, magic, at)) < len(data):
        one, hungry = make(), True
        while not one.eof:
            step = view[at : at + size] if hungry else b""
            at += len(step)
            piece = one.decompress(step, PIECE)
            if not (piece or len(step) or one.eof or at < len(view)):
                raise EOFError("it ends within its data")
            hungry = one.needs_input or not piece
            yield at, piece
        at -= len(one.unused_data or b"")


def _next(data: bytes, magic: bytes, at: int) -> int:
    """Where the next stream begins; the end of the data where there is none."""
    while at < len(data) and not data.startswith(magic, at):
        if not data[at]:
            at = _ZEROS.match(data, at).end()  # type: ignore[union-attr]
        elif magic in (MAGIC["zstd"], MAGIC["lz4"]) and (found := _SKIPPABLE.match(data, at)):
            at += 8 + int.from_bytes(found[1], "little")
            if at > len(data):
                raise EOFError("it ends within a frame that is passed over")
        elif _is_cut(data[at : at + 8], magic):
            raise EOFError("it ends within the beginning of a stream")
        else:
            raise ValueError(f"from byte {at:,} on it is neither a stream of it nor zeros")
    return at


def _is_cut(rest: bytes, magic: bytes) -> bool:
    """Whether a stream, or a frame that is passed over, may begin here."""
    skips = magic in (MAGIC["zstd"], MAGIC["lz4"]) and 0x50 <= rest[0] <= 0x5F
    return (len(rest) < len(magic) and magic.startswith(rest)) or (
        skips and len(rest) < 8 and b"\x2a\x4d\x18".startswith(rest[1:4])
    )


def _standard_zstd(python: str) -> Decoder | None:
    """Of Python 3.14 on."""
    module = _module("compression.zstd") if sys.version_info >= (3, 14) else None
    if module is None:
        return None
    return Decoder(
        f"compression.zstd {python}",
        lambda data: _streamed(module.ZstdDecompressor, data, MAGIC["zstd"]),
    )


class _Zstd:
    """An object of zstandard with the manners of the other decompressors: what a piece of input
    becomes it gives at once, so that it is fed in small ones."""

    needs_input = True

    def __init__(self, one: Any) -> None:
        self._one = one

    @property
    def eof(self) -> bool:
        return bool(self._one.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._one.unused_data)

    def decompress(self, data: Any, _most: int) -> bytes:
        return bytes(self._one.decompress(data)) if len(data) else b""


def _zstandard() -> Decoder | None:
    module = _module("zstandard")
    if module is None:
        return None

    def make() -> _Zstd:
        return _Zstd(module.ZstdDecompressor(max_window_size=_MEMORY).decompressobj())

    return Decoder(
        f"zstandard {module.__version__}",
        lambda data: _streamed(make, data, MAGIC["zstd"], _SMALL),
    )


def _piped(argv: list[str]) -> Decode:
    """A program that reads the bytes from a file in memory and is read through a pipe."""

    def decode(data: bytes) -> Pieces:
        source, said = os.memfd_create("shard"), os.memfd_create("said")
        try:
            yield from _read(argv, data, source, said)
        finally:
            os.close(source)
            os.close(said)

    return decode


def _read(argv: list[str], data: bytes, source: int, said: int) -> Pieces:
    with os.fdopen(os.dup(source), "wb") as file:
        file.write(data)
    os.lseek(source, 0, os.SEEK_SET)
    child = subprocess.Popen(argv, stdin=source, stdout=subprocess.PIPE, stderr=said)
    assert child.stdout is not None
    try:
        while piece := child.stdout.read(PIECE):
            yield os.lseek(source, 0, os.SEEK_CUR), piece
        child.wait()
    finally:  # also where nobody wants more of it
        child.stdout.close()
        if child.poll() is None:
            child.terminate()
            child.wait()
    if child.returncode > 0:
        os.lseek(said, 0, os.SEEK_SET)
        text = os.read(said, 4000).decode(errors="replace").strip()[-300:]
        raise EOFError(text) if _CUT.search(text) else ValueError(text)
