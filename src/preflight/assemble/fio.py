"""What fio measured, of all files together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from preflight.facts.fio import Fio, FioRun, FioSide, FioTotal
from preflight.facts.host import HostMemory
from preflight.facts.patterns import Bench, Pattern
from preflight.model import NOT_IN_INPUT, Known, Missing

NO_STORAGE = Missing(
    "not-asked",
    "recorded without a bench of storage: --level standard where it is recorded adds one, or "
    "`preflight io-bench`",
)
#: Fact -> way, whether at random, in words.
_TELLING = {
    "fio_large_reads": ("read", False, "reads blocks of 128 KiB or more"),
    "fio_large_writes": ("write", False, "writes blocks of 128 KiB or more"),
    "fio_random_reads": ("read", True, "reads blocks of up to 128 KiB at random"),
}
_LARGE_BYTES, _IN_FLIGHT_BYTES, _MANY = 128 << 10, 1 << 20, 16
_TOOLS = ("io-bench", "fio")
_NO_PATTERNS = Missing("not-asked", "fio alone was asked for: `preflight io-bench`")
_NO_FIO = Missing("not-asked", "fio was not asked for: --patterns fio")
_LOADING = {"loader_reads": "read", "loader_maps": "mmap"}
_NO_LOADER = Missing("not-asked", "no loader was asked for: --patterns dataloader")
_NOT_COLD = Missing("not-applicable", "no loader read past the page cache: it does not let go here")
_UNMEASURED = Missing("exited", "what was said to be needed was not measured")
_IDLE = Missing("exited", "no job of it moved anything")
#: Of each report, and why there is none of it.
_PARTS = {
    "jobs": Missing("unreadable", "no job stands in the report"), "sides": _IDLE, "totals": _IDLE,
    "syncs": Missing("not-applicable", "no job of it syncs"),
}  # fmt: skip


def fio_facts(
    found: Mapping[str, Any], memory: Known[HostMemory], *, asked: bool
) -> dict[str, Any]:
    """Jobs, what they moved, and what those of a group moved together; a name occurs once."""
    facts = _facts(found, memory, asked=asked)
    patterns = _patterns(found, asked=asked)
    return facts | _telling(facts["fio_totals"]) | {"patterns": patterns} | _loading(patterns)


def _patterns(found: Mapping[str, Any], *, asked: bool) -> Known[tuple[Pattern, ...]]:
    """What was done as training does it; each name occurs once."""
    answer = found.get(_TOOLS[0])
    if answer is None:
        return NO_STORAGE if asked else NOT_IN_INPUT
    if isinstance(answer, Missing):
        return answer
    rows = {one.name: one for one in answer.patterns}
    alone = answer.runs or answer.lacks_fio or answer.asked == ("fio",)
    return tuple(rows.values()) or (_NO_PATTERNS if alone else _why(answer))


def _loading(patterns: Known[tuple[Pattern, ...]]) -> dict[str, Any]:
    """What loaders read that was not in the page cache already."""
    if isinstance(patterns, Missing):
        return dict.fromkeys(_LOADING, patterns)
    ours = [one for one in patterns if one.pattern == "dataloader"]
    if not ours:
        return dict.fromkeys(_LOADING, _NO_LOADER)
    if not isinstance(ours[0].demand_mbps, Missing):
        return {name: _held(ours, part) for name, part in _LOADING.items()}
    cold = [one for one in ours if one.through in ("device", "memory")]
    return {
        name: tuple(one for one in cold if one.part == part) or _NOT_COLD
        for name, part in _LOADING.items()
    }


def _held(ours: Sequence[Pattern], part: str) -> Known[tuple[Pattern, ...]]:
    """What a stated demand is held against: nothing that did not come from a device counts."""
    rows = [one for one in ours if one.part == part]
    return tuple(map(_counted, rows)) or _UNMEASURED


def _counted(one: Pattern) -> Pattern:
    if one.through == "device":
        return one
    through = one.through.text if isinstance(one.through, Missing) else one.through
    why = f"{_UNMEASURED.text}: what was read came from: {through}"
    return replace(one, bandwidth_mbps=Missing("unreadable", why))


def _telling(totals: Known[tuple[FioTotal, ...]]) -> dict[str, Any]:
    """Those that tell how fast a device is."""
    if isinstance(totals, Missing):
        return dict.fromkeys(_TELLING, totals)
    return {
        name: tuple(one for one in totals if _is_telling(one, way, random)) or Missing(
            "not-applicable", f"no job {said} past the page cache, with enough in flight"
        )
        for name, (way, random, said) in _TELLING.items()
    }  # fmt: skip


def _is_telling(one: FioTotal, way: str, random: bool) -> bool:
    """Large blocks with a MiB in flight at least, or small ones at random with 16."""
    block, many = one.block_bytes, one.in_flight
    if isinstance(block, Missing) or isinstance(many, Missing):
        return False
    if one.way != way or one.through != "device":
        return False
    if random:
        return one.random is True and block <= _LARGE_BYTES and many >= _MANY
    return block >= _LARGE_BYTES and block * many >= _IN_FLIGHT_BYTES


def _facts(found: Mapping[str, Any], memory: Known[HostMemory], *, asked: bool) -> dict[str, Any]:
    answers = {name: one for name, one in found.items() if name.partition("#")[0] in _TOOLS}
    told = [
        (run, name) for name, one in answers.items() if isinstance(one, Fio) for run in one.runs
    ]
    if not told:
        absent = NO_STORAGE if asked else NOT_IN_INPUT
        why = next((_why(one) for one in answers.values()), absent)
        return {"fio_runs": why, **{f"fio_{part}": why for part in _PARTS}}
    runs, names = list[FioRun](), set[str]()
    for at, (run, probe) in enumerate(told, 1):
        again = any(one.name in names for one in run.jobs)
        runs.append(_placed(run, probe, f", run {at}" if again else "", memory))
        names |= {one.name for one in runs[-1].jobs}
    return {
        "fio_runs": tuple(runs),
        **{
            f"fio_{part}": tuple(chain.from_iterable(getattr(run, part) for run in runs)) or why
            for part, why in _PARTS.items()
        },
    }


def _why(answer: Known[Fio]) -> Missing:
    """Why an answer measured nothing."""
    if isinstance(answer, Missing):
        return answer
    if isinstance(answer, Bench) and answer.busy:  # active work never competes
        return Missing("busy", answer.busy)
    if isinstance(answer, Bench) and answer.cannot:
        return Missing("no-tool" if answer.lacks_fio else "exited", answer.cannot)
    if isinstance(answer, Bench) and answer.patterns and "fio" not in answer.asked:
        return _NO_FIO
    cut = answer.cut if isinstance(answer, Bench) else ""
    return Missing("exited", f"{cut or 'the bench of storage was ended'} before its first job")


def _placed(run: FioRun, probe: str, again: str, memory: Known[HostMemory]) -> FioRun:
    """With the answer that it stands in, names of its own, and the host's memory beside it."""
    total = NOT_IN_INPUT if isinstance(memory, Missing) else memory.total_bytes
    sides = tuple(
        replace(one, name=f"{one.name}{again}", probe=probe, through=_through(one, total))
        for one in run.sides
    )
    return replace(
        run,
        jobs=tuple(replace(one, name=f"{one.name}{again}", probe=probe) for one in run.jobs),
        sides=sides,
        syncs=tuple(replace(one, name=f"{one.name}{again}", probe=probe) for one in run.syncs),
        totals=tuple(
            replace(one, name=f"{one.name}{again}", probe=probe, through=_of_all(one, sides))
            for one in run.totals
        ),
    )


def _through(side: FioSide, total: Known[int]) -> Known[str]:
    """A file larger than memory cannot be read from there."""
    size = side.file_bytes
    if side.through != "page cache" or side.way != "read":
        return side.through
    fits = isinstance(size, Missing) or isinstance(total, Missing) or size < total
    return side.through if fits else "device"


def _of_all(one: FioTotal, sides: tuple[FioSide, ...]) -> Known[str]:
    """What the group's figures are of: what memory gave counts for all."""
    if isinstance(one.through, Missing):
        return one.through
    told = [each.through for each in sides if (each.group, each.way) == (one.group, one.way)]
    return next((each for each in told if each != "device"), "device")
