"""What one host's processes say of the machine: NVLS, plugins, P2P that was refused, GPUDirect."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field

from preflight.facts.nccl import NcclConnection, NcclHost, NcclSelection
from preflight.logs.nccl.lines import Line
from preflight.model import NOT_IN_INPUT, Known, Missing

_REFUSED_MAX = 64
_TEXT_MAX = 120
_NVLS = re.compile(r"NVLS multicast support is (?P<no>not )?available")
_CONNECTED = re.compile(r"Connected (?P<what>all rings|all trees|NVLS tree)")
_COLLNET = re.compile(r"CollNet [^\n]{1,60} via COLLNET/")
_TUNER = re.compile(
    r"TUNER/Plugin: (?:Using (?:tuner plugin )?(?P<name>(?!internal)[\w./-]{1,60})|(?P<none>\w))"
)
_PROFILER = re.compile(
    r"PROFILER/Plugin: (?:Loaded (?P<name>[\w./-]{1,60})|(?P<none>Could not find|\w))"
)
_LOCAL = re.compile(r"\blocalRanks (?P<ranks>\d{1,4})\b(?:[^\n]* MNNVL (?P<on>[01]))?")
_CHANNELS = re.compile(r"\d+ coll channels, [^\n]{0,160}")
_REFUSED = re.compile(
    r"(?:Could not enable P2P between dev|P2P is disabled between connected GPUs) "
    r"(?P<a>[\w()=]{1,20}) and (?:dev )?(?P<b>[\w()=]{1,20})"
)
_NO_GDR = re.compile(r"(?:NET/IB ?: )?GPU ?Direct RDMA Disabled for[^\n]{0,120}")
_OMNIPATH = re.compile(r"hfi\d+_\d+$")
_ONE = Missing("not-applicable", "one process, or one adapter: nothing to spread")
_UNREADY = Missing("not-in-input", "the log ends before all connections were made")
_NO_NET = Missing("not-in-input", "no connection over adapters stands in the log")


class _Host(Struct):
    processes: set[int] = field(default_factory=set)
    lines: int = 0
    line: int = 0
    probe: str = ""
    nvls: Known[bool] = NOT_IN_INPUT
    tuner: Known[str] = NOT_IN_INPUT
    profiler: Known[str] = NOT_IN_INPUT
    mnnvl: Known[bool] = NOT_IN_INPUT
    local_ranks: Known[int] = NOT_IN_INPUT
    channels: Known[str] = NOT_IN_INPUT
    nvls_tree: bool = False
    collnet: bool = False
    connected: set[int] = field(default_factory=set)
    refused: dict[str, None] = field(default_factory=dict)
    gpudirect_off: Known[str] = NOT_IN_INPUT


class Hosts(Struct):
    """All hosts that wrote a line."""

    found: dict[str, _Host] = field(default_factory=dict)

    def count(self, line: Line) -> None:
        """That this process wrote a line."""
        host = self.found.get(line.host)
        if host is None:
            host = self.found[line.host] = _Host(line=line.number, probe=line.probe)
        host.processes.add(line.pid)
        host.lines += 1

    def take(self, line: Line) -> None:
        """One line that tells of the host."""
        host, text = self.found[line.host], line.text
        if nvls := _NVLS.match(text):
            host.nvls = not nvls["no"]
        elif connected := _CONNECTED.match(text):
            host.connected.add(line.pid)
            host.nvls_tree |= connected["what"] == "NVLS tree"
        elif _COLLNET.match(text):
            host.collnet = True
        elif tuner := _TUNER.match(text):
            host.tuner = tuner["name"] or "none"
        elif profiler := _PROFILER.match(text):
            host.profiler = profiler["name"] or "none"
        elif comm := _LOCAL.search(text):
            known = host.local_ranks
            host.local_ranks = max(int(comm["ranks"]), 0 if isinstance(known, Missing) else known)
            host.mnnvl = comm["on"] == "1" or host.mnnvl is True
        elif channels := _CHANNELS.match(text):
            host.channels = channels[0]
        elif (refused := _REFUSED.match(text)) and len(host.refused) < _REFUSED_MAX:
            host.refused[f"{refused['a']} - {refused['b']}"] = None
        elif (off := _NO_GDR.match(text)) and isinstance(host.gpudirect_off, Missing):
            host.gpudirect_off = off[0][:_TEXT_MAX]

    def named(self) -> list[str]:
        """Those that tell their name."""
        return [name for name in self.found if name]


def host_fact(
    name: str, told: _Host, connections: Sequence[NcclConnection],
    selections: Sequence[NcclSelection], known: dict[str, Known[str]], rings: int, trees: int,
    ready: int,
) -> NcclHost:  # fmt: skip
    """One host, from all that its processes said. `known`: its network and plugin; `ready`: how
    many processes have a communicator."""
    shown = selections[0] if selections else told
    kinds = Counter(one.transport for one in connections)
    adapters = {each.name for one in selections for each in one.adapters}
    nets = [one for one in connections if one.transport == "NET"]
    over = [one for one in nets if not one.way.endswith("Socket")]  # FastSocket too
    used = {(one.way, one.adapter) for one in over if isinstance(one.adapter, int)}
    listed = max((len(one.adapters) for one in selections), default=0)
    return NcclHost(
        name, len(told.processes), told.lines, told.local_ranks,
        **known,
        adapters=listed or NOT_IN_INPUT,
        adapters_used=len(used) if over else _NO_NET,
        adapters_used_percent=_percent(len(used), listed, told, ready) if over else _NO_NET,
        omnipath_by_verbs=any(map(_OMNIPATH.match, adapters)) if over and adapters else _NO_NET,
        p2p=kinds["P2P"], shm=kinds["SHM"], net=kinds["NET"],
        net_gpudirect=sum(one.gpudirect for one in nets),
        p2p_refused=tuple(told.refused), gpudirect_off=told.gpudirect_off, nvls=told.nvls,
        nvls_tree=told.nvls_tree, collnet=told.collnet, connected=len(told.connected),
        tuner=told.tuner, profiler=told.profiler, mnnvl=told.mnnvl, channels=told.channels,
        cumem=any("CUMEM" in one.way for one in connections) if connections else NOT_IN_INPUT,
        rings=rings, trees=trees,
        line=shown.line, probe=shown.probe,
    )  # fmt: skip


def _percent(used: int, listed: int, told: _Host, ready: int) -> Known[float]:
    if listed < 2 or len(told.processes) < 2:
        return _ONE
    # Before 2.8 nothing says that all are made, but a communicator is complete only then.
    awaited = told.local_ranks if isinstance(told.local_ranks, int) else 0
    if (len(told.connected) or ready) < max(len(told.processes), awaited):
        return _UNREADY
    return round(min(100.0, 100.0 * used / listed), 1)
