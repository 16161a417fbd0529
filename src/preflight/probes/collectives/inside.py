"""What is slow within a host, as the bench told it: GPUs, fabrics, rails."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from preflight.facts.collectives import Culprit, Inside, InsideTest
from preflight.model import Known, Missing
from preflight.probes.collectives.lines import PROBE, Line, Told

_NOT_LOOKED = Missing(
    "not-applicable",
    "nothing within this host was looked at: it is no slow one, and has no rails to be told apart",
)


def inside(told: Told, product: Known[str]) -> Known[Inside]:
    """What was looked at within the host. `product`: its GPUs."""
    line = next(iter(told.of["inside"]), None)
    if line is None:
        return _NOT_LOOKED
    tests = {int(one["test"]): _test(one, line["line"]) for one in line["tried"]}
    name = str(line.get("of", ""))
    return Inside(
        {str(kind): int(count) for kind, count in line["counts"].items()}, tuple(tests.values()),
        tuple(_culprit(one, name, tests, line["line"]) for one in line["culprits"]),
        alone=not told.plan.get("hosts"), product=product, line=line["line"], probe=PROBE,
    )  # fmt: skip


def _test(one: Line, line: int) -> InsideTest:
    gbps = [float(each) for each in one["busbw_gbps"]]
    none = Missing("exited", "it did not come to its end")
    hosts = tuple(str(each) for each in one["among"] if each)
    return InsideTest(
        int(one["test"]), str(one["what"]), hosts, median(gbps) if gbps else none, line
    )


def _culprit(one: Line, host: str, tests: dict[int, InsideTest], line: int) -> Culprit:
    """The name has the host's before it; a rail that is slow for all is no host's."""
    mine = [tests[int(number)] for number in one["tests"] if int(number) in tests]
    name = str(one["name"])
    named = name if name.endswith(" of all hosts") else f"{host} {name}".strip()
    return Culprit(
        named, str(one["kind"]), 100 * (1 - float(one["share"])), _numbers(mine),
        "; ".join(map(_shown, mine)), line, PROBE,
    )  # fmt: skip


def _numbers(tests: Sequence[InsideTest]) -> tuple[int, ...]:
    return tuple(one.number for one in tests)


def _shown(one: InsideTest) -> str:
    gbps = one.busbw_gbps
    told = "it did not end" if isinstance(gbps, Missing) else f"{gbps:.3g} GB/s"
    where = f" on {', '.join(one.hosts)}" if one.hosts else ""
    return f"{one.what}{where}: {told}"
