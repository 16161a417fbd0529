"""What the kernel counts of memory since boot, and in how large pieces the free memory is."""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.system import MemoryState, NodeMemory
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "memory-state"
_ASK = """\
grep -s -E '^(pswpin|pswpout|oom_kill) ' /proc/vmstat
cat /proc/buddyinfo 2>/dev/null
echo end"""

#: Blocks from this order on are large: 2^8 pages, 1 MiB with pages of 4 KiB.
_LARGE_ORDER = 8
#: Zones in which the kernel places no buffers of its own: memory of CXL, and of a GPU that is a
#: NUMA node, is in such a one only.
_NOT_FOR_THE_KERNEL = frozenset({"Movable", "Device"})
_ZONE = re.compile(r"Node ([0-9]+), zone +(\S+)((?: +[0-9]+)+)")


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def memory_state(text: str) -> MemoryState:
    """Lines of /proc/vmstat, then those of /proc/buddyinfo: free blocks of each order by zone."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the state of the memory is cut short: no closing `end`", len(lines))
    told = dict(line.split(" ", 1) for line in lines if re.fullmatch(r"\w+ [0-9]{1,20}", line))
    return MemoryState(
        swapped_in_pages=_number(told, "pswpin"),
        swapped_out_pages=_number(told, "pswpout"),
        oom_kills=_number(told, "oom_kill"),
        nodes=_nodes(lines),
        probe=_PROBE,
    )


def _nodes(lines: list[str]) -> Known[tuple[NodeMemory, ...]]:
    found: dict[str, NodeMemory] = {}
    for number, line in enumerate(lines, 1):
        match = _ZONE.fullmatch(line)
        if match is None or match[2] in _NOT_FOR_THE_KERNEL:
            continue
        name = f"node{match[1]}"
        before = found.get(name, NodeMemory(name, 0, number, _PROBE))
        large = sum(map(int, match[3].split()[_LARGE_ORDER:]))
        # The line of the zone that is asked for most memory, which comes last, is the evidence.
        found[name] = NodeMemory(name, before.large_blocks + large, number, _PROBE)
    missing = Missing("unreadable", "/proc/buddyinfo cannot be read here")
    return tuple(found.values()) or missing


def _number(told: dict[str, str], key: str) -> Known[int]:
    return int(told[key]) if key in told else Missing("unreadable", f"/proc/vmstat has no {key}")
