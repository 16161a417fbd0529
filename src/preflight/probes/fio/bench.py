"""The lines of the bundled bench of storage (payload/storage): fio's reports, one for each job."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from preflight.facts.fio import FioDisk, FioJob, FioRun, FioSide, FioTotal
from preflight.facts.patterns import Bench, Pattern
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.fio.cut import asked_of, cut_of, unreached, with_unreached
from preflight.probes.fio.documents import Document, one_document
from preflight.probes.fio.jobs import run_of
from preflight.probes.fio.patterns import of_device, patterns_of
from preflight.probes.fio.report import errors_in
from preflight.probes.spec import probe
from preflight.probes.told import Line, lines_of

PROBE = "io-bench"
FORM = "io-bench/1"
#: Kinds of lines after which nothing was measured.
_REFUSED = ("failed", "cannot", "hung")
_NO_END = Missing("exited", "the bench was ended before this job")


@probe(PROBE, ["python3", "-I", "-", "io"], timeout_s=600)
def io_bench(text: str) -> Bench:
    """All jobs as one run. Raises ParseError for what is none."""
    lines = lines_of(text, FORM)
    first = lines[0]
    told = str(first.get("text", ""))
    if first.get("kind") == "busy":
        return Bench((), 1, PROBE, busy=told)
    if first.get("kind") in ("cannot", "killed"):
        return Bench((), 1, PROBE, cannot=told, lacks_fio=first.get("why") == "no-fio")
    asked, cut = asked_of(first), cut_of(lines)
    patterns = _patterns(first, lines)
    patterns += tuple(unreached(first, patterns, cut, PROBE))
    refused = next((one for one in lines if one.get("kind") in _REFUSED), None)
    if refused and refused.get("why") == "no-fio":
        return Bench((), 1, PROBE, patterns, str(refused.get("text", "")), lacks_fio=True,
                     asked=asked, cut=cut)  # fmt: skip
    run = with_unreached(_run(first, lines), asked, cut, PROBE)
    if refused:
        run = replace(run, jobs=(*run.jobs, _failed(refused)))
    interrupted = any(one.get("kind") == "interrupted" for one in lines)
    return Bench(
        (run,) if run.jobs else (), 1, PROBE, patterns, interrupted=interrupted, asked=asked,
        cut=cut,
    )  # fmt: skip


def _failed(line: Line) -> FioJob:
    """No job could begin, or none after those that are told."""
    said = str(line.get("text", ""))
    trouble = next(iter(errors_in(said)), said[:600])
    return FioJob("fio", "0", ended=False, trouble=trouble, line=line["line"], probe=PROBE)


def _run(first: Line, lines: list[Line]) -> FioRun:
    files = [str(one.get("text", "")) for one in lines if one["kind"] == "job"]
    jobs, sides, syncs = list[FioJob](), list[FioSide](), list[FioSide]()
    totals, disks, version = list[FioTotal](), dict[str, FioDisk](), ""
    for at, one in enumerate(one for one in lines if one["kind"] == "fio"):
        run = _of(one, at, str(first.get("dir", "")), of=of_device(first))
        version = run.version or version
        jobs += run.jobs
        sides += run.sides
        syncs += run.syncs
        totals += run.totals
        for disk in run.disks:
            disks[disk.name] = max(disks.get(disk.name, disk), disk, key=_util)
    return FioRun(
        version, tuple(jobs), tuple(sides), tuple(syncs), tuple(totals), tuple(disks.values()),
        job_file=files[-1] if files else "", place=_place(first), left=_left(lines),
        shared=_shared(first), hosts=_hosts(first), line=first["line"],
    )  # fmt: skip


def _util(disk: FioDisk) -> float:
    return 0.0 if isinstance(disk.util_percent, Missing) else disk.util_percent


def _left(lines: list[Line]) -> str:
    return next((str(one.get("text", "")) for one in lines if one["kind"] == "left"), "")


def _place(first: Line) -> str:
    """/data, xfs on /dev/nvme0n1p1."""
    source = f" on {first['source']}" if first.get("source") else ""
    return f"{first.get('dir', '')}, {first.get('fs', '')}{source}"


def _patterns(first: Line, lines: list[Line]) -> tuple[Pattern, ...]:
    shared, hosts = _shared(first), _hosts(first)
    return tuple(replace(one, shared=shared, hosts=hosts) for one in patterns_of(lines, PROBE))


def _shared(first: Line) -> Known[bool]:
    told = first.get("shared")
    return told if isinstance(told, bool) else NOT_IN_INPUT


def _hosts(first: Line) -> Known[int]:
    plan = first.get("plan")
    told = plan.get("hosts") if isinstance(plan, dict) else None
    return told if isinstance(told, int) and not isinstance(told, bool) else NOT_IN_INPUT


def _of(line: Line, group: int, place: str, *, of: str) -> FioRun:
    """One job: groups of fio are counted from 0 in each of its runs."""
    errors, number = errors_in(str(line.get("said", ""))), line["line"]
    report = line.get("report")
    document = one_document(report) if isinstance(report, dict) else Document(1, "", [], [], {}, [])
    run = run_of(document, errors)
    if not run.jobs:
        return replace(run, jobs=(_lost(line, errors, place),))
    ended = line.get("hung") is not True

    def placed(each: Any) -> Any:
        through = getattr(each, "through", None)
        over = {"through": of} if of == "memory" or through == "device" else {}
        over = {} if through is None else over
        return replace(each, group=f"{group}.{each.group}", line=number, probe=PROBE, **over)

    jobs = [placed(one) for one in run.jobs]
    return replace(
        run, jobs=tuple(one if ended else replace(one, ended=_NO_END) for one in jobs),
        sides=tuple(map(placed, run.sides)), syncs=tuple(map(placed, run.syncs)),
        totals=tuple(replace(placed(one), target=place) for one in run.totals),
    )  # fmt: skip


def _lost(line: Line, errors: list[str], place: str) -> FioJob:
    """A job that left no report."""
    said = next(iter(errors), str(line.get("said", "")).strip()[:300])
    if line.get("hung"):
        said = f"fio did not end in time, and was killed; {said}" if said else (
            f"fio did not end in time, and was killed: {place or 'the file system'} does not answer"
        )  # fmt: skip
    trouble = said or f"fio ended with status {line.get('status')}, and said nothing"
    return FioJob(str(line.get("name", "fio")), str(line["line"]), ended=False, trouble=trouble,
                  line=line["line"], probe=PROBE)  # fmt: skip
