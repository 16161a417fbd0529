"""What the pickle of a torch file holds: tensors with their names, storages, what else it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .dtypes import BYTES
from .pickles import Made, Named, Stored

#: Containers that are looked into, and how deep one lies in another.
_MOST_VISITED, _DEEPEST = 3_000_000, 100
_MOST_TOP = 200


class Storage(NamedTuple):
    """Where values lie: `key` names the member or record that holds them."""

    key: str
    dtype: str
    values: int

    @property
    def nbytes(self) -> int:
        return self.values * BYTES.get(self.dtype, 1)


class Placed(NamedTuple):
    """A tensor, and the part of a storage that it is."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    storage: Storage
    offset: int  # of its first value, in values of its own dtype
    reach: int  # values from there to behind its last

    @property
    def nbytes(self) -> int:
        return _product(self.shape) * BYTES.get(self.dtype, 1)


def tensors(root: Any) -> list[Placed]:
    """Every tensor below the root, once; the name is the way to it."""
    found = []
    stack: list[tuple[str, Any, int]] = [("", root, 0)]
    seen: set[int] = set()
    while stack and len(seen) < _MOST_VISITED:
        name, value, depth = stack.pop()
        placed = placed_of(name, value)
        if placed is not None:
            found.append(placed)
            continue
        if id(value) in seen or depth > _DEEPEST:
            continue
        seen.add(id(value))
        inside = [(key, inner, depth + 1) for key, inner in _inside(name, value)]
        stack.extend(reversed(inside))
    return found


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{name}.{_word(key)}" if name else _word(key), inner
    elif isinstance(value, (list, tuple)):
        for at, inner in enumerate(value):
            if not isinstance(inner, (int, float, str, bytes, type(None))):
                yield f"{name}.{at}" if name else str(at), inner
    elif isinstance(value, Made):
        yield from _inside(name, value.items or {})
        yield from _inside(name, value.entries or [])
        # A parameter is made of a tensor, and has its name.
        for inner in value.args if isinstance(value.args, tuple) else ():
            if isinstance(inner, (Made, dict, list)):
                yield name, inner
        if value.state is not None:
            yield name, value.state


def _word(key: Any) -> str:
    return key if isinstance(key, str) else str(key) if isinstance(key, (int, tuple)) else "?"


def placed_of(name: str, value: Any) -> Placed | None:
    """The tensor that a call of torch's own rebuild functions would make; None for anything else.
    These are _rebuild_tensor, _v2, _v3 and those of quantised ones (torch/_utils.py)."""
    if not isinstance(value, Made) or not value.name.startswith("torch._utils._rebuild_"):
        return None
    args = value.args
    if not isinstance(args, tuple) or len(args) < 4:
        return None
    storage = storage_of(args[0])
    offset, shape, strides = args[1], _numbers(args[2]), _numbers(args[3])
    if storage is None or not isinstance(offset, int) or shape is None or strides is None:
        return None
    dtype = storage.dtype
    if value.name.endswith("_v3") and len(args) > 6 and isinstance(args[6], Named):
        dtype = args[6].name.rpartition(".")[2]
    reach = 0
    if _product(shape) > 0:
        reach = sum((size - 1) * step for size, step in zip(shape, strides)) + 1
    return Placed(name, dtype, shape, storage, offset, reach)


def storage_of(value: Any) -> Storage | None:
    """Of a persistent id ('storage', type, key, device, count)."""
    if not isinstance(value, Stored) or not isinstance(value.id, tuple) or len(value.id) < 5:
        return None
    kind, type_, key, _, count = value.id[:5]
    if kind != "storage" or not isinstance(key, str) or not isinstance(count, int) or count < 0:
        return None
    return Storage(key, _dtype(type_.name if isinstance(type_, Named) else ""), count)


#: Of torch's classes of storages: FloatStorage, torch.cuda.HalfStorage, ...
_CLASSES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16",
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64",
    "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    "QInt8": "qint8", "QUInt8": "quint8", "QInt32": "qint32", "QUInt4x2": "quint4x2",
    "QUInt2x4": "quint2x4", "Untyped": "untyped",
}  # fmt: skip


def _dtype(name: str) -> str:
    return _CLASSES.get(name.rpartition(".")[2].replace("Storage", ""), "untyped")


def _numbers(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, Made) and value.name == "torch.Size":
        value = value.args[0] if value.args else ()
    if not isinstance(value, tuple) or not all(isinstance(one, int) and one >= 0 for one in value):
        return None
    return value


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for one in shape:
        product *= one
    return product


def top(root: Any) -> dict[str, str]:
    """The keys of the outermost dict, each with what stands there in a word or two."""
    items = root.items if isinstance(root, Made) else root
    if not isinstance(items, dict):
        return {"": _told(root)}
    return {_word(key)[:200]: _told(value) for key, value in list(items.items())[:_MOST_TOP]}


def _told(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return f"{type(value).__name__} {value}"[:100]
    if isinstance(value, str):
        return f"str {value[:100]}"
    if placed_of("", value) is not None:
        return "tensor"
    if isinstance(value, Made):
        if value.name in ("collections.OrderedDict", "collections.defaultdict"):
            return f"dict of {len(value.items or ())}"
        if value.name.startswith(("torch._utils._rebuild", "torch._tensor._rebuild")):
            return "tensor"
        return f"object {value.name}"[:200]
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__
