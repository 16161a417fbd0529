"""The machine itself: CPU, memory, operating system."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from preflight import cpulists
from preflight.errors import ParseError
from preflight.facts.host import Cpu, HostMemory
from preflight.facts.numa import NumaNode
from preflight.model import NOT_IN_INPUT, Known
from preflight.probes.spec import probe

#: Behind a label of lscpu: French has a blank before the colon, Chinese a wide one.
_COLON = re.compile("[:\uff1a]")
#: `NUMA node0 CPU(s)`, `NUMA-Knoten0 CPU(s)`, `CPU(s) del nodo NUMA 1`: the word and one number.
_NODE_LABEL = re.compile(r"(?=.*NUMA)[^0-9]*([0-9]{1,4})[^0-9]*")
_COUNT_LABEL = re.compile(r"(?=.*NUMA)[^0-9]*")
_LONGEST = 120  # of a label, the blanks before it included
#: Rows of lscpu -J are nested three deep.
_DEEPEST = 8


@probe("lscpu", ["lscpu"], timeout_s=10)
def lscpu(text: str) -> Cpu:
    """`Key: value` lines of util-linux's lscpu, indented or not, or its JSON (-J). In another
    language than English: how many CPUs there are, the NUMA nodes, and whether it is a virtual
    machine."""
    rows = _rows(text)
    told = {key: value for key, (value, _) in rows.items()}
    nodes = tuple(_nodes(rows))
    counts = {key: value for key, value in told.items() if value.isdecimal()}
    cpus = told.get("CPU(s)") or next(iter(counts.values()), "")
    if not cpus or not (nodes or "CPU(s)" in told or "CPU" in told):
        raise ParseError("expected a line `CPU(s): N` as lscpu prints", 1)
    nodes_told = (value for key, value in counts.items() if _COUNT_LABEL.fullmatch(key))
    return Cpu(
        model=told.get("Model name", NOT_IN_INPUT),
        sockets=_int(told.get("Socket(s)")),
        numa_nodes=_int(next(nodes_told, None)),
        cpus=_int(cpus),
        hypervisor=_hypervisor(told),
        nodes=nodes,
    )


def _rows(text: str) -> dict[str, tuple[str, int]]:
    """Label -> its value and its line."""
    if text.lstrip().startswith("{"):
        return _rows_of_json(text)
    found: dict[str, tuple[str, int]] = {}
    for at, line in enumerate(text.split("\n"), 1):
        label, *value = _COLON.split(line, maxsplit=1)
        if value and len(label) < _LONGEST:
            found[label.strip()] = (value[0].strip(), at)
    return found


def _rows_of_json(text: str) -> dict[str, tuple[str, int]]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"expected the JSON of lscpu -J: {error}"[:200], 1) from None
    return {
        str(row.get("field", "")).strip(" :\uff1a\xa0"): (str(row.get("data")), 1)
        for row in _flat(whole.get("lscpu"), _DEEPEST)
    }


def _flat(rows: object, depth: int) -> Iterator[dict[str, Any]]:
    """The rows, each before those below it."""
    for row in rows if isinstance(rows, list) and depth else ():
        if isinstance(row, dict):
            yield row
            yield from _flat(row.get("children"), depth - 1)


def _nodes(rows: Mapping[str, tuple[str, int]]) -> Iterator[NumaNode]:
    for label, (value, line) in rows.items():
        match = _NODE_LABEL.fullmatch(label)
        if match is None:
            continue
        try:
            cpus = cpulists.parse("" if value == "None" else value)
        except ValueError:
            continue
        yield NumaNode(f"node{int(match[1])}", len(cpus), cpulists.fold(cpus), line=line,
                       probe="lscpu")  # fmt: skip


def _hypervisor(told: dict[str, str]) -> Known[str]:
    # The flag is set by every hypervisor that follows the CPUID convention; the vendor is not
    # always known to lscpu.
    if "Hypervisor vendor" in told:
        return told["Hypervisor vendor"]
    flags = told.get("Flags") or next((v for v in told.values() if v.startswith("fpu ")), None)
    if flags is None:
        return NOT_IN_INPUT
    return "unknown" if "hypervisor" in flags.split() else "none"


def _int(text: str | None) -> Known[int]:
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text) else NOT_IN_INPUT


#: Fact -> the key whose line shows it.
_SHOWN_BY = {
    "total_bytes": "MemTotal", "swap_total_bytes": "SwapTotal", "swap_used_bytes": "SwapFree",
    "hugepages_unused_bytes": "HugePages_Free", "hugepages_unused_percent": "HugePages_Free",
    "commit_limit_bytes": "CommitLimit", "commit_percent": "Committed_AS",
}  # fmt: skip


def _locate(text: str, start: int, field: str) -> int:
    """The line of MemAvailable, where the record begins, shows what is left of the memory."""
    key = f"{_SHOWN_BY.get(field, 'MemAvailable')}:"
    lines = text.split("\n")
    return next((at for at, line in enumerate(lines, 1) if line.startswith(key)), start)


@probe("meminfo", ["cat", "/proc/meminfo"], timeout_s=10, locate=_locate)
def meminfo(text: str) -> HostMemory:
    """`Key: N kB` lines, see proc_meminfo(5)."""
    told = {
        key: int(number) * 1024
        for key, number in re.findall(r"^(\w+):[ \t]+([0-9]{1,18}) kB$", text, re.MULTILINE)
    }
    if not told.get("MemTotal"):
        raise ParseError("expected a line `MemTotal: N kB`", 1)
    total, available = told["MemTotal"], told.get("MemAvailable")
    line = text[: text.find("MemAvailable")].count("\n") + 1 if available is not None else 1
    return HostMemory(
        total_bytes=total,
        available_bytes=NOT_IN_INPUT if available is None else available,
        available_percent=NOT_IN_INPUT if available is None else 100 * available / total,
        swap_total_bytes=told.get("SwapTotal", NOT_IN_INPUT),
        swap_used_bytes=_swap_used(told),
        **_hugepages(text, told),
        commit_limit_bytes=told.get("CommitLimit", NOT_IN_INPUT),
        commit_percent=_promised(told),
        line=line,
        probe="meminfo",
    )


def _swap_used(told: dict[str, int]) -> Known[int]:
    if "SwapTotal" not in told or "SwapFree" not in told:
        return NOT_IN_INPUT
    return max(told["SwapTotal"] - told["SwapFree"], 0)


def _hugepages(text: str, told: dict[str, int]) -> dict[str, Any]:
    """What is reserved for huge pages and neither used nor promised: memory that nobody gets.
    Pages that are not of the default size are not told apart in /proc/meminfo."""
    counts = dict(re.findall(r"^HugePages_(\w+):\s+([0-9]{1,15})$", text, re.MULTILINE))
    names = ("hugepages_unused_bytes", "hugepages_unused_percent")
    if "Free" not in counts or "Hugepagesize" not in told:
        return dict.fromkeys(names, NOT_IN_INPUT)
    unused = max(int(counts["Free"]) - int(counts.get("Rsvd", 0)), 0) * told["Hugepagesize"]
    return dict(zip(names, (unused, 100 * unused / told["MemTotal"]), strict=True))


def _promised(told: dict[str, int]) -> Known[float]:
    if not told.get("CommitLimit") or "Committed_AS" not in told:
        return NOT_IN_INPUT
    return 100 * told["Committed_AS"] / told["CommitLimit"]


@probe("os-release", ["cat", "/etc/os-release"], timeout_s=10)
def os_release(text: str) -> str:
    """The pretty name, see os-release(5)."""
    match = re.search(r"^PRETTY_NAME=[\"']?(.*?)[\"']?$", text, re.MULTILINE)
    if not match or not match[1]:
        raise ParseError("expected a line PRETTY_NAME=", 1)
    return match[1]
