"""The rows of one report as jobs, what they moved, and what those of a group moved together."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.facts.fio import FioDisk, FioJob, FioRun, FioSide, FioTotal
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.fio.documents import Document, Row
from preflight.probes.fio.options import Asked
from preflight.probes.fio.sides import number, processes, sides_of
from preflight.probes.fio.words import in_words

#: What fio's server adds up over its clients.
_ALL = "All clients"
_WAYS = ("read", "write", "trim")
#: What fio says where a signal ended it.
SIGNAL = "terminating on signal"
#: From here on seconds left are what fio says where it does not know.
_NO_TELLING = 2**31 - 1
_MOST_OF = 0.9
#: Shorter than this the start weighs more than the device.
_LEAST_S = 0.5
_SHORT = Missing("not-applicable", "it ran for less than half a second")
_ENDED = Missing("exited", "fio was ended before this job came to its own end")
_IDLE = Missing("exited", "it moved nothing: it did not come to its turn, or had nothing to do")
_CUT = Missing("unreadable", "the text ends before the end of fio's report")


def run_of(document: Document, errors: Sequence[str]) -> FioRun:
    """One report. `errors`: what fio said of errors beside it."""
    told = bool(document.options) or any("job options" in one for one in document.jobs)
    names = _names([_name(one) for one in document.jobs])
    jobs, sides, asked = [], list[FioSide](), list[Asked]()
    lines = [*document.lines, *[document.line] * len(names)]
    for name, row, line in zip(names, document.jobs, lines, strict=False):
        options = row.get("job options")
        asked.append(Asked(document.options | (options if isinstance(options, dict) else {}), told))
        mine = list(sides_of(row, name, _group(row), asked[-1], line))
        sides += mine
        ended, trouble = _end(row, asked[-1], errors, bool(mine), cut=document.cut)
        job = _job(row, name, asked[-1])
        jobs.append(replace(job, ended=ended, trouble=trouble, line=line))
    # fio puts an array before its members.
    disk = str(document.disks[0].get("name", "")) if document.disks else ""
    return FioRun(
        document.version, tuple(jobs), tuple(one for one in sides if one.way != "sync"),
        tuple(one for one in sides if one.way == "sync"), tuple(_totals(sides, jobs, asked, disk)),
        tuple(map(_disk, document.disks)), document.cut, line=document.line,
    )  # fmt: skip


def _name(row: Row) -> str:
    host = row.get("hostname")
    name = str(row.get("jobname") or "job")[:80]
    return f"{name} on {host}" if host and name != _ALL else name


def _names(names: Sequence[str]) -> list[str]:
    """Each once: processes of one job are told one by one without group_reporting."""
    counts, seen, found = Counter(names), Counter[str](), []
    for one in names:
        seen[one] += 1
        found.append(f"{one} {seen[one]}" if counts[one] > 1 else one)
    return found


def _group(row: Row) -> str:
    return str(row.get("groupid", "0"))


def _job(row: Row, name: str, asked: Asked) -> FioJob:
    rw = asked.text("rw", "read")
    named, does = in_words(str(row.get("jobname", "")), rw)
    return FioJob(
        name, _group(row), NOT_IN_INPUT, "", rw, asked.text("ioengine", "psync"), asked.direct(),
        asked.block(), processes(asked), asked.count("iodepth", 1), asked.depth_reached(),
        asked.size_bytes(), named, does, _cpu(row, "usr_cpu"), _cpu(row, "sys_cpu"),
    )  # fmt: skip


def _cpu(row: Row, name: str) -> Known[float]:
    value = number(row.get(name))
    return NOT_IN_INPUT if value is None else value


def _end(
    row: Row, asked: Asked, errors: Sequence[str], moved: bool, *, cut: bool
) -> tuple[Known[bool], str]:
    code = number(row.get("error"))
    if code:
        said = next((one for one in errors if os.strerror(int(code)) in one), "")
        return False, f"error {int(code)}: {said or os.strerror(int(code))}"
    if row.get("jobname") == _ALL:
        return True, ""
    if cut:
        return _CUT, ""
    if _has_time_left(row, asked, signalled=any(SIGNAL in one for one in errors)):
        return _ENDED, ""
    return (True, "") if moved else (_IDLE, "")


def _has_time_left(row: Row, asked: Asked, *, signalled: bool) -> bool:
    """Whether fio was ended before it. Of what took about a second fio cannot tell what is left."""
    left = number(row.get("eta")) or 0.0
    if left and (left < _NO_TELLING or signalled):
        return True
    whole_s = asked.runtime_s()
    sides = [row[way] for way in _WAYS if isinstance(row.get(way), dict)]
    ran_s = max((number(one.get("runtime")) or 0.0 for one in sides), default=0.0) / 1e3
    return asked.on("time_based") is True and 0 < ran_s < _MOST_OF * whole_s


def _disk(row: Row) -> FioDisk:
    util = number(row.get("aggr_util", row.get("util")))
    return FioDisk(str(row.get("name", "")), NOT_IN_INPUT if util is None else util)


def _totals(
    sides: Sequence[FioSide], jobs: Sequence[FioJob], asked: Sequence[Asked], disk: str
) -> Iterator[FioTotal]:
    """Of each group what was read and what was written, by jobs that ran at the same time."""
    of_all = any(one.name == _ALL for one in jobs)
    targets = {job.name: _target(one) for job, one in zip(jobs, asked, strict=True)}
    groups = dict.fromkeys((one.group, one.way) for one in sides if one.way in ("read", "write"))
    for group, way in groups:
        mine = [one for one in sides if (one.group, one.way) == (group, way)]
        if of_all:
            mine = [one for one in mine if one.name.startswith(_ALL)] or mine
        owners = [
            job.name for job in jobs
            if any(one.name in (job.name, f"{job.name} {way}") for one in mine)
        ]  # fmt: skip
        yield _total(mine, way, owners, targets, disk)


def _total(
    mine: Sequence[FioSide], way: str, owners: Sequence[str], targets: dict[str, str], disk: str
) -> FioTotal:
    first = mine[0]
    name = first.name if len(mine) == 1 else f"{owners[0]} and {len(mine) - 1} beside it, {way}"
    short = any(isinstance(one.runtime_s, float) and one.runtime_s < _LEAST_S for one in mine)
    return FioTotal(
        name, way, first.group,
        _SHORT if short else _joined((one.bandwidth_mbps for one in mine), sum),
        _SHORT if short else _joined((one.iops for one in mine), sum),
        _joined((one.block_bytes for one in mine), min),
        _joined((one.random for one in mine), any),
        _joined((one.in_flight for one in mine), sum),
        _joined((one.through for one in mine), _worst),
        next((targets[one] for one in owners if targets.get(one)), ""), disk, first.where,
        first.line,
    )  # fmt: skip


def _worst(found: Iterable[str]) -> str:
    return next((one for one in found if one != "device"), "device")


def _joined(each: Iterable[Any], how: Callable[[list[Any]], Any]) -> Any:
    """All of them by one function; the first that is missing where one is."""
    values = list(each)
    return next((one for one in values if isinstance(one, Missing)), None) or how(values)


def _target(asked: Asked) -> str:
    """Where it works, as the job names it."""
    return asked.options.get("directory", "") or asked.options.get("filename", "")
