"""Files of safetensors: a length of 8 bytes, a header in JSON, then the values without a gap. The
format has no checksum (https://github.com/huggingface/safetensors, "Format")."""

from __future__ import annotations

import json
import struct
from typing import Any

from .blocks import How, check
from .dtypes import BYTES, SAFETENSORS, SAFETENSORS_BITS
from .held import Placed, Storage
from .report import Told, named
from .window import DamagedError, Window
from .zero_runs import tell_zeros

LONGEST_HEADER = 100_000_000
_MOST_TENSORS = 1_000_000


def scan(window: Window, told: Told, how: How) -> None:
    """Fill in what is told of the file; DamagedError where its header cannot be read."""
    told.kind = "safetensors"
    header, length = _header(window)
    about = header.pop("__metadata__", {})
    if isinstance(about, dict):
        told.told.update({f"metadata.{key}"[:200]: str(value)[:500]
                          for key, value in list(about.items())[:100]})  # fmt: skip
    base = 8 + length
    entries = [_entry(name, value, told) for name, value in header.items()]
    found = sorted((one for one in entries if one is not None), key=lambda one: one[1:])
    _tiles(found, window.size - base, base, told)
    for placed, begin, stop in found:
        _one(window, placed, base + begin, stop - begin, told, how)
    tell_zeros(window, told)
    _all_zero(window, base, told)


def _header(window: Window) -> tuple[dict[str, Any], int]:
    length = int(struct.unpack("<Q", window.read(0, 8))[0]) if window.size >= 8 else -1
    if length < 0:
        raise DamagedError("truncated", "it has fewer bytes than the length of a header takes", 0)
    if length > LONGEST_HEADER:
        raise DamagedError("header", f"its header is to have {length:,} bytes, and at most "
                      f"{LONGEST_HEADER:,} are allowed", 0)  # fmt: skip
    data = window.read(8, length)
    if not data.startswith(b"{"):
        raise DamagedError("header", "its header is no JSON", 8)
    try:
        header = json.loads(data, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise DamagedError("header", f"its header is no JSON: {str(error)[:200]}", 8) from None
    if len(header) > _MOST_TENSORS:
        raise DamagedError("hostile", f"a header of {len(header):,} tensors", 8)
    return header, length


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands in it more than once")
    return found


def _entry(name: str, value: Any, told: Told) -> tuple[Placed, int, int] | None:
    """A tensor and its interval; None, and a flaw, where they do not fit each other."""
    try:
        dtype, shape, (begin, stop) = value["dtype"], tuple(value["shape"]), value["data_offsets"]
        numbers = (*shape, begin, stop)
        if not all(type(one) is int and 0 <= one < 2**63 for one in numbers):
            raise ValueError
    except (TypeError, KeyError, ValueError):
        told.flaw("header", f"{name[:200]}: its entry in the header is not as it has to be", 8)
        return None
    count = 1
    for one in shape:
        count *= one
    bits = SAFETENSORS_BITS.get(dtype) or BYTES.get(SAFETENSORS.get(dtype, ""), 0) * 8
    if not bits:
        told.flaw("header", f"{name[:200]}: {str(dtype)[:50]} is no known type of values", 8)
        return None
    if stop - begin != (count * bits + 7) // 8:
        told.flaw("size", f"{name[:200]}: {stop - begin:,} bytes for {count:,} values of {dtype}",
                  8)  # fmt: skip
        return None
    known = SAFETENSORS.get(dtype, "untyped")
    storage = Storage(name, known, count if known != "untyped" else stop - begin)
    return Placed(name, known, shape, storage, 0, count), begin, stop


def _tiles(found: list[tuple[Placed, int, int]], size: int, base: int, told: Told) -> None:
    """The intervals follow each other from 0 to the end of the file."""
    at = 0
    for placed, begin, stop in found:
        if begin != at:
            kind = "hole" if begin > at else "overlap"
            text = f"{begin - at:,} bytes before" if begin > at else f"{at - begin:,} bytes of"
            whose = "no tensor" if begin > at else "another tensor too"
            told.flaw(kind, f"{text} {placed.name[:200]} belong to {whose}", base + at)
        at = max(at, stop)
    if at > size:
        short = [placed.name for placed, _, stop in found if stop > size]
        told.flaw("truncated", f"it ends {at - size:,} bytes too soon: of {named(short)} not all "
                  "is there", base + size)  # fmt: skip
    elif at < size:
        told.flaw("trailing", f"{size - at:,} bytes behind the last tensor belong to none",
                  base + at)  # fmt: skip


def _one(window: Window, placed: Placed, offset: int, size: int, told: Told, how: How) -> None:
    there = max(min(size, window.size - offset), 0)
    if there < size:
        told.tensor(placed, offset, None, "it is cut short")
        return
    checked = check(window.part(offset, size), placed.dtype, how, told.runs)
    told.checked_bytes += checked.checked
    told.tensor(placed, window.base + offset, checked)


def _all_zero(window: Window, base: int, told: Told) -> None:
    """Every page of the values is zero: a file whose space was set aside, and never written."""
    first = -(-(window.base + base) // 4096)
    pages = (window.base + window.size) // 4096 - first
    if pages > 0 and told.runs.found == [(first, pages)]:
        told.flaw("zeros", "all of its values are zero", base)
