"""A whole NCCL log, of however many hosts and ranks, in whatever order they wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from preflight.errors import ParseError
from preflight.facts.nccl import NcclConnection, NcclHost, NcclLog, NcclSelection, NcclVersion
from preflight.logs.nccl.connections import Connections
from preflight.logs.nccl.hosts import Hosts, host_fact
from preflight.logs.nccl.lines import Line, lines
from preflight.logs.nccl.networks import Networks
from preflight.logs.nccl.ranks import Ranks
from preflight.logs.nccl.troubles import Troubles
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.nccl_text import LEFT_OUT, VERSION
from preflight.probes.spec import probe

NO_INFO = Missing("not-asked", "the log has no INFO lines: NCCL_DEBUG=INFO was not set")
_VERSION = re.compile(VERSION)
#: What stands in place of lines that a large log has more of.
_LEFT_OUT = re.compile(LEFT_OUT.format(r"(?P<count>\d{1,12})"))
_ELSEWHERE = re.compile(r"[\w/.-]+:\d+ -> \d")


class _Log(Struct):
    """All that is known so far. `by_word`: who reads a line, by its first word."""

    networks: Networks = field(default_factory=Networks)
    connections: Connections = field(default_factory=Connections)
    ranks: Ranks = field(default_factory=Ranks)
    troubles: Troubles = field(default_factory=Troubles)
    hosts: Hosts = field(default_factory=Hosts)
    versions: dict[tuple[str, str], NcclVersion] = field(default_factory=dict)
    count: int = 0
    info: int = 0

    def readers(self) -> dict[str, Callable[[Line], None]]:
        """The first word of a line -> who reads it."""
        ways, nets = self.connections.take, self.networks.take
        return {
            **dict.fromkeys(("Channel", "Ring", "Tree", "Trees", "Pattern"), ways),
            **dict.fromkeys(("NET/Plugin:", "NET/Plugin", "NET/OFI", "NET/Socket", "Using",
                             "NET/FastSocket", "Assigned"), nets),
            **dict.fromkeys(("NVLS", "TUNER/Plugin:", "PROFILER/Plugin:", "Could", "P2P", "GPU",
                             "Connected", "CollNet"), self.hosts.take),
            "comm": self._comm, "NCCL": self.versioned, "RCCL": self.versioned, "NET/IB": self._ib,
        }  # fmt: skip

    def take(self, line: Line, readers: dict[str, Callable[[Line], None]]) -> None:
        """One line."""
        self.count += 1
        if line.level == "VERSION":
            self.versioned(line)
            return
        self.hosts.count(line)
        if line.level != "INFO":
            self.troubles.warned(line)
            return
        self.info += 1
        word, _, _ = line.text.partition(" ")
        other = self.networks.take if word.startswith("NCCL_") else self.other
        readers.get(word, other)(line)

    def _comm(self, line: Line) -> None:
        self.ranks.take(line)
        self.hosts.take(line)

    def _ib(self, line: Line) -> None:
        self.networks.take(line)
        self.hosts.take(line)

    def versioned(self, line: Line) -> None:
        """One line that tells the version, as INFO or bare."""
        if told := _VERSION.match(line.text):
            name = line.host or f"line {line.number}"
            one = NcclVersion(name, told["version"], told["cuda"] or "", line.number, line.probe)
            self.versions.setdefault((line.host, told["version"]), one)

    def other(self, line: Line) -> None:
        """A line whose first word says nothing."""
        if line.text.startswith("ncclComm"):
            self.ranks.take(line)
        elif line.text.startswith("NCCL_"):
            self.networks.take(line)
        elif " coll channels" in line.text:
            self.hosts.take(line)
        elif line.text.startswith("NET/"):
            self._ib(line)
        elif _ELSEWHERE.match(line.text):
            self.troubles.returned(line)


@probe("nccl-log", ["true"])
def nccl_log(text: str) -> NcclLog:
    """The facts of a NCCL log; what stands between its lines is passed over."""
    return nccl_logs([("nccl-log", text)])


def nccl_logs(texts: Iterable[tuple[str, str]]) -> NcclLog:
    """The facts of several logs of one job, such as each process' own: (probe, text)."""
    log = _Log()
    readers = log.readers()
    left_out = 0
    for name, text in texts:
        left_out += sum(int(one["count"]) for one in _LEFT_OUT.finditer(text))
        for line in lines(text, name):
            log.take(line, readers)
    if not log.count:
        raise ParseError("expected lines with `NCCL INFO` or `NCCL WARN`, there is none")
    return _facts(log, left_out)


def _facts(log: _Log, left_out: int) -> NcclLog:
    selections = tuple(log.networks.selections())
    connections = tuple(log.connections.found.values())
    troubles = log.troubles
    none = NOT_IN_INPUT if log.info else NO_INFO
    return NcclLog(
        lines=log.count, info_lines=log.info,
        versions=tuple(log.versions.values()) or none,
        hosts=_hosts(log, connections, selections) or none,
        selections=selections or none,
        communicators=tuple(log.ranks.communicators()) or none,
        ranks=tuple(log.ranks.found.values()) or none,
        connections=connections or none,
        graphs=tuple(log.connections.graphs.values()) or none,
        variables=tuple(log.networks.variables.values()),
        warnings=tuple(troubles.warnings.values()),
        completions=tuple(troubles.completions.values()),
        returns=tuple(troubles.returns.values()),
        comparable_versions=bool(log.info),
        left_out=left_out + log.connections.left_out, probe="nccl-log",
    )  # fmt: skip


def _hosts(
    log: _Log, connections: Sequence[NcclConnection], selections: Sequence[NcclSelection]
) -> tuple[NcclHost, ...]:
    if not log.info:
        return ()
    ways: dict[str, list[NcclConnection]] = {}
    for one in connections:
        ways.setdefault(one.host, []).append(one)
    found = []
    for name in log.hosts.named():
        over = [one.way for one in ways.get(name, []) if one.transport == "NET"]
        known: dict[str, Known[str]] = {
            "network": log.networks.network_of(name, over),
            "plugin": log.networks.plugins.get(name, NOT_IN_INPUT),
            "provider": log.networks.provider_of(name),
            "plugin_version": log.networks.plugin_versions.get(name, NOT_IN_INPUT),
        }
        mine = [one for one in selections if one.host == name]
        found.append(host_fact(
            name, log.hosts.found[name], ways.get(name, []), mine, known,
            log.connections.rings[name], log.connections.trees[name], log.ranks.ready(name),
        ))  # fmt: skip
    return tuple(found)
