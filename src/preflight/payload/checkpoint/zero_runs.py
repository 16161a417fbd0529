"""Pages of zeros among values: a write that was lost leaves them, in whole pages of the file."""

from __future__ import annotations

from .dtypes import FLOATS
from .report import Told
from .values import PAGE
from .window import Window

#: So many zero bytes may stand beside a lost page by chance: two values of 0.0 or bytes of others.
_BY_CHANCE = 8
_BESIDE = PAGE


def tell_zeros(window: Window, told: Told) -> None:
    """Runs of zeros within tensors of floats that begin and end with pages of the file, and not
    with rows of the tensor: rows of padding, and tensors of zeros, are in order."""
    end = window.base + window.size
    places = [
        (int(one["offset"]), int(one["offset"]) + int(one["nbytes"]), one)
        for one in told.tensors if one["offset"] is not None and one["nbytes"]
    ]  # fmt: skip
    places.sort(key=lambda place: place[:2])
    for first, last in _joined(window, told.runs.found):
        begin, stop = first * PAGE, last * PAGE
        holding = next((one for one in places if one[0] < stop and begin < one[1]), None)
        if holding is None or holding[2]["dtype"] not in FLOATS:
            continue
        if _is_lost(window, begin, stop, end, holding):
            name = str(holding[2]["name"])
            told.flaw("zero-pages", f"{name}: {stop - begin:,} bytes of zeros, in whole pages of "
                      "the file: a write that was lost", begin)  # fmt: skip
            holding[2]["damage"] = holding[2]["damage"] or f"zeros at {begin:,}"


def _joined(window: Window, runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """First page, and the one behind the last: with pages of which two tensors have a part, which
    neither was looked at for."""
    found: list[tuple[int, int]] = []
    for first, count in runs:
        begin, stop = first, first + count
        begin -= _is_zero(window, begin - 1)
        if found and found[-1][1] >= begin:
            begin = found.pop()[0]
        found.append((begin, stop + _is_zero(window, stop)))
    return found


def _is_zero(window: Window, page: int) -> bool:
    offset = page * PAGE - window.base
    if offset < 0 or offset + PAGE > window.size:
        return False
    return not window.read(offset, PAGE).strip(b"\0")


def _is_lost(
    window: Window, begin: int, stop: int, end: int, holding: tuple[int, int, dict[str, object]]
) -> bool:
    at, until, tensor = holding
    row = _row_bytes(tensor)
    if begin <= at:  # zeros from its first value on: a tensor, or its beginning, that is zero
        return False
    if (begin - at) % row == 0 and (stop >= until or (stop - at) % row == 0):
        return False
    if _zeros_before(window, begin) > _BY_CHANCE:
        return False
    after = _zeros_after(window, stop, end)
    return after <= _BY_CHANCE or stop + after == end


def _row_bytes(tensor: dict[str, object]) -> int:
    shape = tensor["shape"]
    nbytes = tensor["nbytes"]
    assert isinstance(shape, tuple) and isinstance(nbytes, int)
    return max(nbytes // shape[0], 1) if len(shape) > 1 and shape[0] else max(nbytes, 1)


def _zeros_before(window: Window, offset: int) -> int:
    begin = max(offset - _BESIDE, window.base)
    data = window.read(begin - window.base, offset - begin)
    return len(data) - len(data.rstrip(b"\0"))


def _zeros_after(window: Window, offset: int, end: int) -> int:
    data = window.read(offset - window.base, min(_BESIDE, end - offset))
    return len(data) - len(data.lstrip(b"\0"))
