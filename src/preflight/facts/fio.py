"""What fio measured, as fio tells it.

Bandwidth is in 1e6 bytes a second (fio's `bw` is in KiB), time in microseconds.
"""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class FioLatency(Struct, frozen=True):
    """From the submission of a request to its end (fio's clat), else from its start (lat)."""

    mean_us: Known[float] = NOT_IN_INPUT
    p50_us: Known[float] = NOT_IN_INPUT
    p99_us: Known[float] = NOT_IN_INPUT
    p999_us: Known[float] = NOT_IN_INPUT
    max_us: Known[float] = NOT_IN_INPUT


class FioSide(Struct, frozen=True):
    """What one job read, wrote or trimmed; or its syncs, which have a latency alone."""

    name: str  # seq-read; mixed write, where one job does both
    way: str  # read | write | trim | sync
    group: str  # jobs of one group run at the same time
    bandwidth_mbps: Known[float] = NOT_IN_INPUT
    iops: Known[float] = NOT_IN_INPUT
    done_bytes: Known[int] = NOT_IN_INPUT
    runtime_s: Known[float] = NOT_IN_INPUT
    latency: FioLatency = FioLatency()
    block_bytes: Known[int] = NOT_IN_INPUT  # Missing also where blocks are of several sizes
    random: Known[bool] = NOT_IN_INPUT
    in_flight: Known[int] = NOT_IN_INPUT  # requests at most at once
    #: What the figures are of: device | page cache | no device; of our own bench besides memory |
    #: cached image | not known.
    through: Known[str] = NOT_IN_INPUT
    file_bytes: Known[int] = NOT_IN_INPUT  # of all files that it works on
    #: Bandwidth is so far from IOPS x block, beyond what the last digits of both allow.
    off_percent: Known[float] = NOT_IN_INPUT
    where: str = ""  # in words: block, depth, what it went through
    line: int = 0
    probe: str = ""


class FioJob(Struct, frozen=True):
    """One row of fio's report: a job, or with group_reporting all processes of it."""

    name: str
    group: str
    ended: Known[bool] = NOT_IN_INPUT  # without an error, and after I/O
    trouble: str = ""
    rw: Known[str] = NOT_IN_INPUT
    engine: Known[str] = NOT_IN_INPUT
    direct: Known[bool] = NOT_IN_INPUT
    block: Known[str] = NOT_IN_INPUT  # as it was asked for: 4k; 4k,64k; 4k/60:64k/40
    jobs: Known[int] = NOT_IN_INPUT  # processes of this row
    depth: Known[int] = NOT_IN_INPUT  # iodepth, as it was asked for
    depth_reached: Known[int] = NOT_IN_INPUT  # what the engine makes of it
    size_bytes: Known[int] = NOT_IN_INPUT  # of one process
    #: What the name says that it does, and what it does, in the same words; Missing where the name
    #: says nothing.
    named: Known[str] = NOT_IN_INPUT
    does: Known[str] = NOT_IN_INPUT
    user_percent: Known[float] = NOT_IN_INPUT  # of one processor
    system_percent: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class FioTotal(Struct, frozen=True):
    """What all jobs of one group read, or wrote, together: what a device gave at that time."""

    name: str
    way: str  # read | write
    group: str = ""
    bandwidth_mbps: Known[float] = NOT_IN_INPUT
    iops: Known[float] = NOT_IN_INPUT
    block_bytes: Known[int] = NOT_IN_INPUT  # the smallest
    random: Known[bool] = NOT_IN_INPUT
    in_flight: Known[int] = NOT_IN_INPUT
    through: Known[str] = NOT_IN_INPUT
    target: str = ""  # file or directory, as the job names it
    disk: str = ""  # that fio saw at work: of an array the array
    where: str = ""
    line: int = 0
    probe: str = ""


class FioDisk(Struct, frozen=True):
    """A block device meanwhile."""

    name: str
    util_percent: Known[float] = NOT_IN_INPUT  # of an array the busiest member's


class FioRun(Struct, frozen=True):
    """One report."""

    version: str
    jobs: tuple[FioJob, ...] = ()
    sides: tuple[FioSide, ...] = ()
    syncs: tuple[FioSide, ...] = ()
    totals: tuple[FioTotal, ...] = ()
    disks: tuple[FioDisk, ...] = ()
    cut: bool = False
    #: Of the bundled bench: the file of its jobs, and the directory with its file system.
    job_file: str = ""
    place: str = ""
    left: str = ""  # what could not be removed there
    shared: Known[bool] = NOT_IN_INPUT  # whether other hosts may see the same files
    hosts: Known[int] = NOT_IN_INPUT  # so many did this at the same time
    line: int = 1


class Fio(Struct, frozen=True):
    """One answer."""

    runs: tuple[FioRun, ...]
    line: int = 1
    probe: str = ""
