"""Numbers looked at as bits: what is no number, what is infinite, the largest of the rest.

Without its sign a float is larger the larger its bits are, read as a whole number (IEEE 754). So
one maximum over a piece that fits into the cache tells all three; only a piece that holds an Inf or
NaN is looked at closer.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from .dtypes import FLOATS, Float


class Seen:
    """What was seen of the values of one tensor or storage; counts of values."""

    __slots__ = ("infs", "largest_bits", "looked_at", "nans")

    def __init__(self) -> None:
        self.looked_at = 0
        self.nans = 0
        self.infs = 0
        self.largest_bits = -1  # of what is finite; -1: not told

    def add(self, other: Seen) -> None:
        self.looked_at += other.looked_at
        self.nans += other.nans
        self.infs += other.infs
        self.largest_bits = max(self.largest_bits, other.largest_bits)


class Way(NamedTuple):
    """What looks at values: `name` for what is told, `look` takes a piece of whole values, and
    the zeros of 4 KiB that `pages` finds in it, by number."""

    name: str
    look: Callable[[memoryview, Float, Seen], None]
    pages: Callable[[memoryview], list[int]]


def best_way() -> Way:
    """By numpy where it can be imported, else by torch, else by Python itself."""
    for module, make in (("numpy", _by_numpy), ("torch", _by_torch)):
        try:
            return make(import_module(module))
        except Exception:  # noqa: BLE001 - a module that does not load is one that is not there
            continue
    return Way("Python", look_plain, plain_pages)


PAGE = 4096
_ZEROS = bytes(PAGE)


def plain_pages(piece: memoryview) -> list[int]:
    """Numbers of the pages in it that hold zeros alone; its end that is no whole page is left."""
    whole = len(piece) // PAGE
    firsts = piece[: whole * PAGE].cast("Q")[:: PAGE // 8].tolist() if whole else []
    return [
        at for at, first in enumerate(firsts)
        if not first and piece[at * PAGE : (at + 1) * PAGE] == _ZEROS
    ]  # fmt: skip


def _by_numpy(numpy: Any) -> Way:
    kinds = {1: numpy.uint8, 2: numpy.uint16, 4: numpy.uint32, 8: numpy.uint64}
    signed = {1: numpy.int8, 2: numpy.int16, 4: numpy.int32, 8: numpy.int64}

    def look(piece: memoryview, kind: Float, seen: Seen) -> None:
        bits = numpy.frombuffer(piece, dtype=kinds[kind.bytes])
        sign = 1 << (kind.bytes * 8 - 1)
        # As signed numbers the largest positive one, as unsigned ones the largest of all: the
        # negative ones, if there are any.
        largest = int(bits.view(signed[kind.bytes]).max())
        below = int(bits.max())
        largest = max(largest, below - sign if below >= sign else below)
        seen.looked_at += len(bits)
        if largest < _least_odd(kind):
            seen.largest_bits = max(seen.largest_bits, largest)
            return
        bits = bits & kinds[kind.bytes](sign - 1)
        seen.nans += int((bits >= kind.least_nan).sum())
        seen.infs += int((bits == kind.inf).sum()) if kind.inf >= 0 else 0
        finite = bits[bits < _least_odd(kind)]
        if len(finite):
            seen.largest_bits = max(seen.largest_bits, int(finite.max()))

    def pages(piece: memoryview) -> list[int]:
        whole = len(piece) // PAGE
        firsts = numpy.frombuffer(piece[: whole * PAGE], dtype=numpy.uint64)[:: PAGE // 8]
        return [
            int(at) for at in numpy.flatnonzero(firsts == 0)
            if piece[int(at) * PAGE : (int(at) + 1) * PAGE] == _ZEROS
        ]  # fmt: skip

    return Way("numpy", look, pages)


def _by_torch(torch: Any) -> Way:
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

    def look(piece: memoryview, kind: Float, seen: Seen) -> None:
        mask = (1 << (kind.bytes * 8 - 1)) - 1
        bits = torch.frombuffer(piece, dtype=kinds[kind.bytes]) & mask
        largest = int(bits.max())
        seen.looked_at += bits.numel()
        if largest < _least_odd(kind):
            seen.largest_bits = max(seen.largest_bits, largest)
            return
        seen.nans += int((bits >= kind.least_nan).sum())
        seen.infs += int((bits == kind.inf).sum()) if kind.inf >= 0 else 0
        finite = bits[bits < _least_odd(kind)]
        if finite.numel():
            seen.largest_bits = max(seen.largest_bits, int(finite.max()))

    return Way("torch", look, plain_pages)


def _least_odd(kind: Float) -> int:
    return kind.inf if kind.inf >= 0 else kind.least_nan


def _highest_bytes(kind: Float) -> tuple[int, ...]:
    """Those that an Inf or NaN may have, with either sign."""
    least = _least_odd(kind) >> (8 * (kind.bytes - 1))
    return tuple(byte for byte in range(256) if (byte & 0x7F) >= least)


_ODD_BYTES = {kind: _highest_bytes(kind) for kind in FLOATS.values()}
_FORMS = {1: "=B", 2: "=H", 4: "=I", 8: "=Q"}


def look_plain(piece: memoryview, kind: Float, seen: Seen) -> None:
    """By highest bytes, each found at the speed of memory: few values share theirs with an Inf.
    The largest is not told."""
    step = kind.bytes
    seen.looked_at += len(piece) // step
    # A slice of bytes is ten times faster than one of a memoryview.
    highest = bytes(piece)[(step - 1 if sys.byteorder == "little" else 0) :: step]
    for byte in _ODD_BYTES[kind]:
        at = highest.find(byte)
        while at >= 0:
            bits = struct.unpack_from(_FORMS[step], piece, at * step)[0]
            bits &= (1 << (8 * step - 1)) - 1
            seen.nans += bits >= kind.least_nan
            seen.infs += bits == kind.inf
            at = highest.find(byte, at + 1)


def as_number(bits: int, dtype: str) -> float | None:
    """The float that has these bits; None where it cannot be told."""
    if bits < 0 or dtype not in FLOATS:
        return None
    if dtype == "bfloat16":
        return float(struct.unpack("=f", struct.pack("=I", bits << 16))[0])
    if dtype == "float8_e5m2":
        return float(struct.unpack("=e", struct.pack("=H", bits << 8))[0])
    if dtype == "float8_e4m3fn":
        exponent, fraction = bits >> 3 & 15, bits & 7
        return (fraction / 8 + (exponent > 0)) * 2.0 ** (max(exponent, 1) - 7)
    form, whole = {2: ("=e", "=H"), 4: ("=f", "=I"), 8: ("=d", "=Q")}[FLOATS[dtype].bytes]
    return float(struct.unpack(form, struct.pack(whole, bits))[0])
