"""NUMA nodes, from `numactl -H`: numactl(8) writes MB and counts in powers of two."""

from __future__ import annotations

import re

from preflight import cpulists
from preflight.errors import ParseError
from preflight.facts.numa import NumaNode
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "numactl"

_AVAILABLE = re.compile(r"available: (\d{1,4}) nodes? \(.*")
_NODE = re.compile(r"node (\d{1,4}) (cpus|size|free):[ \t]*(.*)")
_AMOUNT = re.compile(r"([0-9]{1,12}) MB")
_ROW = re.compile(r"(\d{1,4}):((?:[ \t]+\d{1,3}){1,1024})")


@probe(_PROBE, ["numactl", "-H"], timeout_s=10)
def numactl(text: str) -> tuple[NumaNode, ...]:
    """`node 0 size: 32116 MB` lines, then a table of distances."""
    lines = [line.strip() for line in text.split("\n")]
    told: dict[int, dict[str, str]] = {}
    first: dict[int, int] = {}
    distances: dict[int, tuple[int, ...]] = {}
    announced = next((int(match[1]) for line in lines if (match := _AVAILABLE.match(line))), 0)
    for number, line in enumerate(lines, 1):
        if match := _NODE.fullmatch(line):
            first.setdefault(int(match[1]), number)
            told.setdefault(int(match[1]), {})[match[2]] = match[3].strip()
        elif match := _ROW.fullmatch(line):
            distances[int(match[1])] = tuple(map(int, match[2].split()))
    if not told:
        raise ParseError("expected lines such as `node 0 size: 32116 MB`", 1)
    if len(told) < announced:
        raise ParseError(f"cut short: {len(told)} of {announced} nodes are told", len(lines))
    return tuple(_node(at, told[at], distances.get(at, ()), first[at]) for at in sorted(told))


def _node(at: int, told: dict[str, str], distances: tuple[int, ...], line: int) -> NumaNode:
    total, free = _bytes(told.get("size", "")), _bytes(told.get("free", ""))
    return NumaNode(
        name=f"node{at}",
        cpus=len(told["cpus"].split()) if "cpus" in told else NOT_IN_INPUT,
        cpu_list=_listed(told["cpus"]) if "cpus" in told else NOT_IN_INPUT,
        total_bytes=NOT_IN_INPUT if total is None else total,
        free_bytes=NOT_IN_INPUT if free is None else free,
        free_percent=100 * free / total if total and free is not None else NOT_IN_INPUT,
        distances=distances,
        line=line,
        probe=_PROBE,
    )


def _listed(cpus: str) -> Known[str]:
    try:
        return cpulists.fold(cpulists.parse(",".join(cpus.split())))
    except ValueError:
        return Missing("unreadable", f"these are no numbers of processors: {cpus[:60]!r}")


def _bytes(text: str) -> int | None:
    found = _AMOUNT.fullmatch(text)
    return int(found[1]) << 20 if found else None
