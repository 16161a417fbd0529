"""The lines of a NCCL log, one for each that a process wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from preflight.nccl_text import HEAD, VERSION
from preflight.probes.kernel_log.gaps import GAP, skipped

_HEAD = re.compile(HEAD)
_GLUED = re.compile(HEAD.replace(r"(?<![\w.-])", "", 1))
_VERSION = re.compile(rf"{VERSION}[ \t]*$")
#: Hosts whose names are looked for at the end of others.
_HOSTS_MAX = 100_000


class Line(NamedTuple):
    """One line: who wrote it, and what. `number` counts from 1; pid 0: it does not tell."""

    number: int
    host: str
    pid: int
    tid: int
    device: int
    level: str  # INFO | WARN | ABORT | VERSION
    text: str
    probe: str = "nccl-log"  # nccl-log#2: of the second file

    @property
    def process(self) -> tuple[str, int]:
        """Which process wrote it."""
        return self.host, self.pid

    @property
    def subject(self) -> str:
        """How a person is told who wrote it."""
        if not self.host:
            return f"line {self.number}"
        return self.host if self.device < 0 else f"{self.host} gpu{self.device}"


def lines(text: str, probe: str = "nccl-log") -> Iterator[Line]:
    """All lines in order. Two that ran into each other are two."""
    hosts: dict[int, str] = {}
    seen: set[str] = set()  # hosts that a line began with
    number = 0
    for raw in text.split("\n"):
        number += skipped(raw) or 1
        if not raw or raw[0] == GAP:
            continue
        if head := _HEAD.match(raw):
            for line in _written(raw, head, number, hosts, seen):
                yield line if probe == line.probe else line._replace(probe=probe)
        elif found := _VERSION.match(raw):
            cuda = f"+cuda{found['cuda']}" if found["cuda"] else ""
            yield Line(
                number, "", 0, 0, -1, "VERSION", f"NCCL version {found['version']}{cuda}", probe
            )


def _written(
    raw: str, head: re.Match[str], number: int, hosts: dict[int, str], seen: set[str]
) -> Iterator[Line]:
    while raw.find("NCCL ", head.end()) >= 0 and (second := _HEAD.search(raw, head.end())):
        begin = second.start() + _glued(second, hosts, seen)
        yield _line(head, number, raw[head.end() : begin].rstrip(), hosts)
        head = _GLUED.match(raw, begin) or second
    if head.start() == 0 and head["host"] and len(seen) < _HOSTS_MAX:
        seen.add(head["host"])
    yield _line(head, number, raw[head.end() :].rstrip(), hosts)


def _glued(head: re.Match[str], hosts: dict[int, str], seen: set[str]) -> int:
    """How much of a host's name is the end of the line before: `GDRDMAnode-02:41003:...`."""
    if head["host"] is None:
        return 0
    known = hosts.get(int(head["pid"]), "")
    names = [known, *sorted(seen, key=len, reverse=True)]
    own = next((name for name in names if name and head["host"].endswith(name)), head["host"])
    return len(head["host"]) - len(own)


def _line(head: re.Match[str], number: int, text: str, hosts: dict[int, str]) -> Line:
    if head["host"] is None:
        return Line(number, "", 0, 0, -1, head["level"], text)
    pid = int(head["pid"])
    host = head["host"]
    known = hosts.get(pid, "")
    if known and host != known and host.endswith(known):  # the end of another's line before it
        host = known
    elif (known and known.endswith(host)) or (not known and len(hosts) < _HOSTS_MAX):
        hosts[pid] = host
    device = int(head["device"]) if head["device"] else -1
    text = f"{head['place']}{text}" if head["place"] else text
    return Line(number, host, pid, int(head["tid"]), device, head["level"], text)
