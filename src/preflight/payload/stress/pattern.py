"""Patterns written to free memory and read back: all of it is written before any of it is read, so
that two addresses that lead to one cell are seen too."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ..host_memory import available_bytes
from . import inject
from .place import Place

_BLOCK_WORDS = 4 << 20  # of 8 bytes
#: What is left free on a GPU for what else needs memory, and what is tested of a host at most.
_LEFT_BYTES, _HOST_BYTES, _HOST_SHARE = 1 << 30, 512 << 20, 8
_SHOWN = 4

#: The words of a block that begins at word `first`; int64.
Pattern = Callable[[int, int, Place], Tensor]


def _indexes(first: int, words: int, place: Place) -> Tensor:
    return torch.arange(first, first + words, device=place.device, dtype=torch.int64)


def address(first: int, words: int, place: Place) -> Tensor:
    """Each word its own number, in the upper half inverted: wires that are swapped or stuck."""
    index = _indexes(first, words, place)
    return (index & 0xFFFFFFFF) | (~index << 32)


def walking(first: int, words: int, place: Place) -> Tensor:
    """One bit set, another one in each word."""
    return torch.ones((), dtype=torch.int64, device=place.device) << (
        _indexes(first, words, place) % 64
    )


def random(first: int, words: int, place: Place) -> Tensor:
    """Bits without any order."""
    return torch.randint(-(1 << 63), (1 << 63) - 1, (words,), dtype=torch.int64,
                         device=place.device, generator=place.generator(first + 1))  # fmt: skip


PATTERNS: tuple[tuple[str, Pattern], ...] = (
    ("address", address),
    ("walking ones", walking),
    ("walking zeros", lambda first, words, place: ~walking(first, words, place)),
    ("random", random),
    ("random inverted", lambda first, words, place: ~random(first, words, place)),
)


def patterns(place: Place, percent: int, budget_s: float) -> Iterator[dict[str, Any]]:
    """One line for each pattern: bytes, words that were not as written, the first of them. As much
    memory is tested as there is, and as all patterns have time for."""
    most = int(_BLOCK_WORDS * max(1.0, budget_s / _all_s(place)))
    blocks = _blocks(place, min(_bytes(place, percent) // 8, most))
    for name, pattern in PATTERNS:
        began = time.monotonic()
        yield {
            "kind": "pattern", "name": name, "bytes": 8 * sum(map(len, blocks)),
            **_round(place, blocks, pattern), "elapsed_s": round(time.monotonic() - began, 3),
        }  # fmt: skip


def _all_s(place: Place) -> float:
    """Seconds that all patterns take on one block, once their kernels are loaded."""
    blocks = _blocks(place, _BLOCK_WORDS)
    for _ in range(2):
        began = time.monotonic()
        for _, pattern in PATTERNS:
            _round(place, blocks, pattern)
        place.wait()
    return time.monotonic() - began


def _blocks(place: Place, words: int) -> list[Tensor]:
    """As much of it as can be had."""
    blocks: list[Tensor] = []
    while words > 0:
        size = min(words, _BLOCK_WORDS)
        try:
            blocks.append(torch.empty(size, dtype=torch.int64, device=place.device))
        except RuntimeError:  # of CUDA too: no memory left
            break
        words -= size
    return blocks


def _bytes(place: Place, percent: int) -> int:
    if place.gpu:
        unused = int(torch.cuda.mem_get_info(place.device)[0])
        return max(0, unused * percent // 100 - _LEFT_BYTES)
    free = available_bytes()  # within the limits of our control groups
    if free is None:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(_HOST_BYTES, free // _HOST_SHARE)


def _round(place: Place, blocks: list[Tensor], pattern: Pattern) -> dict[str, Any]:
    first = 0
    for block in blocks:
        block.copy_(pattern(first, len(block), place))
        first += len(block)
    if blocks:
        inject.stuck_bit(place, blocks[0])
    errors, first = 0, 0
    shown: list[dict[str, Any]] = []
    for block in blocks:
        right = pattern(first, len(block), place)
        wrong = int((block != right).sum())
        if wrong and len(shown) < _SHOWN:
            shown += _first_wrong(block, right, first)
        errors += wrong
        first += len(block)
    return {"errors": errors, "first": shown[:_SHOWN]}


def _first_wrong(block: Tensor, right: Tensor, first: int) -> list[dict[str, Any]]:
    """Where, and which bits: as the device addresses its memory in this process, and from the
    start of what was tested."""
    at = (block != right).nonzero().flatten()[:_SHOWN].tolist()
    return [
        {"address": f"{block.data_ptr() + 8 * one:#x}", "offset": 8 * (first + one),
         "bits": [bit for bit in range(64) if (int(block[one]) ^ int(right[one])) >> bit & 1]}
        for one in at
    ]  # fmt: skip
