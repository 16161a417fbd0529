"""Which file systems hold files of people, and who serves them."""

from __future__ import annotations

from preflight.facts.storage import Reach

#: Kinds as the kernel names them, by who serves them. An image (squashfs, iso9660) is not written
#: and not filled; a kind that is not here is one of the kernel's own, or nobody trains from it.
KINDS: dict[Reach, tuple[str, ...]] = {
    "network": (
        "nfs", "nfs4", "lustre", "cifs", "smb3", "ceph", "gpfs", "beegfs", "glusterfs", "wekafs",
        "panfs", "pvfs2", "orangefs", "afs", "ocfs2", "gfs2", "quobyte",
        "fuse.sshfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.juicefs",
        "fuse.JuiceFS", "fuse.s3fs", "fuse.gcsfuse", "fuse.goofys", "fuse.mountpoint-s3",
        "fuse.rclone", "fuse.mfs", "fuse.daos", "fuse.dfuse", "fuse.alluxio-fuse", "fuse.blobfuse",
        "fuse.blobfuse2", "fuse.quobyte", "fuse.objectivefs", "fuse.seaweedfs", "fuse.fuse_dfs",
    ),
    "machine": ("9p", "virtiofs", "vboxsf", "fuse.vmhgfs-fuse"),
    "memory": ("tmpfs", "ramfs"),
    "layered": ("overlay", "aufs", "fuse.fuse-overlayfs", "fuse.overlayfs", "fuse.mergerfs"),
    "local": (
        "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "reiserfs",
        "ntfs3", "fuseblk",
    ),
}  # fmt: skip
REACH_OF: dict[str, Reach] = {kind: reach for reach, kinds in KINDS.items() for kind in kinds}
NFS = ("nfs", "nfs4")
#: Puts another there when somebody looks.
AUTOFS = "autofs"
#: What runtimes mount for each container, and places of the kernel: extended regular expression.
OTHERS = r"/run|/sys|/proc|/dev/(hugepages|mqueue|pts)|/snap|/var/lib/[^ /]+/.*|/run/.*|/sys/.*"


def pattern() -> str:
    """An extended regular expression that is one of them."""
    return "|".join(kind.replace(".", "[.]") for kind in (*REACH_OF, AUTOFS))
