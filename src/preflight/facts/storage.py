"""File systems that are mounted, the devices below them, and how these are.

Sizes in bytes, rates of links in Gbit/s (`_gbits`), temperatures in degrees Celsius.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known

#: network: served by other machines; memory: of this machine's memory; local: on its devices;
#: layered: over others, as the root of a container; machine: of the machine below a virtual one.
Reach = Literal["network", "memory", "local", "layered", "machine"]


class Nfs(Struct, frozen=True):
    """How an NFS file system is mounted: nfs(5)."""

    version: Known[str] = NOT_IN_INPUT  # 3 | 4.0 | 4.1 | 4.2
    read_bytes: Known[int] = NOT_IN_INPUT  # rsize: the most that one request reads
    write_bytes: Known[int] = NOT_IN_INPUT  # wsize
    hard: Known[bool] = NOT_IN_INPUT  # asks until the server answers
    transport: Known[str] = NOT_IN_INPUT  # tcp | udp | rdma
    connections: int = 1  # nconnect
    line: int = 0
    probe: str = ""


class Mount(Struct, frozen=True):
    """A file system that holds files of people; name: where it is mounted."""

    name: str  # /data
    source: str  # /dev/nvme0n1p2, server:/export, 10.0.0.1@o2ib:/scratch
    kind: str  # ext4, nfs4, lustre, fuse.sshfs
    reach: Reach
    options: tuple[str, ...] = ()  # of the mount and of the file system
    read_only: bool = False
    atime: str = ""  # relatime | noatime | strictatime | lazytime
    synchronous: bool = False  # every write waits for the device or server
    #: Who sees a lock that is taken in it: all (hosts) | host | none (it is refused).
    locks: Known[str] = NOT_IN_INPUT
    nfs: Known[Nfs] = NOT_IN_INPUT
    device: str = ""  # 259:2, as /sys/block tells it
    root: str = "/"  # which of its directories is mounted
    automounted: bool = False  # by use, so that it is there today and may not be tomorrow
    #: Of those that the network serves: disks are told of in `disks`.
    answers: Known[bool] = NOT_IN_INPUT
    trouble: str = ""  # what it says in place of an answer
    size_bytes: Known[int] = NOT_IN_INPUT
    free_bytes: Known[int] = NOT_IN_INPUT
    used_percent: Known[float] = NOT_IN_INPUT
    inodes_used_percent: Known[float] = NOT_IN_INPUT
    #: Over how many targets of Lustre a new file is spread, and in pieces of which size; -1: all.
    stripes: Known[int] = NOT_IN_INPUT
    stripe_bytes: Known[int] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class CachePlace(Struct, frozen=True):
    """A directory that a variable of the environment names for caches or temporary files."""

    name: str  # HF_HOME
    path: str
    mount: str = ""  # where what it lies on is mounted
    kind: str = ""  # nfs4
    reach: Known[str] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Mounts(Struct, frozen=True):
    """One answer: in the order of the kernel's list. `caches`: not yet placed on a mount."""

    mounts: tuple[Mount, ...]
    caches: Known[tuple[CachePlace, ...]] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""


class BlockDevice(Struct, frozen=True):
    """A disk, a partition of it, or what is put together from others."""

    name: str  # nvme0n1, sda1, md0, dm-0
    kind: str  # nvme | disk | virtual | partition | md | dm | loop | memory | other
    device: str = ""  # 259:0
    size_bytes: Known[int] = NOT_IN_INPUT
    model: Known[str] = NOT_IN_INPUT
    rotational: Known[bool] = NOT_IN_INPUT
    scheduler: Known[str] = NOT_IN_INPUT  # none | mq-deadline | bfq | kyber
    requests: Known[int] = NOT_IN_INPUT  # nr_requests of each of its queues
    read_ahead_bytes: Known[int] = NOT_IN_INPUT
    queue_depth: Known[int] = NOT_IN_INPUT  # of SATA and SAS
    transport: Known[str] = NOT_IN_INPUT  # pcie | sata | sas | usb | tcp | rdma | fc | virtio
    bus_ids: tuple[str, ...] = ()  # of its controllers on PCI: 0000:01:00.0
    link_gbits: Known[float] = NOT_IN_INPUT  # of SATA and SAS: 6.0
    raid_level: Known[str] = NOT_IN_INPUT  # of md: raid0
    raid_disks: Known[int] = NOT_IN_INPUT
    below: tuple[str, ...] = ()  # the devices that it is part of, or is made of
    file: str = ""  # of a loop device
    line: int = 0
    probe: str = ""


class Raid(Struct, frozen=True):
    """An array of Linux' own RAID (md), as /proc/mdstat tells it."""

    name: str  # md0
    level: Known[str] = NOT_IN_INPUT  # raid0 ...
    active: Known[bool] = NOT_IN_INPUT
    disks: Known[int] = NOT_IN_INPUT  # that it should have
    absent: Known[int] = NOT_IN_INPUT  # of these, how many do not work
    failed: tuple[str, ...] = ()  # nvme3n1: marked (F)
    #: recovery | resync | reshape | check, with how far it is; "none".
    work: Known[str] = NOT_IN_INPUT
    work_percent: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class DiskHealth(Struct, frozen=True):
    """What a disk says of itself (SMART), since it was made."""

    name: str  # nvme0, sda
    model: Known[str] = NOT_IN_INPUT
    #: In words; of NVMe by the bits of its critical warning, of others by its own verdict.
    warnings: Known[tuple[str, ...]] = NOT_IN_INPUT
    worn_percent: Known[int] = NOT_IN_INPUT  # of the writes that it is made for; may pass 100
    spare_percent: Known[int] = NOT_IN_INPUT
    spare_least_percent: Known[int] = NOT_IN_INPUT
    media_errors: Known[int] = NOT_IN_INPUT  # data that it could not read or write
    temperature_c: Known[int] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Quota(Struct, frozen=True):
    """What a user or group may use of a file system; only where a limit is set."""

    name: str  # /lustre user alice
    used_bytes: Known[int] = NOT_IN_INPUT
    limit_bytes: Known[int] = NOT_IN_INPUT
    used_percent: Known[float] = NOT_IN_INPUT  # of the limit of bytes
    files_percent: Known[float] = NOT_IN_INPUT  # of the limit of files
    line: int = 0
    probe: str = ""


class Proof(Struct, frozen=True):
    """What was tried in a directory of a file system: of each trial `works`, the name of the error
    (ENOSYS), or in words what was seen instead."""

    name: str  # /data: where it is mounted
    kind: str = ""
    rename: Known[str] = NOT_IN_INPUT
    renames: Known[int] = NOT_IN_INPUT
    fsync: Known[str] = NOT_IN_INPUT
    fsync_n: Known[int] = NOT_IN_INPUT
    fsync_s: Known[float] = NOT_IN_INPUT  # the median of so many blocks of 4 KiB
    fsync_most_s: Known[float] = NOT_IN_INPUT
    directory_fsync: Known[str] = NOT_IN_INPUT
    read_back: Known[str] = NOT_IN_INPUT
    flock: Known[str] = NOT_IN_INPUT  # between two who opened the file
    posix_lock: Known[str] = NOT_IN_INPUT  # between two processes
    direct: Known[str] = NOT_IN_INPUT  # O_DIRECT
    unnamed: Known[str] = NOT_IN_INPUT  # O_TMPFILE
    map: Known[str] = NOT_IN_INPUT
    symlink: Known[str] = NOT_IN_INPUT
    case: Known[str] = NOT_IN_INPUT  # kept | folded
    other_hosts: Known[str] = NOT_IN_INPUT  # what the hosts that share it see of a rename
    other_hosts_s: Known[float] = NOT_IN_INPUT  # until all had seen it
    line: int = 0
    probe: str = ""


class Share(Struct, frozen=True):
    """A file system of the network that is always mounted, for hosts to be compared by."""

    name: str
    source: str = ""
    kind: str = ""
    settings: Known[str] = NOT_IN_INPUT  # vers=4.1 rsize=1048576 hard
    line: int = 0
    probe: str = ""


class Storage(Struct, frozen=True):
    """What a host stores on, by what is asked of it; a list is missing, with the reason, where
    there is nothing of its kind."""

    mounts: Known[tuple[Mount, ...]] = NOT_IN_INPUT
    on_disks: Known[tuple[Mount, ...]] = NOT_IN_INPUT  # on devices of this machine, and written to
    network: Known[tuple[Mount, ...]] = NOT_IN_INPUT
    nfs: Known[tuple[Mount, ...]] = NOT_IN_INPUT
    nfs_written: Known[tuple[Mount, ...]] = NOT_IN_INPUT
    written: Known[tuple[Mount, ...]] = NOT_IN_INPUT  # local and network
    locking: Known[tuple[Mount, ...]] = NOT_IN_INPUT  # of the network: those that tell of locks
    caches: Known[tuple[CachePlace, ...]] = NOT_IN_INPUT
    #: To compare hosts by: empty where there is none.
    shares: Known[tuple[Share, ...]] = NOT_IN_INPUT
    devices: Known[tuple[BlockDevice, ...]] = NOT_IN_INPUT
    nvmes: Known[tuple[BlockDevice, ...]] = NOT_IN_INPUT  # whole disks
    raids: Known[tuple[Raid, ...]] = NOT_IN_INPUT
    health: Known[tuple[DiskHealth, ...]] = NOT_IN_INPUT
    quotas: Known[tuple[Quota, ...]] = NOT_IN_INPUT
    proofs: Known[tuple[Proof, ...]] = NOT_IN_INPUT  # of directories that were written to
