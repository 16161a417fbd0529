"""A bench of storage that was ended before its end: what it was asked for, and did not come to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.facts.fio import FioJob, FioRun
from preflight.facts.patterns import Pattern
from preflight.model import Missing
from preflight.probes.fio.loaders import of_loader
from preflight.probes.fio.saves import of_save

Line = dict[str, Any]
_FIO = "fio"
_SECTION = re.compile(r"^\[([^\]\n]{1,200})\]", re.MULTILINE)
#: Who tells why: the process beside it, or what asked the host.
_WHY = ("killed", "ended_by")


def asked_of(first: Line) -> tuple[str, ...]:
    """What its plan measures, one after the other; `first`: the line that it begins with. Empty
    where that does not tell."""
    plan = first.get("plan")
    if not isinstance(plan, dict) or plan.get("measure") is False:
        return ()
    told = plan.get("patterns")
    return tuple(map(str, told)) if isinstance(told, list) else ()


def cut_of(lines: Sequence[Line]) -> str:
    """By what it was ended before its end, in words; empty where it came there, or said why not."""
    if any(map(_ends, lines)):
        return ""
    told = next((str(one.get("text", "")) for one in lines if one["kind"] in _WHY), "")
    stopped = any(one["kind"] == "interrupted" for one in lines)
    return told or ("interrupted" if stopped else "the bench of storage was ended")


def _ends(line: Line) -> bool:
    """What hangs has failed, and nothing after it is looked for."""
    refused = line["kind"] == "cannot" and line.get("why") == "refused"
    return refused or line.get("hung") is True or line["kind"] in ("end", "hung", "busy")


def with_unreached(run: FioRun, asked: Sequence[str], cut: str, probe: str) -> FioRun:
    """The run of fio with those of its jobs that did not begin, or not end."""
    if not cut or _FIO not in asked or not run.jobs:
        return run
    names = dict.fromkeys(_SECTION.findall(run.job_file))
    left = [one for one in names if one != "global" and one not in {job.name for job in run.jobs}]
    missing = (
        FioJob(one, "", ended=Missing("exited", f"{cut} before {one} was done"), line=run.line,
               probe=probe)
        for one in left
    )  # fmt: skip
    return replace(run, jobs=(*run.jobs, *missing))


def unreached(first: Line, rows: Sequence[Pattern], cut: str, probe: str) -> Iterator[Pattern]:
    """A row for each pattern that did not begin, and for the rest of the one that was at work."""
    asked = [one for one in asked_of(first) if cut]
    begun = {one.pattern for one in rows}
    last = next((one for one in reversed(asked) if one in begun), "")
    for name in asked:
        if name == _FIO or (name in begun and name != last):
            continue
        part = "the rest" if name in begun else ""
        row = Pattern(
            f"{name} {part}".rstrip(), name, part, "",
            Missing("exited", f"{cut} before {name} was done"), line=int(first.get("line", 0)),
            probe=probe,
        )  # fmt: skip
        yield replace(row, **of_loader({}, first), **of_save({}, first))
