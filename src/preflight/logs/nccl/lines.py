"""The lines of a NCCL log, one for each that a process wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from preflight.nccl_text import HEAD, VERSION

_HEAD = re.compile(HEAD)
_VERSION = re.compile(rf"^{VERSION}[ \t]*$", re.MULTILINE)
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


def lines(text: str) -> Iterator[Line]:
    """All lines in order. Two that ran into each other are two."""
    hosts: dict[int, str] = {}
    number = at = 0
    heads = iter(_HEAD.finditer(text))
    head = next(heads, None)
    number = 1
    while head:
        following = next(heads, None)
        number += text.count("\n", at, head.start())
        end = text.find("\n", head.end())
        end = len(text) if end < 0 else end
        if following and following.start() < end:
            end = following.start()
        yield _line(head, number, text[head.end() : end].rstrip(), hosts)
        at, head = head.start(), following


def versions(text: str) -> Iterator[Line]:
    """The lines of the first rank that have no head: `NCCL version 2.7.8+cuda10.2`."""
    number = at = 0
    for found in _VERSION.finditer(text):
        number += text.count("\n", at, found.start())
        at = found.start()
        yield Line(number + 1, "", 0, 0, -1, "VERSION", f"NCCL version {_told(found)}")


def _told(found: re.Match[str]) -> str:
    return found["version"] + (f"+cuda{found['cuda']}" if found["cuda"] else "")


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
