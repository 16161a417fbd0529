"""How texts look that tell of mounts, block devices and their health: rows of signatures.TOOLS."""

from __future__ import annotations

#: Kinds of file system that a list of mounts begins with or holds.
_KIND = (
    r"(?:nfs4?|lustre|cifs|smb3|ceph|gpfs|beegfs|wekafs|9p|virtiofs|tmpfs|devtmpfs|ramfs|overlay"
    r"|ext[234]|xfs|btrfs|zfs|f2fs|proc|sysfs|cgroup2?|devpts|autofs|squashfs|vfat|fuse[\w.-]{0,40})"
)
_OPTIONS = r"r[wo](?:,[\w.=:/@+-]{1,200}){0,80}"
_BLANKS = r"[ \t\n>]{0,40}"

#: As signatures.TOOLS.
TOOLS: dict[str, tuple[str, ...]] = {
    "mountinfo": (
        rf"\d{{1,9}} \d{{1,9}} \d{{1,6}}:\d{{1,9}} /\S{{0,400}} /\S{{0,400}} {_OPTIONS}[ \t]"
        r"[^\n]{0,200}?- \S{1,40} ",
    ),
    "mount": (
        rf"\S{{1,400}} on /[^\n]{{0,400}}? type {_KIND} \({_OPTIONS}",
        rf"\S{{1,400}} /\S{{0,400}} {_KIND} {_OPTIONS} \d \d[ \t]*$",
    ),
    "nfsstat-m": (r"/[^\n]{0,400}? from \S{1,400}:/\S{0,400}[ \t]*\n[ \t>]{0,40}Flags:\s",),
    "mdstat": (r"Personalities :(?: |$)", r"md\w{1,60} : (?:active|inactive) "),
    "quotas": (r"Disk quotas for (?:usr|user|grp|group|prj|project) \S",),
    "lsblk": (rf"\{{{_BLANKS}\"blockdevices\" ?:",),
    "smart": (
        rf"\{{{_BLANKS}(?:\"json_format_version\" ?:|\"smartctl\" ?:)",
        rf"\{{{_BLANKS}\"critical_warning\" ?:",
        r"Smart Log for NVME device:",
    ),
}
#: As signatures.GOES_ON: lines of theirs that others might claim.
GOES_ON: dict[str, str] = {
    "mountinfo": r"\d{1,9} \d{1,9} \d{1,6}:\d{1,9} /",
    "mdstat": r"[ \t]+(?:\d{1,18} blocks|\[[=>.]|bitmap: )|unused devices:",
    "smart": r"[ \t]+[\"{}\[\]]|[}\]]|[\w %]{4,60}?\s{0,60}: ",
    "lsblk": r"[ \t]+[\"{}\[\]]|[}\]]",
}
#: Probe -> what stands in it once, and what is typed for one: as software_signatures.SINGLE.
SINGLE: dict[str, tuple[str, str]] = {
    "lsblk": (r"^[ \t]*(\{\s{0,40}\"blockdevices\")", "lsblk -J"),
    "mdstat": (r"^[ \t]*(Personalities :)", "cat /proc/mdstat"),
}
