"""What benchmarks of the network measured, of all files together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from preflight.assemble.tables import SUPPLIERS
from preflight.facts.collectives import (
    Bench,
    BenchStack,
    Collective,
    Collectives,
    Localisation,
    RdmaTests,
)
from preflight.facts.wire import Wire
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.collectives.derived import numbered

#: It is work that the user asks for by name.
_NO_RUN = Missing(
    "not-asked",
    "needs what a benchmark printed: `all_reduce_perf -b 8 -e 8G -f 2 > nccl.log`, then "
    "`preflight nccl-bench --from nccl.log`",
)
_NO_TEST = Missing(
    "not-asked",
    "needs what perftest printed: `ib_write_bw -a --report_gbits HOST > bw.log`, then "
    "`preflight nccl-bench --from bw.log`",
)

NO_WIRE = Missing(
    "not-asked", "needs several hosts: preflight nccl-bench --wire auto --hosts HOSTS"
)
NO_SEARCH = Missing("not-asked", "needs several hosts: preflight nccl-bench --hosts HOSTS")
_OF_ANOTHER = Missing(
    "not-asked",
    "nccl-tests measures all hosts at once; which is slow: preflight nccl-bench --hosts HOSTS "
    "without --nccl-tests",
)
NO_BENCH = Missing("not-asked", "needs a bench of collectives: preflight nccl-bench")
#: Of a host: what the bench calls it.
_PARTS = {
    "bench_settings": "settings",
    "lasting": "lasting",
    "network_growth": "growth",
    "inside": "inside",
}
#: What each host tells of itself.
_OF_EACH = ("growth", "inside")
_LED_ELSEWHERE = Missing("not-applicable", "told by the host that led the others")


def benchmark_facts(found: Mapping[str, Any], *, asked: bool) -> dict[str, Any]:
    """Runs of collectives with the shapes of their curves, and tests of RDMA."""
    runs = _runs(_answers(found, "collectives"), _NO_RUN if asked else NOT_IN_INPUT)
    bench = found.get("nccl-bench", NOT_IN_INPUT)
    absent = _NO_TEST if asked else NOT_IN_INPUT
    tests = _tests(_answers(found, "rdma_tests"), bench, absent)
    return {
        "collectives": runs, "collective_shapes": _shapes(runs), "rdma_tests": tests,
        "localisation": _located(found, asked=asked),
        "wire": _wire(bench, asked=asked),
        "bench_stack": _stack(bench, asked=asked),
        **{part: _part(bench, name, asked=asked) for part, name in _PARTS.items()},
    }  # fmt: skip


def whose_job(found: Mapping[str, Any]) -> dict[str, bool]:
    """Whether a bench speaks for several hosts, and whether this one ended it."""
    answer = found.get("nccl-bench")
    if not isinstance(answer, Bench):
        return {}
    return {"speaks_for_all": answer.speaks_for_all, "ended_job": answer.ended_job}


def _part(answer: Known[Bench], name: str, *, asked: bool) -> Any:
    """A part of what the bench told, or why there is none."""
    if answer is NOT_IN_INPUT:
        return NO_BENCH if asked else answer
    if isinstance(answer, Missing):
        return answer
    own = answer.leads or name in _OF_EACH
    return _unable(answer) or (getattr(answer, name) if own else _LED_ELSEWHERE)


def _located(found: Mapping[str, Any], *, asked: bool) -> Known[Localisation]:
    """What the search for a slow host told of this one."""
    answer: Known[Bench] = found.get("nccl-bench", NOT_IN_INPUT)
    if answer is NOT_IN_INPUT and asked:
        return _OF_ANOTHER if "nccl-tests" in found else NO_SEARCH
    if answer is NOT_IN_INPUT:
        return answer
    if isinstance(answer, Missing):
        return answer
    return _unable(answer) or answer.located


def _wire(answer: Known[Bench], *, asked: bool) -> Known[Wire]:
    """What the links of this host carry by themselves."""
    if answer is NOT_IN_INPUT:
        return NO_WIRE if asked else answer
    return answer if isinstance(answer, Missing) else _unable(answer) or answer.wire


def _stack(answer: Known[Bench], *, asked: bool) -> Known[BenchStack]:
    """What its ranks ran with; a host that could not begin may still have told it."""
    if answer is NOT_IN_INPUT:
        return NO_SEARCH if asked else answer
    return answer if isinstance(answer, Missing) else answer.stack


def _unable(answer: Bench) -> Missing | None:
    """Why nothing was timed."""
    if answer.fault:  # it stands with the table that it did not come to
        return Missing("not-applicable", "it was no part of the bench: see collectives.ended")
    if answer.busy:  # active work never competes
        return Missing("not-asked", answer.busy)
    if answer.unmet:
        return Missing("exited", answer.unmet)
    if answer.few_gpus:
        return Missing("not-applicable", answer.cannot)
    if answer.cannot:
        return Missing("no-tool" if answer.lacks_torch else "exited", answer.cannot)
    return None


def _answers(found: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Of every file: nccl-tests, nccl-tests#2."""
    suppliers = SUPPLIERS[part]
    return {name: one for name, one in found.items() if name.partition("#")[0] in suppliers}


def _runs(answers: Mapping[str, Any], absent: Missing) -> Known[tuple[Collective, ...]]:
    told = [
        _from(one, name) for name, answer in answers.items()
        if isinstance(answer, Collectives) for one in answer.runs
    ]  # fmt: skip
    return numbered(told) if told else _why(map(_as_missing, answers.values()), absent)


def _as_missing(answer: Any) -> Any:
    """A bench without a table says why."""
    if not isinstance(answer, Bench):
        return answer
    ended = Missing("exited", "it came to no table")
    return _unable(answer) or (ended if answer.leads else _LED_ELSEWHERE)


def _from(run: Collective, probe: str) -> Collective:
    """A run with the answer that it stands in."""
    if probe == run.probe:
        return run
    shape = run.shape
    shape = shape if isinstance(shape, Missing) else replace(shape, probe=probe)
    return replace(run, probe=probe, shape=shape)


def _tests(answers: Mapping[str, Any], bench: Known[Bench], absent: Missing) -> Any:
    told = [
        replace(one, probe=name) for name, answer in answers.items()
        if isinstance(answer, RdmaTests) for one in answer.tests
    ] + (list(bench.rdma) if isinstance(bench, Bench) else [])  # fmt: skip
    if not told:
        return _why(answers.values(), absent)
    names: dict[str, int] = {}
    for at, one in enumerate(told):
        name = one.name.partition(", ")[0]
        names[name] = names.get(name, 0) + 1
        told[at] = replace(one, name=f"{name}, {names[name]}" if names[name] > 1 else name)
    return tuple(told)


def _why(answers: Iterable[Any], absent: Missing) -> Missing:
    return next((one for one in answers if isinstance(one, Missing)), absent)


def _shapes(runs: Known[tuple[Collective, ...]]) -> Any:
    if isinstance(runs, Missing):
        return runs
    told = tuple(one.shape for one in runs if not isinstance(one.shape, Missing))
    return told or next(one.shape for one in runs)
