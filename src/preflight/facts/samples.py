"""Figures of GPUs or disks that somebody recorded beside a run."""

from __future__ import annotations

from msgspec import Struct

from preflight.facts.watch import Watch
from preflight.model import NOT_IN_INPUT, Known


class GpuSamples(Struct):
    """A table of nvidia-smi dmon or dcgmi dmon."""

    source: str
    watch: Watch


class DiskLoad(Struct, frozen=True):
    """A block device over the reports of iostat: medians of reports in which it did something."""

    name: str
    reports: int  # in which it is
    busy: int  # of them, in which a request was in flight
    line: int  # of the busiest report's row
    util_percent: Known[float] = NOT_IN_INPUT
    read_await_ms: Known[float] = NOT_IN_INPUT
    write_await_ms: Known[float] = NOT_IN_INPUT
    queue: Known[float] = NOT_IN_INPUT  # requests in flight, mean
    reads_per_s: Known[float] = NOT_IN_INPUT
    read_mbps: Known[float] = NOT_IN_INPUT
    write_mbps: Known[float] = NOT_IN_INPUT
    #: Of all reports, those in which it was held up: see logs/samples/iostat.
    held_up: int = 0


class DiskSamples(Struct):
    """Reports of `iostat -x`. `since_boot`: the only report is the mean since the machine began."""

    source: str
    devices: tuple[DiskLoad, ...] = ()
    reports: int = 0
    since_boot: bool = False
    truncated: bool = False
