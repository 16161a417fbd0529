"""A sosreport, packed or as a folder: the members that can be judged, read in memory and bounded.

Nothing is extracted, no link is followed, and no name in it is used as a path.
"""

from __future__ import annotations

import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from preflight.errors import UsageError
from preflight.model import Raw
from preflight.recognise import recognise
from preflight.unpack import unpacked

#: What is read of one member, of all of them, and what may lie in an archive at most.
MEMBER_BYTES = 256 << 20
TOTAL_BYTES = 512 << 20
ARCHIVE_BYTES = 16 << 30
MEMBERS = 500_000
#: Of packed bytes, to see what is within.
_HEAD_BYTES = 64 << 10

_MARK = "sos_commands"
#: Members whose tool is told by what they hold. sos/report/plugins: kernel, logs, nvidia, pci,
#: ipmitool (with `-I usb` on some), hardware, systemd; any plugin shows the state of its services.
_TOLD = re.compile(
    r"sos_commands/(?:kernel/(?:dmesg[\w.-]*|lsmod)|logs/journalctl_[^/]*|nvidia/nvidia-smi[^/]*"
    r"|pci/lspci[^/]*|ipmitool/ipmitool_[^/]*|hardware/dmidecode[^/]*"
    r"|[\w-]{1,40}/systemctl_(?:status_nvidia[^/]*|status_--all|show_[^/]*service_--all))"
    r"|var/log/(?:messages|syslog|kern\.log|dmesg|fabricmanager\.log)[\w.-]*"
    r"|proc/driver/nvidia/version"
)
#: The state of services ends in lines of their logs, which the logs themselves tell whole.
_STATES = re.compile(r"sos_commands/[\w-]{1,40}/systemctl_")
#: Of several forms of these answers the first counts: names of modules and states stand in it.
_FORMS = ("elist", "list_-v", "")
_ONE_OF = ("ipmi-sel", "ipmi-sdr")
#: Members that are one probe's answer as they are.
_PROBES = {
    "proc/meminfo": "meminfo",
    "etc/os-release": "os-release",
    "usr/lib/os-release": "os-release",
    "sos_commands/processor/lscpu": "lscpu",
}
_HOSTNAMES = ("hostname", "sos_commands/host/hostname", "sos_commands/general/hostname")
#: Lists of the journal that are no log.
_NO_LOG = ("journalctl_--disk-usage", "journalctl_--list-boots")


class Member(NamedTuple):
    """One file of the report; `label` is shown, and never opened."""

    label: str
    raws: list[Raw]


def members(path: Path, bad: list[tuple[str, str]]) -> list[Member]:
    """The members of a sosreport that can be judged; empty where the path is none. `bad` is told of
    those that are cut or cannot be read."""
    if path.is_dir():
        return _read(str(path), _of_folder(path, bad), bad)
    try:
        with path.open("rb") as file:
            return _read(str(path), _of_archive(file, str(path), bad), bad)
    except OSError as error:
        bad.append((str(path), f"cannot be read: {error.strerror}"))
        return []


def members_of(data: bytes, label: str, bad: list[tuple[str, str]]) -> list[Member]:
    """The same of an archive in memory; empty, and `bad` left alone, where it is no sosreport."""
    told: list[tuple[str, str]] = []
    found = _read(label, _of_archive(io.BytesIO(data), label, told), told) if _packed(data) else []
    bad += told if found else []
    return found


def _packed(data: bytes) -> bool:
    """Whether it may be a tar archive: packed with xz or bzip2, or one as it is or within gzip."""
    head = unpacked(data[:_HEAD_BYTES], 512)[0] if data.startswith(b"\x1f\x8b") else data[:512]
    return data.startswith((b"\xfd7zXZ\x00", b"BZh")) or head[257:262] == b"ustar"


def _wanted(name: str) -> bool:
    if name.rpartition("/")[2].startswith(_NO_LOG):
        return False
    return name in _PROBES or name in _HOSTNAMES or _TOLD.fullmatch(name) is not None


def _of_folder(path: Path, bad: list[tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
    """Known names alone are looked for: the folder may be large, and links are left alone."""
    places = ("sos_commands/kernel", "sos_commands/logs", "sos_commands/nvidia",
              "sos_commands/pci", "sos_commands/processor", "sos_commands/host",
              "sos_commands/general", "sos_commands/ipmitool", "sos_commands/hardware",
              "sos_commands/systemd", "proc/driver/nvidia", "var/log", "proc", "etc", "usr/lib",
              "")  # fmt: skip
    for place in places:
        folder = path / place
        if not folder.is_dir() or any(one.is_symlink() for one in _above(folder, path)):
            continue
        for file in sorted(folder.iterdir()):
            name = f"{place}/{file.name}".lstrip("/")
            if _wanted(name) and file.is_file() and not file.is_symlink():
                try:
                    with file.open("rb") as opened:
                        yield name, opened.read(MEMBER_BYTES + 1)
                except OSError as error:
                    bad.append((f"{path}/{name}", f"cannot be read: {error.strerror}"))


def _above(folder: Path, root: Path) -> Iterator[Path]:
    while folder != root:
        yield folder
        folder = folder.parent


def _of_archive(
    packed: BinaryIO, label: str, bad: list[tuple[str, str]]
) -> Iterator[tuple[str, bytes]]:
    """As a stream, so that nothing but what is wanted is held."""
    passed = 0
    try:
        with tarfile.open(fileobj=packed, mode="r|*") as archive:
            for number, member in enumerate(archive):
                passed += member.size
                if passed > ARCHIVE_BYTES or number >= MEMBERS:
                    bad.append((label, "read no further: too large when unpacked"))
                    return
                name = member.name.removeprefix("./").partition("/")[2]
                if member.isreg() and _wanted(name) and (file := archive.extractfile(member)):
                    yield name, file.read(MEMBER_BYTES + 1)
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        bad.append((label, f"is cut short or damaged ({error})"))


def _read(
    label: str, files: Iterator[tuple[str, bytes]], bad: list[tuple[str, str]]
) -> list[Member]:
    found: list[Member] = []
    host, total, sos = "", 0, False
    for name, data in files:
        sos = sos or name.startswith(_MARK)
        where, total = f"{label}:{name}", total + len(data)
        if len(data) > MEMBER_BYTES or total > TOTAL_BYTES:
            bad.append((where, "too large, not read; give this file by itself"))
            total -= len(data)
        elif name in _HOSTNAMES:
            host = host or data[:300].decode(errors="replace").strip().partition(".")[0]
        elif name in _PROBES:
            text = data.decode(errors="replace")
            found.append(Member(where, [Raw("", _PROBES[name], stdout=text, source=where)]))
        else:
            found += _recognised(where, data, ("services",) if _STATES.match(name) else ())
    if not sos:
        return []
    found = list(_best_forms(found))
    host = host if re.fullmatch(r"[\w.-]{1,253}", host) else ""
    named = [[_on(raw, host) for raw in one.raws] for one in found]
    return [Member(one.label, raws) for one, raws in zip(found, named, strict=True)]


def _recognised(where: str, data: bytes, only: tuple[str, ...]) -> list[Member]:
    """Its answers, of these probes `only`; none of what is empty, or of a tool that is unread."""
    try:
        raws = recognise(data, where) if data.strip() else []
    except UsageError:
        return []
    raws = [raw for raw in raws if not only or raw.probe in only]
    return [Member(where, raws)] if raws else []


def _best_forms(found: list[Member]) -> Iterator[Member]:
    """Without the lesser forms of an answer that another member gives in full."""
    best: dict[str, Member] = {}
    for one in sorted(found, key=_form):
        for raw in one.raws:
            best.setdefault(raw.probe, one)
    for one in found:
        raws = [raw for raw in one.raws if raw.probe not in _ONE_OF or best[raw.probe] is one]
        if raws:
            yield Member(one.label, raws)


def _form(one: Member) -> int:
    return next(rank for rank, form in enumerate(_FORMS) if one.label.endswith(form))


def _on(raw: Raw, host: str) -> Raw:
    from msgspec.structs import replace

    return replace(raw, host=host)
