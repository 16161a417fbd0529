"""Which file system a directory is on, by the kernel's table of mounts: nothing is touched."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

#: File systems in memory.
MEMORY = frozenset({"tmpfs", "ramfs"})
#: File systems that several hosts may share. What comes through FUSE may be any.
SHARED = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "beegfs_nodev", "ceph", "wekafs",
     "glusterfs", "9p", "virtiofs", "orangefs", "pvfs2", "panfs", "afs", "ocfs2", "gfs2"}
)  # fmt: skip
#: Files of which belong to whoever mounted it.
OWNERLESS = frozenset({"vfat", "msdos", "exfat", "ntfs3"})
_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """`place`: where it is mounted; `kind`: ext4; `source`: /dev/nvme0n1p1; `options`: those of the
    file system, as the one who mounted it gave them."""

    place: str
    kind: str
    source: str
    options: str = ""


def mount_of(path: str, table: str = "/proc/self/mountinfo") -> Mount:
    """The mount that holds `path`, which is absolute and without links (proc(5))."""
    found = Mount("/", "unknown", "")
    with open(table, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
        for line in file:
            before, dash, after = line.partition(" - ")
            words, told = before.split(" "), after.split()
            if not dash or len(words) < 5 or len(told) < 2:
                continue
            place = _OCTAL.sub(lambda match: chr(int(match[1], 8)), words[4])
            # Of several at one place the last is what is seen.
            if _is_within(path, place) and len(place) >= len(found.place):
                source, options = (
                    _OCTAL.sub(lambda match: chr(int(match[1], 8)), word)
                    for word in (told[1], "".join(told[2:3]))
                )
                found = Mount(place, told[0], source, options)
    return found


def _is_within(path: str, place: str) -> bool:
    return place == "/" or path == place or path.startswith(place.rstrip("/") + "/")


def is_shared(mount: Mount) -> bool:
    """Whether other hosts may see the same files."""
    return mount.kind in SHARED or mount.kind.startswith("fuse")


def is_local_disk(mount: Mount) -> bool:
    """Whether it is this host's own, and not its memory."""
    return not is_shared(mount) and mount.kind not in MEMORY


def free_and_all(path: str) -> tuple[int, int]:
    """Bytes that this user may still write, and bytes of all of the file system."""
    told = os.statvfs(path)
    return told.f_bavail * told.f_frsize, told.f_blocks * told.f_frsize
