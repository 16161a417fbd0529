"""What nccl-tests printed: all_reduce_perf and its like, of any version, under any launcher."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from preflight.errors import ParseError
from preflight.facts.collectives import Collective, Collectives, SizeRow
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.collectives.derived import (
    kind_of,
    largest,
    numbered,
    ranks_of,
    rough,
    shape_of,
    sides,
    small,
)
from preflight.probes.collectives.labels import behind_words, labelled
from preflight.probes.collectives.tables import Run, locate, runs_of
from preflight.probes.collectives.troubles import is_status
from preflight.probes.spec import probe
from preflight.units import format_bytes

TOOL = "nccl-tests"
_NO_GPUS = Missing(
    "not-in-input",
    "the lines `#  Rank  0 ... on HOST device 0` above the table are not in it: keep all that the "
    "test prints (2>&1 | tee FILE)",
)
_NO_KIND = Missing("not-in-input", "the text does not tell which collective was measured")
_NO_END = Missing("not-in-input", "the last line of nccl-tests (# Avg bus bandwidth) is not in it")
_PLACES = ("hosts", "host_count", "ranks_per_host", "even", "product")
_ONE_HOST = Missing("not-applicable", "it ran on one host")
_ONE = Missing("not-applicable", "one rank by itself sends nothing")
#: Why, `ended` says.
_NOTHING = Missing("not-in-input", "no size was measured")
_MIXED = Missing(
    "unreadable", "two runs are written into each other: run them again, each into its own file"
)
_NO_LIMIT = Missing("not-applicable", "it was given no least bandwidth (NCCL_TESTS_MIN_BW)")


@probe(TOOL, [TOOL], timeout_s=60, with_stderr=True, locate=locate)
def nccl_tests(text: str) -> Collectives:
    """A table for each run. Of a run that did not come so far the reason stands in `trouble`."""
    runs = [one for one in runs_of(labelled(text)) if one.rows or one.ranks or one.trouble]
    if not runs:
        raise behind_words(text, TOOL) or ParseError(
            "expected a table of nccl-tests: # size count type ... busbw", 1
        )
    alone = _alone(runs)
    kept = runs[:1] if alone else runs
    return Collectives(numbered([_collective(one, alone) for one in kept]), probe=TOOL)


def _alone(runs: Sequence[Run]) -> int:
    """How many processes ran each by itself, as one that was built without MPI does: they tell
    their tables into each other, or one after the other; 0 where they did not."""
    if any(len(run.ranks) > 1 or not _is_of_one(run) for run in runs):
        return 0
    first = runs[0]
    sizes = Counter(row.size_bytes for row in first.rows)
    processes = max([run.first_ranks for run in runs] + list(sizes.values()))
    alike = [run for run in runs if (run.named, run.settings) == (first.named, first.settings)]
    processes = max(processes, len(alike) if len(alike) == len(runs) else 0)
    return processes if processes > 1 else 0


def _is_of_one(run: Run) -> bool:
    """Whether one rank measured it: what is sent to nobody has no bus bandwidth."""
    if not run.rows:
        return len(run.ranks) == 1
    told = [one for row in run.rows for one in sides(row)]
    return any(one.algbw_gbps for one in told) and not any(one.busbw_gbps for one in told)


def _collective(run: Run, alone: int) -> Collective:
    rows = tuple(sorted(run.rows, key=lambda row: row.size_bytes))
    kind = run.named or kind_of(rows, run.columns, run.middle)
    ranks: Known[int] = max(run.ranks, default=-1) + 1 or ranks_of(rows, kind)
    (busbw, at_bytes), (rough_gbps, rough_bytes) = _reached(run, rows, kind, ranks)
    trouble = (
        f"{alone} processes, each by itself"
        if alone
        else run.crashed or run.trouble or _uneven(run)
    )
    name = kind or TOOL
    return Collective(
        name, TOOL, kind or _NO_KIND, ranks,
        **_places(run), rows=rows, ended=_ended(run), trouble=trouble,
        trouble_ranks=tuple(sorted(run.trouble_ranks)), together=_together(ranks, alone),
        wrong=_wrong(run), reaches_own_limit=_own_limit(run),
        average_gbps=run.average[0] if run.average else NOT_IN_INPUT,
        busbw_gbps=busbw, at_bytes=at_bytes, small_us=_small(rows, kind, ranks),
        rough_gbps=rough_gbps, rough_bytes=rough_bytes,
        shape=_ONE if ranks == 1 else shape_of(rows, name, run.line, TOOL),
        line=run.line, probe=TOOL,
    )  # fmt: skip


def _small(rows: Sequence[SizeRow], kind: str, ranks: Known[int]) -> Known[float]:
    if ranks == 1 or not rows:
        return _ONE if ranks == 1 else _NOTHING
    return small(rows, f"{_perf(kind)} -b 8 -e 8G -f 2")


def _perf(kind: str) -> str:
    """The program of a collective."""
    return f"{kind or 'all_reduce'}_perf" if " or " not in kind else "all_gather_perf"


#: GB/s, and at which size.
Reached = tuple[Known[float], Known[int]]


def _reached(
    run: Run, rows: Sequence[SizeRow], kind: str, ranks: Known[int]
) -> tuple[Reached, Reached]:
    """At the largest size, by whether that is 1 GB or not."""
    never = _ONE if ranks == 1 else _MIXED if _is_mixed(run) else None
    never = _NOTHING if never is None and run.trouble and not rows else never
    if never is not None:
        return (never, never), (never, never)
    return largest(rows, f"{_perf(kind)} -b 1G -e 8G -f 2"), rough(rows)


def _places(run: Run) -> dict[str, Any]:
    """Hosts, ranks on each, and the model of the GPUs."""
    if not run.ranks:
        return dict.fromkeys(_PLACES, _NO_GPUS)
    counts = Counter(host for host, _ in run.ranks.values())
    lost = max(run.ranks) + 1 - len(run.ranks)
    products = sorted({product for _, product in run.ranks.values()})
    several = Missing("not-applicable", f"GPUs of several models: {', '.join(products)[:120]}")
    return {
        "hosts": tuple(counts),
        "host_count": len(counts),
        "ranks_per_host": _lost(run) if lost else min(counts.values()),
        "even": _ONE_HOST if len(counts) == 1 else _lost(run) if lost else _are_even(counts),
        "product": products[0] if len(products) == 1 and products[0] else several,
    }


def _are_even(counts: Counter[str]) -> bool:
    return len(set(counts.values())) == 1


def _lost(run: Run) -> Missing:
    """Why ranks cannot be counted by host: the text names a later rank, and not these."""
    lost = [rank for rank in range(max(run.ranks)) if rank not in run.ranks]
    told = ", ".join(map(str, lost[:8])) + (" ..." if lost[8:] else "")
    what = f"the line `#  Rank {told}` is not in it" if len(lost) == 1 else (
        f"the lines of ranks {told} are not in it"
    )  # fmt: skip
    return Missing("not-in-input", what)


def _uneven(run: Run) -> str:
    """How many ranks each host had, where these differ."""
    counts = Counter(host for host, _ in run.ranks.values())
    if not run.ranks or max(run.ranks) + 1 > len(run.ranks):
        return ""
    told = ", ".join(f"{host} {count}" for host, count in counts.items())
    return told[:200] if len(set(counts.values())) > 1 else ""


def _is_mixed(run: Run) -> bool:
    """Whether two runs of several ranks wrote into each other: two ranks 0, and sizes twice."""
    sizes = {row.size_bytes for row in run.rows}
    return run.first_ranks > 1 and len(run.ranks) > 1 and len(sizes) < len(run.rows)


def _ended(run: Run) -> Known[bool]:
    """nccl-tests closes with two lines; what came out wrong is told before them, and a process may
    fall after them."""
    if _is_mixed(run):
        return _MIXED
    if run.average is not None or run.bounds is not None:
        return False if _fell(run) else _unread(run) if run.unread else True
    if run.trouble:
        return Missing("exited", run.trouble) if run.never_ran else False
    most = max((row.size_bytes for row in run.rows), default=0)
    wanted = run.settings.get("maxBytes")
    if not run.rows:
        return Missing("unreadable", "the text ends before the first size was measured")
    if wanted is None:
        return _NO_END
    # Sizes are rounded down to whole elements, and go in steps.
    if most * 2 > wanted:
        return True
    text = f"the text ends at {format_bytes(most)} of {format_bytes(wanted)}"
    return Missing("unreadable", f"{text}: it was ended, it hangs, or the text was cut")


def _fell(run: Run) -> bool:
    """Whether something went wrong once it measured. With wrong results, or less than its own least
    bandwidth, the test itself ends with a status that launchers tell: these have own checks."""
    failed = any(one and one[1] == "FAILED" for one in (run.bounds, run.average))
    return bool(run.crashed) and not (failed and is_status(run.crashed))


def _unread(run: Run) -> Missing:
    what = f"line {run.unread[0]} of the table is cut, or its times are no times"
    more = f", and {len(run.unread) - 1} more lines" if run.unread[1:] else ""
    return Missing("unreadable", f"{what}{more}: run it again, each job into a file of its own")


def _together(ranks: Known[int], alone: int) -> Known[bool]:
    if alone:
        return False
    return _ONE if ranks == 1 else True if isinstance(ranks, int) else ranks


def _wrong(run: Run) -> Known[int]:
    """Results out of bounds, by the tests' own sum or by their rows."""
    if run.bounds and (run.bounds[0] or run.bounds[1] == "FAILED"):
        return max(1, run.bounds[0])
    told = [one.wrong for row in run.rows for one in sides(row)]
    known = [value for value in told if not isinstance(value, Missing)]
    if not known:
        return next((one for one in told if isinstance(one, Missing)), NOT_IN_INPUT)
    if "#wrong" not in run.columns and not run.bounds:
        return NOT_IN_INPUT  # the size of an error, and nobody says whether it is too large
    return int(sum(known)) if "#wrong" in run.columns else 0


def _own_limit(run: Run) -> Known[bool]:
    if run.average is None or not run.average[1]:
        return _NO_LIMIT
    return run.average[1] == "OK"
