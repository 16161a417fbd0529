"""What fio measured, as a table for each report. Figures are fio's, in 1e6 bytes a second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from preflight.facts.fio import FioJob, FioRun, FioSide
from preflight.facts.host import Host
from preflight.facts.patterns import Pattern
from preflight.model import Known, Missing
from preflight.units import format_bytes

Row = dict[str, Any]
#: So many disks at most are named.
_DISKS = 8


def io_tables(host: Host) -> tuple[Row, ...]:
    """A table for each report in which anything was moved."""
    runs = () if isinstance(host.fio_runs, Missing) else host.fio_runs
    tables = []
    for at, run in enumerate(runs, 1):
        every = _in_order(run)
        if not every:
            continue
        title = f"fio {run.version.removeprefix('fio-')}{f', run {at}' if len(runs) > 1 else ''}"
        tables.append(
            {"table": title, "host": host.name, "rows": [_row(one) for one in every],
             "notes": list(_notes(run)), "numbers": {one.name: _numbers(one) for one in every}}
            | ({"job_file": run.job_file} if run.job_file else {}) | for_programs(every, run)
        )  # fmt: skip
    return tuple(tables)


def for_programs(rows: Sequence[FioSide | Pattern], of: FioRun | Pattern) -> Row:
    """What each row does; whose storage it is, and how many hosts measured it at the same time."""
    told = {"shared": of.shared, "hosts": of.hosts}
    place = {name: value for name, value in told.items() if not isinstance(value, Missing)}
    return {"ways": {one.name: one.way for one in rows}, **({"place": place} if place else {})}


def _in_order(run: FioRun) -> list[FioSide]:
    """As the jobs stand in the report, syncs behind what they are of."""
    return sorted((*run.sides, *run.syncs), key=lambda one: one.line)


def _row(side: FioSide) -> Row:
    """With more digits than are shown: a number is rounded once, as that of a check is."""
    return {
        "job": side.name, "MB/s": _figure(side.bandwidth_mbps), "IOPS": _figure(side.iops),
        "us, mean": _figure(side.latency.mean_us), "50 %": _figure(side.latency.p50_us),
        "99 %": _figure(side.latency.p99_us), "99.9 %": _figure(side.latency.p999_us),
        "block": _block(side), "in flight": _told(side.in_flight), "of": _told(side.through),
    }  # fmt: skip


def _figure(value: Known[float]) -> float | str:
    return "" if isinstance(value, Missing) else float(f"{value:.7g}")


def _block(side: FioSide) -> str:
    return "" if isinstance(side.block_bytes, Missing) else format_bytes(side.block_bytes)


def _told(value: Known[int] | Known[str]) -> int | str:
    return "" if isinstance(value, Missing) else value


def _ways(run: FioRun) -> str:
    """io_uring, direct: seq-read, seq-write; psync, through the page cache: log."""
    found: dict[str, list[str]] = {}
    for one in run.jobs:
        if not isinstance(one.engine, Missing) and not isinstance(one.direct, Missing):
            how = "direct" if one.direct else "direct=0"
            found.setdefault(f"{one.engine}, {how}", []).append(one.name)
    return "; ".join(f"{way}: {', '.join(names)}" for way, names in found.items())


def _numbers(side: FioSide) -> dict[str, float]:
    """All digits, for programs."""
    latency = side.latency
    told = {
        "bandwidth_mbps": side.bandwidth_mbps, "iops": side.iops, "done_bytes": side.done_bytes,
        "runtime_s": side.runtime_s, "mean_us": latency.mean_us, "p50_us": latency.p50_us,
        "p99_us": latency.p99_us, "p999_us": latency.p999_us, "max_us": latency.max_us,
        "block_bytes": side.block_bytes, "random": side.random,
    }  # fmt: skip
    return {name: value for name, value in told.items() if not isinstance(value, Missing)}


def _left(run: FioRun) -> str:
    if not run.left:
        return "removed afterwards"
    return f"left there: {run.left}; the next run there removes it"


def _notes(run: FioRun) -> Iterator[str]:
    yield "MB/s of 1e6 bytes; us: of a request from its submission to its end"
    if ways := _ways(run):
        yield ways
    if run.place:
        yield f"in {run.place}; {_left(run)}"
    cpu = [text for one in run.jobs if (text := _cpu(one))]
    if cpu:
        yield f"processor, of one core: {'; '.join(cpu)}"
    disks = [
        f"{one.name} {one.util_percent:.0f} %" for one in run.disks
        if not isinstance(one.util_percent, Missing)
    ]  # fmt: skip
    if disks:
        more = f" and {len(disks) - _DISKS} more" if len(disks) > _DISKS else ""
        yield f"busy meanwhile: {', '.join(disks[:_DISKS])}{more}"
    sizes = {
        format_bytes(one.size_bytes) for one in run.jobs if not isinstance(one.size_bytes, Missing)
    }
    if sizes:
        yield f"on files of {', '.join(sorted(sizes))}"
    if written := sum(_bytes_written(run)):
        yield f"written in all: {format_bytes(written)}"
    if run.cut:
        yield "the report has no end: what is told is of before"


def _bytes_written(run: FioRun) -> Iterator[int]:
    """What wears flash: files that are written again and again count each time."""
    for one in run.sides:
        if one.way == "write" and not isinstance(one.done_bytes, Missing):
            yield one.done_bytes


def _cpu(job: FioJob) -> str:
    user, system = job.user_percent, job.system_percent
    if isinstance(user, Missing) or isinstance(system, Missing):
        return ""
    return f"{job.name} {user:.0f} % user, {system:.0f} % system"
