"""Local file systems that a run needs: how full they are, and whether they are still writable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from preflight.errors import ParseError
from preflight.facts.system import Disk
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "disks"

#: Paths that training, its containers and its logs write to.
_PLACES = "/ /tmp /var /var/tmp /var/log /var/lib/docker /var/lib/containerd /var/lib/kubelet"
#: Local kinds: df of one of them waits for no server. overlay is a container's root.
_KINDS = "ext[234]|xfs|btrfs|zfs|f2fs|bcachefs|jfs|overlay|tmpfs|rootfs"

# A share is never touched: one whose server is gone would hold the question for ever. Asked is what
# lies on the way to the places, and a disk that is mounted read-only; what runtimes mount for each
# container, often thousands, is left out first. Of /etc/fstab only whether a mount is to be
# writable is told, and not where it names another kind: an image is mounted there over the disk.
_ASK = f"""\
places="{_PLACES} $HOME $TMPDIR"
matters() {{
  for a in $places; do case $a/ in "${{1%/}}"/*) return ;; esac; done
  return 1
}}
wanted() {{
  while read -r d p k o r; do
    case $d,$p,$k, in
      '#'*) ;;
      *,"$1",*"$2",*|*,"$1",auto,*)
        case ,$o, in *,ro,*) echo "fstab ro $1" ;; *) echo "fstab rw $1" ;; esac ;;
    esac
  done </etc/fstab
}} 2>/dev/null
grep -E '^[^ ]+ [^ ]+ ({_KINDS}) ' /proc/mounts |
grep -v -E '^[^ ]+ (/run|/var/lib/[^ /]+)/' | {{
  set --
  while read -r device point kind options rest; do
    case $options in ro|ro,*) ro=yes ;; *) ro= ;; esac
    matters "$point" || case $kind,$ro in ext*,yes|xfs,yes|btrfs,yes) ;; *) continue ;; esac
    wanted "$point" "$kind"
    echo "mount $kind ${{options%%,*}} $device $point"
    case $point in *\\\\*) point=$(printf %b "$point") ;; esac  # a blank is \\040
    set -- "$@" "$point"
  done
  if [ $# -gt 0 ]; then
    echo space; df -P -k "$@" 2>/dev/null
    echo inodes; df -P -i "$@" 2>/dev/null
  fi
}}
echo end"""

_MOUNT = re.compile(r"mount (\S+) (ro|rw) (\S+) (/.*)")
#: Device, size, used, free, percent, point: of blocks or, with -i, of inodes.
_ROW = re.compile(r".*? ([0-9]{1,20}|-) +([0-9]{1,20}|-) +([0-9]{1,20}|-) +(?:[0-9]+%|-) (/.*)")
_UNREAD = Missing("unreadable", "df told nothing of it")
_SEALED = Missing(
    "not-applicable", "it is mounted read-only and /etc/fstab does not want it otherwise"
)

Row = tuple[str, str, str]


def locate(text: str, start: int, field: str) -> int:
    """The line of df, or of the mount, that shows a field of the record that began at `start`."""
    lines = text.split("\n")
    match = _MOUNT.fullmatch(lines[start - 1].strip()) if start <= len(lines) else None
    part = {"used_percent": "space", "free_bytes": "space", "inodes_used_percent": "inodes"}
    if match is None or part.get(field) not in lines:
        return start
    first = lines.index(part[field]) + 1
    rows = enumerate(lines[first:], first + 1)
    return next((at for at, line in rows if line.rstrip().endswith(f" {match[4]}")), start)


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10, locate=locate)
def disks(text: str) -> Known[tuple[Disk, ...]]:
    """`mount` lines, then df's tables of space and inodes. A device that is mounted in several
    places, as containers do, is told once."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the file systems are cut short: no closing `end`", len(lines))
    fstab = {line[9:]: line.startswith("fstab rw") for line in lines if line.startswith("fstab ")}
    space = dict(_rows(lines, "space"))
    inodes = dict(_rows(lines, "inodes"))
    found: dict[str, Disk] = {}
    for number, line in enumerate(lines, 1):
        if match := _MOUNT.fullmatch(line):
            kind, mode, device, point = match.groups()
            shown = _unescaped(point)
            unwanted = Missing("not-applicable", "/etc/fstab does not name it")
            writable = fstab.get(point, unwanted)
            sealed = mode == "ro" and writable is not True
            disk = _disk(shown, space.get(shown), inodes.get(shown), sealed=sealed)
            # What is mounted over another mount of the same place hides it.
            found[shown] = Disk(shown, device, kind, *disk, mode == "ro", writable, number, _PROBE)
    once = {each.device if each.device.startswith("/") else at: each
            for at, each in reversed(found.items())}  # fmt: skip
    if not found:
        return Missing("not-applicable", "no local file system holds what a run writes")
    return tuple(sorted(once.values(), key=lambda each: each.line))


def _rows(lines: Sequence[str], title: str) -> Iterator[tuple[str, Row]]:
    """The rows of df below a title, by where the file system is mounted."""
    if title not in lines:
        return
    for line in lines[lines.index(title) + 1 :]:
        match = _ROW.fullmatch(line)
        if match:
            yield match[4], (match[1], match[2], match[3])
        elif not line.startswith("Filesystem"):
            return


def _disk(
    point: str, space: Row | None, inodes: Row | None, *, sealed: bool
) -> tuple[Known[int], Known[int], Known[float], Known[float]]:
    """Size, what is free, and the shares of both that are used. An image that is mounted read-only
    is as large as what is in it."""
    told = space is not None and "-" not in space
    size: Known[int] = int(space[0]) * 1024 if space and told else _UNREAD
    if sealed:
        return size, _SEALED, _SEALED, _SEALED
    free: Known[int] = int(space[2]) * 1024 if space and told else _UNREAD
    used = _share(space, f"df told nothing of {point}")
    return size, free, used, _share(inodes, f"df told no inodes of {point}")


def _share(row: Row | None, unread: str) -> Known[float]:
    """As df computes it: of what is used and what is free, root's reserve left out."""
    if row is None:
        return Missing("unreadable", unread)
    if "-" in row or int(row[1]) + int(row[2]) == 0:
        return Missing("not-applicable", "this kind of file system has no fixed number of them")
    return 100 * int(row[1]) / (int(row[1]) + int(row[2]))


def _unescaped(point: str) -> str:
    """/proc/mounts writes a blank as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)
