"""Files of torch.save before 1.6: pickles one after the other, then each storage with its length.
The format has no checksum. As torch/serialization.py writes it (_legacy_save)."""

from __future__ import annotations

import struct

from . import held, pickles
from .blocks import Checked, How, check
from .report import Told, named
from .window import DamagedError, Window
from .zero_runs import tell_zeros

#: A pickle of the number 0x1950a86a20f9469cfc6c, in protocol 2.
MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def scan(window: Window, told: Told, how: How) -> None:
    """Fill in what is told of the file; DamagedError where its pickles are cut short."""
    told.kind = "torch-legacy"
    found = []
    at = 0
    # The magic number, the protocol, sizes of this machine, the object, the keys of storages.
    for _ in range(5):
        data = window.read(at, min(pickles.MOST_BYTES, window.size - at))
        try:
            found.append(pickles.read(data))
        except DamagedError as error:
            kind = "truncated" if error.kind == "pickle" else error.kind
            text = f"one of its five pickles cannot be read: {error.text}"
            raise DamagedError(kind, text, at, error.names) from None
        at += found[-1].size
    root, keys = found[3], found[4].value
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise DamagedError("pickle", "the list of its storages is no list of keys", at)
    told.names(root.names)
    told.top = held.top(root.value)
    _storages(window, at, keys, held.tensors(root.value), told, how)
    tell_zeros(window, told)


def _storages(
    window: Window, at: int, keys: list[str], placed: list[held.Placed], told: Told, how: How
) -> None:
    users: dict[str, list[held.Placed]] = {}
    for one in placed:
        users.setdefault(one.storage.key, []).append(one)
    for key in keys:
        here = users.pop(key, [])
        storage = here[0].storage if here else held.Storage(key, "untyped", 0)
        names = named([one.name for one in here]) or f"storage {key}"
        if at + 8 > window.size:
            _cut(window, names, here, told)
            continue
        count = int(struct.unpack("<q", window.read(at, 8))[0])
        size = count * (storage.nbytes // storage.values if storage.values else 1)
        if count < 0 or (here and count != storage.values):
            told.flaw("size", f"{names}: {storage.values:,} values are due, and {count:,} are told",
                      at)  # fmt: skip
            return
        if at + 8 + size > window.size:
            _cut(window, names, here, told)
            at = window.size
            continue
        checked = check(window.part(at + 8, size), storage.dtype, how, told.runs)
        told.checked_bytes += checked.checked
        _tell(here, at + 8, checked, told)
        at += 8 + size
    for left in users.values():
        told.flaw("missing-member", f"the values of {named([one.name for one in left])} are not "
                  "in it")  # fmt: skip
        for one in left:
            told.tensor(one, None, None, "its values are missing")
    if at < window.size:
        told.flaw("trailing", f"{window.size - at:,} bytes follow its last storage", at)


def _tell(here: list[held.Placed], offset: int, checked: Checked, told: Told) -> None:
    for one in here:
        told.tensor(one, offset, checked)


def _cut(window: Window, names: str, here: list[held.Placed], told: Told) -> None:
    told.flaw("truncated", f"{names}: its values are cut short", window.size)
    for one in here:
        told.tensor(one, None, None, "it is cut short")
