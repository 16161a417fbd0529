"""What a job read, wrote and trimmed: the figures of its report, in one unit each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from preflight.facts.fio import FioLatency, FioSide
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.fio.options import NO_DEVICE, Asked
from preflight.units import format_bytes

Row = dict[str, Any]
_WAYS = ("read", "write", "trim")
_NO_PERCENTILES = Missing("not-in-input", "its report has no percentiles")
#: fio's `bw` is in KiB.
_KIB = 1024
#: Options that write past the page cache in the end, so that the time of it is counted.
_SYNCS = ("fsync", "fdatasync", "end_fsync", "fsync_on_close", "sync", "sync_file_range")
_PERCENTILES = {"p50_us": "50.000000", "p99_us": "99.000000", "p999_us": "99.900000"}


def sides_of(job: Row, name: str, group: str, asked: Asked, line: int) -> Iterator[FioSide]:
    """One for each way in which the job moved anything, and one for its syncs."""
    moved = [way for way in _WAYS if isinstance(job.get(way), dict) and _moved(job[way])]
    for way in moved:
        yield _side(job, way, f"{name} {way}" if len(moved) > 1 else name, group, asked, line)
    sync = job.get("sync")
    latency = latency_of(sync) if isinstance(sync, dict) else FioLatency()
    if not isinstance(
        latency.mean_us, Missing
    ):  # fio counts no syncs of data alone, and times them
        yield FioSide(f"{name} sync", "sync", group, latency=latency, through="device", line=line)


def _moved(side: Row) -> bool:
    return bool(number(side.get("io_bytes")) or number(side.get("total_ios")))


def number(value: Any) -> float | None:
    """A number that is one."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if plain and math.isfinite(value) else None


def _known(value: float | None) -> Known[float]:
    return NOT_IN_INPUT if value is None else value


def _side(job: Row, way: str, name: str, group: str, asked: Asked, line: int) -> FioSide:
    told = job[way]
    bandwidth, iops, runtime = (
        _bandwidth(told), number(told.get("iops")), number(told.get("runtime"))
    )  # fmt: skip
    block, done = asked.block_bytes(way), _done_bytes(told)
    rw = asked.text("rw", "read")
    return FioSide(
        name, way, group,
        NOT_IN_INPUT if bandwidth is None else bandwidth / 1e6,
        _known(iops),
        NOT_IN_INPUT if done is None else int(done),
        NOT_IN_INPUT if runtime is None else runtime / 1e3,
        latency_of(told), block,
        rw if isinstance(rw, Missing) else rw.startswith("rand"),
        in_flight(asked), _through(way, asked, done), _file_bytes(asked),
        _off(told, block, bandwidth, iops), _where(asked, block), line,
    )  # fmt: skip


def _bandwidth(told: Row) -> float | None:
    """Bytes a second: exact since fio 3.13, in KiB before."""
    exact, kib = number(told.get("bw_bytes")), number(told.get("bw"))
    return exact if exact is not None else None if kib is None else kib * _KIB


def _done_bytes(told: Row) -> float | None:
    """fio 3 tells bytes, and KiB beside them; fio 2 told KiB by the name of bytes."""
    done = number(told.get("io_bytes"))
    return done if done is None or "io_kbytes" in told else done * _KIB


def latency_of(told: Row) -> FioLatency:
    """In microseconds: fio 3 tells nanoseconds, fio 2 microseconds. Where completions have no
    percentiles (lat_percentiles=1) those of the whole time count."""
    for key, per_us in (("clat_ns", 1e3), ("clat", 1.0), ("lat_ns", 1e3), ("lat", 1.0)):
        found = told.get(key)
        if isinstance(found, dict) and (number(found.get("mean")) or number(found.get("max"))):
            percentiles = _percentiles(found) or _percentiles(told.get(f"lat{key[4:]}"))
            each = {
                name: NOT_IN_INPUT if (value := number(found.get(word))) is None else value / per_us
                for name, word in (("mean_us", "mean"), ("max_us", "max"))
            }
            each |= {
                name: _NO_PERCENTILES if value is None else value / per_us
                for name, at in _PERCENTILES.items()
                for value in (number(percentiles.get(at)),)
            }
            return FioLatency(**each)
    return FioLatency()


def _percentiles(told: Any) -> Row:
    found = told.get("percentile") if isinstance(told, dict) else None
    return found if isinstance(found, dict) else {}


def in_flight(asked: Asked) -> Known[int]:
    """Requests on their way at most: of each process, times the processes of the row."""
    reached, jobs = asked.depth_reached(), processes(asked)
    if isinstance(reached, Missing):
        return reached
    return jobs if isinstance(jobs, Missing) else reached * jobs


def processes(asked: Asked) -> Known[int]:
    """Those whose figures the row adds up."""
    grouped = asked.on("group_reporting")
    if isinstance(grouped, Missing):
        return grouped
    return asked.count("numjobs", 1) if grouped else 1


def _through(way: str, asked: Asked, done: float | None) -> Known[str]:
    """What the figures are of. Reads without direct come from memory where that has the file: fio
    drops a file from it first (invalidate), so that a single reading of the whole is the device's.
    """
    engine, direct = asked.text("ioengine", "psync"), asked.direct()
    if isinstance(engine, Missing) or isinstance(direct, Missing):
        return engine if isinstance(engine, Missing) else NOT_IN_INPUT
    if engine in NO_DEVICE:
        return "no device"
    if direct:
        return "device"
    if way != "read":
        return "device" if any(asked.on(one) is True for one in _SYNCS) else "page cache"
    size = _file_bytes(asked)
    if isinstance(size, Missing) or done is None:
        return Missing("not-in-input", "direct=0, and how large its files are is not told")
    once = done <= size and asked.on("invalidate", default=True) is True
    return "device" if once else "page cache"


def _file_bytes(asked: Asked) -> Known[int]:
    """Of the processes of one row: a file that is named is the same one for all of them."""
    size, jobs = asked.size_bytes(), processes(asked)
    if isinstance(size, Missing):
        return size
    return (
        jobs if isinstance(jobs, Missing) else size * (1 if "filename" in asked.options else jobs)
    )


def _off(told: Row, block: Known[int], bandwidth: float | None, iops: float | None) -> Known[float]:
    """How far bandwidth is from IOPS x block, in percent, beyond what their last digits allow."""
    if isinstance(block, Missing):
        return block
    if not bandwidth or not iops or not block:
        return Missing("not-in-input", "its report lacks bandwidth or IOPS")
    exact = number(told.get("bw_bytes")) is not None
    most = bandwidth if exact else bandwidth + _KIB
    high = iops + 1 if float(iops).is_integer() else iops
    low_rate, high_rate = iops * block, high * block
    if bandwidth <= high_rate and low_rate <= most:
        return 0.0
    nearest = bandwidth / high_rate if bandwidth > high_rate else most / low_rate
    return abs(nearest - 1) * 100


def _where(asked: Asked, block: Known[int]) -> str:
    """4 KiB, 16 in flight (libaio, direct)."""
    direct, many, engine = asked.direct(), in_flight(asked), asked.text("ioengine", "psync")
    if isinstance(direct, Missing) or isinstance(many, Missing) or isinstance(engine, Missing):
        return ""
    size = asked.block() if isinstance(block, Missing) else format_bytes(block)
    return f"{size}, {many} in flight ({engine}{', direct' if direct else ', direct=0'})"
