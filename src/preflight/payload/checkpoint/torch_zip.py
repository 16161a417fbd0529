"""Files of torch.save since 1.6: a zip archive of a pickle and of one member for each storage."""

from __future__ import annotations

import zlib
from typing import NamedTuple

from . import held, pickles, zips
from .blocks import Checked, How, check
from .dtypes import BYTES
from .report import Told, named
from .values import Seen
from .window import DamagedError, Window
from .zero_runs import tell_zeros

_STORED = 0
#: What TorchScript and others keep beside the pickle of values.
_SCRIPT = ("constants.pkl", "code/")


class Archive(NamedTuple):
    """An archive of torch: its members by their names in it, and what its pickle holds. `whole`:
    it has its directory."""

    members: dict[str, zips.Member]
    placed: list[held.Placed]
    root: object
    names: tuple[str, ...]
    whole: bool
    end: int


def scan(window: Window, told: Told, how: How) -> None:
    """Fill in what is told of the file; DamagedError where no tensor of it can be named."""
    archive = opened(window, told)
    if archive is None:
        return
    told.names(archive.names)
    told.top = held.top(archive.root)
    if archive.end and archive.end < window.size:
        told.flaw("trailing", f"{window.size - archive.end:,} bytes follow its end",
                  window.base + archive.end)  # fmt: skip
    read = verify(window, archive, told, how)
    for one in archive.placed:
        member = archive.members.get(f"data/{one.storage.key}")
        offset = window.base + member.offset if member is not None else None
        checked, damage = read.get(one.storage.key, (None, "its values are missing"))
        told.tensor(one, offset, checked, damage or _short(one))
    if told.checksum != "verified":
        tell_zeros(window, told)


def opened(window: Window, told: Told) -> Archive | None:
    """The archive with its pickle followed; None where it is a zip archive of something else."""
    try:
        found = zips.directory(window)
    except DamagedError as error:
        told.damaged(error)
        if error.kind == "hostile":
            return None
        members = list(zips.salvaged(window))
        found = zips.Directory(members, 0)
    pickled = next((one for one in found.members if one.name.split("/")[1:] == ["data.pkl"]), None)
    told.kind = "torch-zip" if pickled or found.end == 0 else "zip"
    if pickled is None:
        if found.end == 0:
            raise DamagedError("missing-member", "the pickle that names its tensors is not in it")
        return None
    stem = pickled.name.split("/")[0] + "/"
    members_by_name = {one.name[len(stem) :]: one for one in found.members
                       if one.name.startswith(stem)}  # fmt: skip
    if any(name.startswith(_SCRIPT) for name in members_by_name):
        told.kind = "torchscript"
    if pickled.size < 0:
        raise DamagedError("truncated", "it ends within the pickle that names its tensors")
    if pickled.method != _STORED:
        raise DamagedError("hostile", "its pickle is packed, which torch never does")
    if pickled.size > pickles.MOST_BYTES:
        most = f"at most {pickles.MOST_BYTES:,} are read"
        raise DamagedError("unknown", f"its pickle has {pickled.size:,} bytes, and {most}")
    read = _followed(window, pickled)
    placed = held.tensors(read.value)
    return Archive(members_by_name, placed, read.value, read.names, found.end > 0, found.end)


def _followed(window: Window, pickled: zips.Member) -> pickles.Read:
    """Its pickle; one that is as it was saved, and cannot be followed, is not damaged for that."""
    data = window.read(pickled.offset, pickled.size)
    wrong = bool(pickled.crc) and zlib.crc32(data) != pickled.crc
    try:
        read = pickles.read(data)
    except DamagedError as error:
        kind = "crc" if wrong else "unknown" if error.kind == "pickle" else error.kind
        text, at = f"data.pkl: {error.text}", window.base + pickled.offset
        raise DamagedError(kind, text, at, error.names) from None
    return read


def verify(
    window: Window, archive: Archive, told: Told, how: How
) -> dict[str, tuple[Checked | None, str]]:
    """Every member read; by storage what was seen, and what is wrong with it."""
    members = archive.members
    without = archive.whole and all(one.crc == 0 for one in members.values() if one.size)
    swapped = _big_endian(window, members.get("byteorder"))
    storages = {one.storage.key: one.storage for one in archive.placed}
    users: dict[str, list[str]] = {}
    for one in archive.placed:
        users.setdefault(one.storage.key, []).append(one.name)
    found: dict[str, tuple[Checked | None, str]] = {}
    sums = []
    for key, storage in storages.items():
        member = members.get(f"data/{key}")
        if member is None:
            told.flaw("missing-member", f"the values of {named(users[key])} are not in it")
            continue
        damage = _wrong_size(member, storage)
        checked, wrong = _read(window, member, _looked_at(storage, archive), how, told, without,
                               swapped)  # fmt: skip
        sums.append(checked is not None and checked.crc is not None)
        damage = damage or wrong
        if damage:
            kind = "crc" if damage is wrong else "size"
            kind = "truncated" if member.size < 0 or checked is None else kind
            about = named([one for one in users[key] if one])
            text = f"{about}: {damage}" if about else damage
            told.flaw(kind, text, window.base + member.offset)
        found[key] = checked, damage
    for name, member in members.items():
        if name.partition("/")[2] not in storages or not name.startswith("data/"):
            _, wrong = _read(window, member, "untyped", how, told, without, swapped)
            if wrong:
                told.flaw("crc", f"{name}: {wrong}", window.base + member.offset)
    told.checksum = _checksum(told, without, sums)
    return found


def _looked_at(storage: held.Storage, archive: Archive) -> str:
    """The type of the values: that of its tensors where the storage itself has none."""
    if storage.dtype != "untyped":
        return storage.dtype
    types = {one.dtype for one in archive.placed if one.storage.key == storage.key}
    return types.pop() if len(types) == 1 else "untyped"


def _read(
    window: Window, member: zips.Member, dtype: str, how: How, told: Told, without: bool,
    swapped: bool,
) -> tuple[Checked | None, str]:  # fmt: skip
    if member.size < 0:
        return None, "it is cut short within its values"
    if member.method != _STORED:
        return None, "it is packed, which torch never does"
    try:
        part = window.part(member.offset, member.size)
        checked = check(part, dtype, how, told.runs, swapped)
    except DamagedError as error:
        return None, error.text
    told.checked_bytes += checked.checked
    if without or checked.crc is None or checked.crc == member.crc:
        return checked, ""
    return checked, f"its CRC32 is {checked.crc:08x}, and {member.crc:08x} when it was saved"


def _wrong_size(member: zips.Member, storage: held.Storage) -> str:
    if member.size < 0 or member.size == storage.nbytes:
        return ""
    return f"{storage.nbytes:,} bytes are due, and {member.size:,} are there"


def _checksum(told: Told, without: bool, sums: list[bool]) -> str:
    if without:
        return "off"
    if any(one["kind"] == "crc" for one in told.flaws):
        return "failed"
    return "verified" if all(sums) else "not-looked"


def _short(placed: held.Placed) -> str:
    """What is wrong with its place in the storage; "" where it lies in it."""
    size = BYTES.get(placed.dtype, 1)
    if (placed.offset + placed.reach) * size > placed.storage.nbytes:
        return "it reaches beyond the values that were saved"
    return ""


def _big_endian(window: Window, member: zips.Member | None) -> bool:
    """Values of another byte order than almost all machines have; they are not looked at."""
    import sys

    if member is None or not 0 < member.size <= 16 or member.method != _STORED:
        return False
    return window.read(member.offset, member.size) != sys.byteorder.encode()


def scan_blob(window: Window, told: Told, how: How) -> tuple[Archive | None, Seen, list[str]]:
    """An archive within a file, as DCP writes one for each piece of a tensor: what it holds, what
    was seen of all its values, and what is wrong."""
    before = len(told.flaws)
    archive = opened(window, told)
    seen = Seen()
    if archive is None:
        return None, seen, ["it is no archive of torch"]
    told.names(archive.names)
    for checked, _ in verify(window, archive, told, how).values():
        if checked is not None:
            seen.add(checked.seen)
    return archive, seen, [str(one["text"]) for one in told.flaws[before:]]
