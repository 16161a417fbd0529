"""The members of a zip archive, from its central directory (APPNOTE.TXT of PKWARE, 4.3): only
where they lie. Nothing is inflated and no name becomes a path."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from .window import DamagedError, Window

LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END64, _LOCATOR = b"PK\x06\x06", b"PK\x06\x07"
_DESCRIPTOR = b"PK\x07\x08"
_END_SIZE, _LONGEST_COMMENT = 22, 65535
_LARGEST_DIRECTORY, _MOST_MEMBERS = 128 << 20, 2_000_000
_FULL = 0xFFFFFFFF
_STORED = 0
#: Of the attributes that MS-DOS gave a file.
_FOLDER = 0x10


class Member(NamedTuple):
    """A file of the archive. `offset`: of its bytes; `header`: of what stands before them."""

    name: str
    crc: int
    size: int
    packed: int
    method: int
    header: int
    offset: int = -1


class Directory(NamedTuple):
    """All members, in the order in which they lie; `end`: behind the end record."""

    members: list[Member]
    end: int


class _End(NamedTuple):
    """What the records at the end say of the directory; `at`: where they begin, `end`: where the
    archive does."""

    members: int
    size: int
    offset: int
    at: int
    end: int


def directory(window: Window) -> Directory:
    """DamagedError where there is none (the archive is cut short), or it contradicts itself."""
    end = _end_record(window)
    if end.size > _LARGEST_DIRECTORY or end.members > _MOST_MEMBERS:
        text = f"a directory of {end.members:,} members in {end.size:,} bytes"
        raise DamagedError("hostile", text, end.at)
    if end.offset + end.size != end.at:
        raise DamagedError("header", "its directory does not lie before its end", end.at)
    listed = list(_members(window.read(end.offset, end.size), end.offset))
    found = sorted(listed, key=lambda one: one.header)
    if len(found) != end.members:
        text = f"its directory has {len(found)} of {end.members} members"
        raise DamagedError("header", text, end.offset)
    members = [one._replace(offset=_data_of(window, one)) for one in found]
    _hold(members, end.offset)
    return Directory(members, end.end)


def _end_record(window: Window) -> _End:
    """With the one for large archives, which torch always writes, where that is there."""
    tail = min(window.size, _END_SIZE + _LONGEST_COMMENT)
    data = window.read(window.size - tail, tail)
    at = data.rfind(_END)
    if at < 0 or at + _END_SIZE > len(data):
        raise DamagedError("truncated", "its end is missing: a zip archive ends in its directory",
                           window.base + window.size)  # fmt: skip
    *disks, here, count, size, offset, comment = struct.unpack_from("<HHHHIIH", data, at + 4)
    place = window.size - tail + at
    small = _End(count, size, offset, place, place + _END_SIZE + comment)
    locator = window.read(place - 20, 20) if place >= 20 else b""
    if locator[:4] == _LOCATOR:
        large = _end_record64(window, locator, place)._replace(end=small.end)
        alike = zip(small[:3], large[:3], (0xFFFF, _FULL, _FULL))
        wrong = any(one not in (other, full) for one, other, full in alike)
    else:
        large, wrong = small, _FULL in (size, offset) or count == 0xFFFF
    if wrong or any(disks) or here != count or small.end > window.size:
        raise DamagedError("header", "the record at its end is damaged", window.base + place)
    return large


def _end_record64(window: Window, locator: bytes, place: int) -> _End:
    disk, at, disks = struct.unpack_from("<IQI", locator, 4)
    record = window.read(at, 56)
    length = struct.unpack_from("<Q", record, 4)[0]
    one, other, here, count, size, offset = struct.unpack_from("<IIQQQQ", record, 16)
    torn = record[:4] != _END64 or at + 12 + length != place - 20
    if torn or disk or one or other or disks != 1 or here != count:
        raise DamagedError("header", "the record of its size is damaged", window.base + place)
    return _End(count, size, offset, at, 0)


def _members(data: bytes, base: int) -> Iterator[Member]:
    at = 0
    while at + 46 <= len(data):
        if data[at : at + 4] != _CENTRAL:
            raise DamagedError("header", "its directory is damaged", base + at)
        method, _, _, crc, packed, size = struct.unpack_from("<HHHIII", data, at + 10)
        lengths = struct.unpack_from("<HHH", data, at + 28)
        header = struct.unpack_from("<I", data, at + 42)[0]
        name = data[at + 46 : at + 46 + lengths[0]].decode("utf-8", "replace")
        extra = data[at + 46 + lengths[0] : at + 46 + lengths[0] + lengths[1]]
        size, packed, header = _wide(extra, size, packed, header)
        _hold_entry(data[at : at + 46], name, base + at, method == _STORED and packed != size)
        yield Member(name, crc, size, packed, method, header)
        at += 46 + sum(lengths)
    if at != len(data):
        raise DamagedError("header", "its directory is damaged", base + len(data))


def _hold_entry(entry: bytes, name: str, offset: int, unlike: bool) -> None:
    """An entry that says what no file of torch has: encrypted, on another disk, a folder, or two
    sizes for what is stored as it is."""
    flags, disk = struct.unpack_from("<H", entry, 8)[0], struct.unpack_from("<H", entry, 34)[0]
    if flags & 1 or disk not in (0, 0xFFFF) or entry[38] & _FOLDER or unlike:
        raise DamagedError("header", f"the entry of {name} in its directory is damaged", offset)


def _wide(extra: bytes, *narrow: int) -> tuple[int, ...]:
    """Sizes of more than 32 bits stand in an extra field, those that are full, in this order."""
    values, at = list(narrow), 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            wide = [struct.unpack_from("<Q", extra, at + 4 + one)[0]
                    for one in range(0, min(size, len(extra) - at - 4) - 7, 8)]  # fmt: skip
            for place, value in enumerate(values):
                if value == _FULL and wide:
                    values[place] = wide.pop(0)
        at += 4 + size
    return tuple(values)


def _data_of(window: Window, member: Member) -> int:
    """Where its bytes begin: behind its own header, which has the name once more, and an extra
    field of another length than in the directory."""
    header = window.read(member.header, 30)
    length = struct.unpack_from("<H", header, 26)[0]
    name = window.read(member.header + 30, length).decode("utf-8", "replace")
    if header[:4] != LOCAL or name != member.name:
        raise DamagedError("header", f"the header of {member.name} is damaged",
                      window.base + member.header)  # fmt: skip
    return member.header + 30 + int(length) + int(struct.unpack_from("<H", header, 28)[0])


def _hold(members: list[Member], directory_at: int) -> None:
    """Refuse what no honest archive of tensors has."""
    names = set()
    for one, after in zip(members, [*members[1:], None]):
        if one.name in names:
            raise DamagedError("hostile", f"two members are called {one.name}", one.header)
        names.add(one.name)
        parts = one.name.replace("\\", "/").split("/")
        if ".." in parts or one.name.startswith("/") or "\0" in one.name:
            raise DamagedError("hostile", f"a member's name leads out of the archive: {one.name}",
                          one.header)  # fmt: skip
        limit = after.header if after is not None else directory_at
        if one.offset + one.packed > limit:
            raise DamagedError("overlap", f"{one.name} reaches into what follows it", one.header)


def salvaged(window: Window) -> Iterator[Member]:
    """Members of an archive without directory, for as long as one follows the other. Their sizes
    stand behind them, so that the next header has to be looked for by whoever knows the sizes:
    only name and place are told."""
    at = 0
    while at + 30 <= window.size:
        header = window.read(at, 30)
        if header[:4] != LOCAL:
            return
        flags, method, _, _, crc, packed, size = struct.unpack_from("<HHHHIII", header, 6)
        lengths = struct.unpack_from("<HH", header, 26)
        if at + 30 + sum(lengths) > window.size:
            return
        name = window.read(at + 30, lengths[0]).decode("utf-8", "replace")
        begin = at + 30 + sum(lengths)
        if flags & 8:
            found = _described(window, begin)
            if found is None:
                yield Member(name, 0, -1, -1, method, at, begin)
                return
            crc, size, behind = found
            packed = size
        else:
            behind = begin + packed
        yield Member(name, crc, size, packed, method, at, begin)
        at = behind


#: How far the record behind a member is looked for at once.
_STEP = 1 << 20


def _described(window: Window, begin: int) -> tuple[int, int, int] | None:
    """CRC and size of the member that begins there, and where the next one does, from the record
    behind it: the first whose size fits its place. None where the file ends before."""
    at = begin
    while at < window.size:
        data = window.read(at, min(_STEP + 24, window.size - at))
        found = data.find(_DESCRIPTOR)
        while found >= 0:
            for form in ("<II", "<QQ"):
                width = struct.calcsize(form)
                if found + 8 + width <= len(data):
                    crc = struct.unpack_from("<I", data, found + 4)[0]
                    packed, size = struct.unpack_from(form, data, found + 8)
                    if packed == size == at + found - begin:
                        return crc, size, at + found + 8 + width
            found = data.find(_DESCRIPTOR, found + 1)
        at += _STEP
    return None
