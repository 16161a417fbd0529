"""What training-shaped patterns of the bundled bench of storage measured (payload/storage).

Bandwidth is in 1e6 bytes a second, time of one block, file or call in microseconds.
"""

from __future__ import annotations

from msgspec import Struct

from preflight.facts.fio import Fio, FioLatency
from preflight.model import NOT_IN_INPUT, Known

#: What a bench measures, by default all; the names of payload/storage/patterns.py, in its order.
PATTERNS = ("fio", "dataloader", "small-files", "checkpoint")


class Pattern(Struct, frozen=True):
    """One row: a part or variant of a pattern."""

    name: str  # checkpoint save, direct: pattern and part, unlike any other
    pattern: str  # dataloader | small-files | checkpoint
    part: str
    way: str  # read | write | files
    ended: Known[bool] = NOT_IN_INPUT  # without an error
    trouble: str = ""
    processes: Known[int] = NOT_IN_INPUT
    block_bytes: Known[int] = NOT_IN_INPUT
    done_bytes: Known[int] = NOT_IN_INPUT
    elapsed_s: Known[float] = NOT_IN_INPUT
    count: Known[int] = NOT_IN_INPUT  # of blocks, files or calls
    bandwidth_mbps: Known[float] = NOT_IN_INPUT
    rate: Known[float] = NOT_IN_INPUT  # blocks, files or calls a second
    latency: FioLatency = FioLatency()
    through: Known[str] = NOT_IN_INPUT  # device | page cache | memory | cached image | not known
    slowest_mbps: Known[float] = NOT_IN_INPUT  # the slowest process
    wrong: Known[int] = NOT_IN_INPUT  # blocks that are not what was written
    # Of saves, else not applicable.
    durable_s: Known[float] = NOT_IN_INPUT  # until the last directory was on the device
    stall_s: Known[float] = NOT_IN_INPUT  # until the last call that writes had returned
    sync_s: Known[float] = NOT_IN_INPUT  # the longest fsync of a file
    reached_percent: Known[float] = NOT_IN_INPUT  # of it the device was given meanwhile
    cached_bytes: Known[int] = NOT_IN_INPUT  # of the page cache that it left full
    read_back: Known[str] = NOT_IN_INPUT  # device | page cache | memory: where it came from
    # Of somebody who reads windows of 128 KiB: alone, and while others write.
    reader_alone_mbps: Known[float] = NOT_IN_INPUT
    reader_mbps: Known[float] = NOT_IN_INPUT
    reader_kept_percent: Known[float] = NOT_IN_INPUT
    reader_starved_s: Known[float] = NOT_IN_INPUT  # so long it got less than a tenth
    # Of several hosts that did it at once, in one directory.
    hosts_mbps: tuple[tuple[str, float], ...] = ()
    apart_s: Known[float] = NOT_IN_INPUT  # from the first that began to the last, by their clocks
    note: str = ""
    place: str = ""  # the directory
    # Of a loader that reads data past the page cache, else not applicable.
    brought_times: Known[float] = NOT_IN_INPUT  # bytes that came from the device for one of them
    of_read_percent: Known[float] = NOT_IN_INPUT  # a map's rate in that of read
    demand_mbps: Known[float] = NOT_IN_INPUT  # what the user said that the host needs
    network: Known[bool] = NOT_IN_INPUT  # other hosts may see the same files
    line: int = 0
    probe: str = ""
    shared: Known[bool] = NOT_IN_INPUT  # whether other hosts may see the same files
    hosts: Known[int] = NOT_IN_INPUT  # so many did this at the same time


class Bench(Fio, frozen=True):
    """What the bundled bench of storage told: fio's reports, and of where."""

    patterns: tuple[Pattern, ...] = ()
    cannot: str = ""  # why nothing was measured
    busy: str = ""  # whose work it did not disturb
    lacks_fio: bool = False
    interrupted: bool = False
    asked: tuple[str, ...] = ()  # of PATTERNS, what its plan measures
    cut: str = ""  # by what it was ended before its end
