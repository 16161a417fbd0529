"""Lists of mounts that people record: `mount`, /proc/mounts, `nfsstat -m`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from preflight.errors import ParseError
from preflight.facts.storage import Mounts
from preflight.model import Known, Missing
from preflight.probes.spec import probe
from preflight.probes.storage.lines import Told, mounts_of, unescaped

#: mount(8): SOURCE on POINT type KIND (OPTIONS); a label may follow.
_MOUNT = re.compile(r"(\S.{0,4000}?) on (/.{0,4000}?) type (\S{1,40}) \((\S{1,8000})\)(?: \[.*\])?")
#: fstab(5), as /proc/mounts has it: SOURCE POINT KIND OPTIONS 0 0.
_TABLE = re.compile(r"(\S{1,4000}) (/\S{0,4000}) (\S{1,40}) (r[wo]\S{0,8000}) \d \d", re.ASCII)
#: nfsstat(8) -m: POINT from SOURCE, then its flags.
_FROM = re.compile(r"(/.{0,4000}) from (\S{1,4000})")
_FLAGS = re.compile(r"Flags:\s+(r[wo]\S{0,8000})")
_NONE = Missing("not-applicable", "no file system that holds files of people is in the list")


@probe("mount", ["mount"])
def mount(text: str) -> Known[Mounts]:
    """A line for each file system."""
    return _read(text, "mount", _of_mount, "`/dev/sda1 on / type ext4 (rw,relatime)`")


@probe("nfsstat-m", ["nfsstat", "-m"])
def nfsstat(text: str) -> Known[Mounts]:
    """Two lines for each file system of NFS: where it is from, and how it is mounted."""
    return _read(text, "nfsstat-m", _of_nfsstat, "`/data from server:/export`")


def _of_mount(lines: Sequence[str]) -> Iterator[Told]:
    for number, line in enumerate(lines, 1):
        if match := _MOUNT.fullmatch(line) or _TABLE.fullmatch(line):
            source, point, kind, options = match.groups()
            words = tuple(options.split(","))
            yield Told(unescaped(point), unescaped(source), kind, words, number)


def _of_nfsstat(lines: Sequence[str]) -> Iterator[Told]:
    place = None
    for number, line in enumerate(lines, 1):
        place = _FROM.fullmatch(line) or place
        if (flags := _FLAGS.fullmatch(line)) and place:
            words = tuple(flags[1].split(","))
            version = "nfs4" if any(word.startswith("vers=4") for word in words) else "nfs"
            yield Told(place[1], place[2], version, words, number)
            place = None


def _read(
    text: str, name: str, told_in: Callable[[Sequence[str]], Iterator[Told]], wanted: str
) -> Known[Mounts]:
    lines = [line.strip() for line in text.split("\n")]
    told = list(told_in(lines))
    if not told:
        raise ParseError(f"expected lines such as {wanted}", 1)
    found = mounts_of(told, name, frozenset())
    return Mounts(found, probe=name) if found else _NONE
