"""Which hosts: `node[01-16],ops@login:2222` and files of such lines, to names, each once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from preflight.errors import UsageError
from preflight.nodesets import expand

_HINT = "--hosts 'node[01-16]', --hosts login,ops@db1:2222, or --hostfile FILE with one a line"
#: Commas within brackets belong to the node set.
_COMMA = re.compile(r",(?![^\[\]]*\])")
_HOST = re.compile(r"(.+?)(?::(\d{1,5}))?")
_IPV6 = re.compile(r"\[?([0-9a-fA-F]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(?:%\w+)?)\]?(?::(\d{1,5}))?")


class Target(Struct, frozen=True):
    """A host to ask. `name` is what reports call it; user and port only where they were given."""

    name: str
    host: str
    user: str | None = None
    port: int | None = None


class Hosts(Struct):
    """The hosts in the order given, and which were named more than once."""

    targets: list[Target]
    repeated: list[str]


def parse(texts: Iterable[str]) -> Hosts:
    """The hosts that the texts stand for; UsageError for one that is no host."""
    found: dict[str, Target] = {}
    repeated: dict[str, None] = {}
    for text in texts:
        for part in _COMMA.split(text):
            for target in _targets(part.strip()) if part.strip() else ():
                if found.setdefault(target.name, target) is not target:
                    repeated[target.name] = None
    return Hosts(list(found.values()), list(repeated))


def lines(text: str) -> list[str]:
    """The hosts of a hostfile: all words of each line but MPI's `slots=8`; # begins a comment.

    A machine file names a host once for each of its slots: that is no mistake there.
    """
    words = (word for line in text.splitlines() for word in line.partition("#")[0].split())
    return list(dict.fromkeys(word for word in words if "=" not in word))


def _targets(text: str) -> Iterator[Target]:
    user, at, rest = text.rpartition("@")
    address = _IPV6.fullmatch(rest)
    if address:
        names, port = [address[1]], address[2]
    else:
        match = _HOST.fullmatch(rest)
        names, port = (expand(match[1]), match[2]) if match else ([], None)
    if not names or (at and not re.fullmatch(r"[\w.$-]+", user)):
        raise UsageError(f"{text!r} is no host", _HINT)
    if port is not None and not 1 <= int(port) <= 65535:
        raise UsageError(f"{text!r}: there is no port {port}", _HINT)
    for name in names:
        shown = f"[{name}]" if port and address else name
        yield Target(
            f"{shown}:{port}" if port else name, name, user or None, int(port) if port else None
        )
