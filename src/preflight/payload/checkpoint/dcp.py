"""Checkpoints of torch.distributed.checkpoint: a folder of `.metadata`, which says where each piece
of each tensor lies, and of files that hold the pieces, each an archive of torch.save."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import pickles
from .pickles import Made
from .window import DamagedError, Window

METADATA = ".metadata"
_MOST_PIECES = 3_000_000


class Piece(NamedTuple):
    """Where the bytes of a piece lie; `at` in the whole tensor, () of what is no tensor."""

    name: str
    file: str
    offset: int
    size: int
    at: tuple[int, ...]
    packed: bool  # by an extension, such as zstd: what lies there is no archive


class Whole(NamedTuple):
    """A tensor as `.metadata` describes it, and its pieces (where it begins, its shape)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    chunks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


class Described(NamedTuple):
    """All that `.metadata` says."""

    tensors: dict[str, Whole]
    others: tuple[str, ...]  # what is no tensor
    pieces: tuple[Piece, ...]
    names: tuple[str, ...]


def described(window: Window) -> Described:
    """DamagedError where it is no such pickle."""
    if window.size > pickles.MOST_BYTES:
        raise DamagedError("unknown", f"it has {window.size:,} bytes, and at most "
                      f"{pickles.MOST_BYTES:,} are read")  # fmt: skip
    read = pickles.read(window.read(0, window.size))
    try:
        return _described(read)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        text = f"its pickle holds something else than it has to: {error}"
        raise DamagedError("pickle", text, None, read.names) from None


def _described(read: pickles.Read) -> Described:
    root = read.value
    if not isinstance(root, Made) or not root.name.endswith("checkpoint.metadata.Metadata"):
        text = "it is no description of a distributed checkpoint"
        raise DamagedError("pickle", text, None, read.names)
    state = _fields(root)
    kept = state.get("state_dict_metadata")
    tensors: dict[str, Whole] = {}
    others = []
    for name, value in kept.items() if isinstance(kept, dict) else ():
        whole = _whole(str(name), value)
        if whole is not None:
            tensors[str(name)] = whole
        else:
            others.append(str(name))
    pieces = tuple(_pieces(state.get("storage_data")))
    return Described(tensors, tuple(others), pieces, read.names)


def _fields(value: Any) -> dict[str, Any]:
    """Of a dataclass: its state, which with slots is a pair of which the second is meant."""
    state = value.state if isinstance(value, Made) else None
    if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
        state = state[1]
    return state if isinstance(state, dict) else {}


def _whole(name: str, value: Any) -> Whole | None:
    fields = _fields(value)
    shape = numbers(fields.get("size"))
    if shape is None:
        return None
    chunks = []
    for chunk in fields.get("chunks") or ():
        inner = _fields(chunk)
        at, size = numbers(inner.get("offsets")), numbers(inner.get("sizes"))
        if at is None or size is None or len(at) != len(shape) or len(size) != len(shape):
            raise DamagedError("pickle", f"the pieces of {name[:200]} cannot be read")
        chunks.append((at, size))
    return Whole(name, _dtype(fields.get("properties")), shape, tuple(chunks))


def _dtype(properties: Any) -> str:
    state = properties.state if isinstance(properties, Made) else None
    named = state[0] if isinstance(state, tuple) and state else _fields(properties).get("dtype")
    return named.name.rpartition(".")[2] if isinstance(named, pickles.Named) else "untyped"


def numbers(value: Any) -> tuple[int, ...] | None:
    """A torch.Size, or a tuple of whole numbers; None for anything else."""
    if isinstance(value, Made):
        value = value.args[0] if isinstance(value.args, tuple) and value.args else ()
    if not isinstance(value, (tuple, list)):
        return None
    found = tuple(value)
    return found if all(type(one) is int and 0 <= one < 2**63 for one in found) else None


def _pieces(kept: Any) -> Iterator[Piece]:
    if not isinstance(kept, dict) or len(kept) > _MOST_PIECES:
        raise DamagedError("pickle", "it does not say where the pieces lie")
    for index, info in kept.items():
        key, fields = _fields(index), _fields(info)
        name, at = str(key.get("fqn")), numbers(key.get("offset"))
        file, offset, size = (fields.get(word) for word in ("relative_path", "offset", "length"))
        if not isinstance(file, str) or not isinstance(offset, int) or not isinstance(size, int):
            raise DamagedError("pickle", f"where {name[:200]} lies cannot be read")
        if os.path.isabs(file) or ".." in file.split("/"):
            raise DamagedError("hostile", f"{name[:200]} is said to lie outside: {file[:200]}")
        packed = bool(fields.get("transform_descriptors"))
        yield Piece(name, file, offset, size, at or (), packed)


def tiling(whole: Whole) -> str:
    """What is wrong with how the pieces cover the tensor; "" where they do so exactly. Their sizes
    sum up to its own, none reaches out, and no two overlap: then there is no hole."""
    total = 0
    for at, size in whole.chunks:
        if any(begin + length > most for begin, length, most in zip(at, size, whole.shape)):
            return f"a piece at {list(at)} reaches beyond its shape {list(whole.shape)}"
        total += _product(size)
    due = _product(whole.shape)
    twice = _overlapping(whole.chunks)
    if twice:
        return f"pieces at {list(twice[0])} and {list(twice[1])} overlap"
    if total < due:
        return f"{due - total:,} of its {due:,} values are in no piece"
    return ""


def _overlapping(
    chunks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...],
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """By a sweep along the axis that tells most of them apart: only pieces that share a part of it
    are compared."""
    filled = [one for one in chunks if _product(one[1])]
    if len(filled) < 2:
        return None
    if not filled[0][0]:
        return (), ()
    axis = max(range(len(filled[0][0])), key=lambda one: len({at[one] for at, _ in filled}))
    open_: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for at, size in sorted(filled, key=lambda one: one[0][axis]):
        open_ = [one for one in open_ if one[0][axis] + one[1][axis] > at[axis]]
        for other_at, other_size in open_:
            if all(a < c + d and c < a + b
                   for a, b, c, d in zip(at, size, other_at, other_size)):  # fmt: skip
                return other_at, at
        open_.append((at, size))
    return None


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for one in shape:
        product *= one
    return product


def is_metadata(name: str) -> bool:
    """Whether it is `.metadata`, one that was not finished, or that of one rank."""
    rank = name[2:].partition(".")[0]
    return name in (METADATA, f"{METADATA}.tmp") or (
        name.startswith("__") and name.endswith(".metadata") and rank.isdecimal()
    )
