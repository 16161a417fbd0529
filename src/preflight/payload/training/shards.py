"""Token shards: files of token ids that are mapped into memory, never read whole.

A shard is a flat file of 16-bit ids (.bin, as nanoGPT and others write it), a NumPy array (.npy) of
one dimension, or an Arrow file (.arrow) with a column of ids, where pyarrow is there. The synthetic
ones are a Markov chain whose entropy is known: the loss cannot fall below it, and a model that
learns comes near.
"""

from __future__ import annotations

import math
import os
import re
import struct
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

#: Tokens that may follow a token, each as likely: so the entropy is ln of it.
SUCCESSORS = 4
#: Of a larger vocabulary so many tokens are used, spread over all of it: what follows each of them
#: is seen often enough in a hundred steps to be learned.
_USED = 256
#: NumPy's name of a type -> torch's, and its size in bytes.
_TYPES = {"<u2": (torch.uint16, 2), "<i4": (torch.int32, 4), "<u4": (torch.int32, 4),
          "<i8": (torch.int64, 8)}  # fmt: skip
#: Arrow's name of a type -> Python's code of it. Ids of 32 bits are below 2^31.
_ARROW_TYPES = {"uint16": "H", "int32": "i", "uint32": "I", "int64": "q"}
_DESCR = re.compile(r"'descr': *'([<|=]?[a-z]\d)'")
_SHAPE = re.compile(r"'shape': *\((\d+),\)")


class ShardError(Exception):
    """A shard that cannot be trained on: what is wrong with it."""


@dataclass(frozen=True)
class Shard:
    """A file and where its tokens lie in it."""

    path: str
    tokens: int
    dtype: Any
    offset_bytes: int = 0
    part: int = -1  # of an Arrow file

    def mapped(self) -> Tensor:
        """All of it as a tensor; nothing is read before it is used."""
        if self.part >= 0:
            return torch.frombuffer(_parts(self.path)[self.part], dtype=self.dtype)
        size = torch.empty(0, dtype=self.dtype).element_size()
        if not self.offset_bytes:
            return torch.from_file(self.path, size=self.tokens, dtype=self.dtype)
        # A tensor's memory begins at a multiple of its size; a .npy's head is one of 64 bytes.
        skipped = self.offset_bytes // size
        return torch.from_file(self.path, size=self.tokens + skipped, dtype=self.dtype)[skipped:]


def floor_nats() -> float:
    """The loss below which nothing that learns from synthetic shards can come."""
    return math.log(SUCCESSORS)


def write_synthetic(folder: str, *, vocabulary: int, tokens: int, shards: int, seed: int) -> None:
    """Write shards of a seeded chain, each whole or not at all."""
    draw = torch.Generator().manual_seed(seed)
    # Every token has as many successors, all of them different, and is the successor of as many: no
    # shortcut, and the entropy is exact.
    used = min(_USED, vocabulary)
    mixed = torch.randperm(used, generator=draw)
    shifts = torch.randperm(used, generator=draw)[:SUCCESSORS]
    follow = torch.stack([mixed.roll(int(shift)) for shift in shifts])
    for number in range(shards):
        ids = _walk(follow, tokens // shards, draw) * (vocabulary // used)
        path = os.path.join(folder, f"synthetic-{number:03d}.bin")  # noqa: PTH118
        data = struct.pack(f"<{len(ids)}H", *ids.tolist())
        Path(f"{path}.part").write_bytes(data)
        os.replace(f"{path}.part", path)  # noqa: PTH105


def _walk(follow: Tensor, tokens: int, draw: torch.Generator) -> Tensor:
    """`tokens` of the chain: many walks side by side, for a step costs the same for all of them."""
    walks = 256
    steps = -(-tokens // walks)
    at = torch.randint(follow.shape[1], (walks,), generator=draw)
    way = torch.randint(follow.shape[0], (steps, walks), generator=draw)
    found = torch.empty(steps, walks, dtype=torch.long)
    for step in range(steps):
        found[step] = at
        at = follow[way[step], at]
    return found.t().flatten()[:tokens]


def open_shards(folder: str, vocabulary: int) -> list[Shard]:
    """The shards of a folder in the order of their names. Raises ShardError with what is wrong."""
    try:
        found = sorted(str(one) for one in Path(folder).iterdir() if one.suffix in _OPENERS)
    except OSError as error:
        raise ShardError(f"{folder}: {error.strerror}") from error
    if not found:
        raise ShardError(f"{folder}: no {', '.join('*' + suffix for suffix in _OPENERS)} in it")
    if vocabulary > 1 << 16 and any(one.endswith(".bin") for one in found):
        raise ShardError(f"{folder}: .bin holds 16-bit ids, and the vocabulary is {vocabulary}")
    return [shard for one in found for shard in _OPENERS[Path(one).suffix](one)]


def _bin(path: str) -> list[Shard]:
    size = os.path.getsize(path)  # noqa: PTH202
    if size % 2 or not size:
        raise ShardError(f"{path}: {size} bytes are no whole number of 16-bit ids: truncated?")
    return [Shard(path, size // 2, torch.uint16)]


def _npy(path: str) -> list[Shard]:
    """The head of format version 1 and 2 (NumPy Enhancement Proposal 1)."""
    with open(path, "rb") as file:  # noqa: PTH123
        begin = file.read(12)
        if begin[:6] != b"\x93NUMPY" or len(begin) < 12:
            raise ShardError(f"{path}: no NumPy file")
        wide = begin[6] > 1
        length = struct.unpack_from("<I" if wide else "<H", begin, 8)[0]
        offset = (12 if wide else 10) + length
        file.seek(12 if wide else 10)
        head = file.read(min(length, 4096)).decode("latin-1")
    descr, shape = _DESCR.search(head), _SHAPE.search(head)
    if not descr or descr[1] not in _TYPES or not shape:
        raise ShardError(f"{path}: expected one dimension of {', '.join(_TYPES)}, got {head[:80]}")
    dtype, size = _TYPES[descr[1]]
    tokens = int(shape[1])
    there = os.path.getsize(path) - offset  # noqa: PTH202
    if there < tokens * size:
        raise ShardError(f"{path}: {there} of {tokens * size} bytes are there: truncated")
    return [Shard(path, tokens, dtype, offset)]


def _arrow(path: str) -> list[Shard]:
    """One for each record batch, so that none is put together in memory."""
    dtypes = {2: torch.uint16, 4: torch.int32, 8: torch.int64}
    return [Shard(path, len(part), dtypes[size], 0, number)
            for number, part in enumerate(_parts(path)) for size in [part.itemsize]]  # fmt: skip


@lru_cache(maxsize=4)
def _parts(path: str) -> list[memoryview]:
    """The ids of each record batch, as they lie in the file."""
    try:
        import pyarrow as arrow
    except ImportError as error:
        raise ShardError(f"{path}: Arrow files need pyarrow, and {sys.executable} has none: "
                         "install it, or give .bin or .npy") from error  # fmt: skip
    try:
        file = arrow.memory_map(path)
        try:
            opened = arrow.ipc.open_file(file)
            batches = [opened.get_batch(number) for number in range(opened.num_record_batches)]
        except arrow.ArrowInvalid:  # as the library datasets writes them
            file.seek(0)
            batches = list(arrow.ipc.open_stream(file))
        return [_ids(path, one) for one in batches if one.num_rows]
    except (arrow.ArrowInvalid, OSError) as error:
        raise ShardError(f"{path}: {str(error).splitlines()[0]}") from error


def _ids(path: str, batch: Any) -> memoryview:
    """The column of ids: by its usual name, or the only one; lists of ids one after the other."""
    names = [one for one in ("input_ids", "tokens", "token_ids") if one in batch.schema.names]
    if not names and batch.num_columns != 1:
        raise ShardError(f"{path}: no column input_ids, tokens or token_ids in it")
    column = batch.column(names[0] if names else 0)
    while hasattr(column, "flatten") and hasattr(column.type, "value_type"):
        column = column.flatten()
    code: Any = _ARROW_TYPES.get(str(column.type))
    if code is None or column.null_count:
        raise ShardError(f"{path}: expected ids of {', '.join(_ARROW_TYPES)} without gaps, got "
                         f"{column.type} with {column.null_count} gaps")  # fmt: skip
    width = struct.calcsize(code)
    data = memoryview(column.buffers()[-1])
    begin = column.offset * width
    return data[begin : begin + len(column) * width].cast("B").cast(code)


_OPENERS = {".bin": _bin, ".npy": _npy, ".arrow": _arrow}
