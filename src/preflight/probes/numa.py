"""NUMA nodes of a live host, from sysfs: processors, memory, distances."""

from __future__ import annotations

import re
from typing import Any

from preflight import cpulists
from preflight.errors import ParseError
from preflight.facts.numa import NumaNode
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

_PROBE = "numa"

# Documentation/ABI/stable/sysfs-devices-node of the kernel. One process, and not `read` of the
# shell: newer kernels give nothing of `cpulist` to who reads it byte by byte. A kernel without NUMA
# has no folder for nodes.
_ASK = """\
[ -d /sys/devices/system/cpu ] || { echo 'no /sys/devices/system' >&2; exit 2; }
if cd /sys/devices/system/node 2>/dev/null; then
  grep -s -H -E '^[0-9]|^$|Mem(Total|Free):' node[0-9]*/cpulist node[0-9]*/distance \\
    node[0-9]*/meminfo
fi
echo end"""

_LINE = re.compile(r"node([0-9]{1,4})/(cpulist|distance|meminfo): *(.*)", re.ASCII)
_MEMORY = re.compile(r"Node [0-9]{1,4} (Mem\w+): *(.*)", re.ASCII)
_AMOUNT = re.compile(r"([0-9]{1,15}) kB", re.ASCII)
_DISTANCES = re.compile(r"[0-9]{1,3}(?: +[0-9]{1,3}){0,1023}", re.ASCII)
_NONE = Missing("not-applicable", "this kernel knows no NUMA nodes: all memory is equally near")


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def numa(text: str) -> Known[tuple[NumaNode, ...]]:
    """`node0/cpulist:0-47`, `node0/distance:10 21`, `node0/meminfo:Node 0 MemTotal: N kB` lines."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the list of NUMA nodes is cut short: no closing `end`", len(lines))
    told: dict[int, dict[str, str]] = {}
    first: dict[int, int] = {}
    for number, line in enumerate(lines[:-1], 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ParseError(
                f"expected a line such as `node0/cpulist:0-7`, got {line[:80]!r}", number
            )
        first.setdefault(int(match[1]), number)
        memory = _MEMORY.fullmatch(match[3])
        key, value = (memory[1], memory[2]) if memory else (match[2], match[3])
        told.setdefault(int(match[1]), {})[key] = value
    return tuple(_node(at, told[at], first[at]) for at in sorted(told)) or _NONE


def _node(at: int, told: dict[str, str], line: int) -> NumaNode:
    total, free = _bytes(told.get("MemTotal", "")), _bytes(told.get("MemFree", ""))
    known = isinstance(total, int) and isinstance(free, int) and total > 0
    return NumaNode(
        name=f"node{at}",
        **_cpus(told.get("cpulist"), at),
        total_bytes=total,
        free_bytes=free,
        free_percent=100 * free / total if known else NOT_IN_INPUT,  # type: ignore[operator]
        distances=_distances(told.get("distance", "")),
        line=line,
        probe=_PROBE,
    )


def _cpus(told: str | None, at: int) -> dict[str, Any]:
    try:
        cpus = cpulists.parse(told) if told is not None else None
    except ValueError:
        cpus = None
    if cpus is None:
        missing = Missing("unreadable", f"the kernel tells no processors of node {at}")
        return {"cpus": missing, "cpu_list": missing}
    return {"cpus": len(cpus), "cpu_list": cpulists.fold(cpus)}


def _bytes(text: str) -> Known[int]:
    found = _AMOUNT.fullmatch(text)
    return int(found[1]) << 10 if found else Missing("unreadable", "the node tells no memory")


def _distances(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split())) if _DISTANCES.fullmatch(text) else ()
