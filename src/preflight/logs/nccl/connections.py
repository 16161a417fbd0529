"""The ways from rank to rank, and the rings, trees and graphs that they serve."""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Struct, field
from msgspec.structs import replace

from preflight.facts.nccl import NcclConnection, NcclGraph
from preflight.logs.nccl.lines import Line
from preflight.model import NOT_IN_INPUT

#: More are counted with their host and not kept one by one.
CONNECTIONS_MAX = 50_000
_GRAPHS_MAX = 1_000
#: Channel 00/0 : 0[1d000] -> 1[1e000] [send] via NET/IB/0(8)/GDRDMA/Shared; in 2.4 Ring 00 : 3 -> 0
_VIA = re.compile(
    r"(?:Channel|Ring|Tree) \d+(?:/\d+)? ?: (?P<source>\d+)(?:\[(?P<from>[\da-f]+)\])? -> "
    r"(?P<target>\d+)(?:\[(?P<to>[\da-f]+)\])?(?: \[(?P<direction>send|receive)\])? "
    r"via (?P<via>[^\n]{1,120})"
)
_NET = re.compile(
    r"NET/(?P<net>[^/\n]{1,60})/(?P<adapter>\d+)(?:\((?P<proxy>\d+)\))?(?P<rest>(?:[/(][^\n]*)?)$"
)
_ORDER = re.compile(r"(?:Channel|Ring) \d+(?:/\d+)? ?: +\d+(?: +\d+)*$")
_TREES = re.compile(r"\[\d+\] ")
_PATTERN = re.compile(
    r"Pattern (?P<pattern>\d+), crossNic \d+, nChannels (?P<channels>\d+), (?:bw|speed) "
    r"[\d.]+/[\d.]+, type (?P<intra>\w+)/(?P<inter>\w+)"
)
#: Words of old versions for what is called SHM and P2P now.
_OLD = {
    "direct shared memory": ("SHM", "direct"),
    "P2P/direct pointer": ("P2P", "direct pointer"),
}


class Connections(Struct):
    """What all processes said of their connections."""

    found: dict[tuple[object, ...], NcclConnection] = field(default_factory=dict)
    left_out: int = 0
    rings: Counter[str] = field(default_factory=Counter)
    trees: Counter[str] = field(default_factory=Counter)
    graphs: dict[tuple[object, ...], NcclGraph] = field(default_factory=dict)

    def take(self, line: Line) -> None:
        """One line that begins with Channel, Ring, Tree, Trees or Pattern."""
        if via := _VIA.match(line.text):
            self._via(line, via)
        elif _ORDER.match(line.text):
            self.rings[line.host] += 1
        elif line.text.startswith("Tree"):
            self.trees[line.host] += max(1, len(_TREES.findall(line.text)))
        elif graph := _PATTERN.search(line.text):
            key = (line.host, *graph.groups())
            if len(self.graphs) < _GRAPHS_MAX:
                self.graphs.setdefault(key, _graph(line, graph))

    def _via(self, line: Line, via: re.Match[str]) -> None:
        key = (*line.process, via["source"], via["from"], via["target"], via["to"],
               via["direction"], via["via"])  # fmt: skip
        known = self.found.get(key)
        if known:
            self.found[key] = replace(known, channels=known.channels + 1)
        elif len(self.found) < CONNECTIONS_MAX:
            self.found[key] = _connection(line, via)
        else:
            self.left_out += 1


def _connection(line: Line, via: re.Match[str]) -> NcclConnection:
    net = _NET.match(via["via"])
    transport, way = _told(via["via"]) if net is None else ("NET", net["net"])
    ends = f"rank {via['source']} -> {via['target']}"
    return NcclConnection(
        f"{line.host} {ends}" if line.host else f"line {line.number}, {ends}",
        line.host, line.device, int(via["source"]), int(via["target"]), transport, way,
        via["from"] or "", via["to"] or "", via["direction"] or "",
        int(net["adapter"]) if net else NOT_IN_INPUT,
        "GDRDMA" in via["via"],
        int(net["proxy"]) if net and net["proxy"] else NOT_IN_INPUT,
        1, line.number, line.probe,
    )  # fmt: skip


def _told(via: str) -> tuple[str, str]:
    via = via.strip()
    for old, new in _OLD.items():
        if via.startswith(old):
            return new
    transport, _, way = via.partition("/")
    return transport.split(" ")[0], way


def _graph(line: Line, graph: re.Match[str]) -> NcclGraph:
    return NcclGraph(
        line.host or f"line {line.number}", graph["pattern"], int(graph["channels"]),
        graph["intra"], graph["inter"], line.number, line.probe,
    )  # fmt: skip
