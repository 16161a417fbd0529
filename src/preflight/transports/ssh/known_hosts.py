"""The known_hosts files, read once for all hosts of a run (format: sshd(8), SSH_KNOWN_HOSTS)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct, field


class KnownKey(Struct, frozen=True):
    """One line that is about a host. `marker`: empty, revoked or cert-authority."""

    kind: str
    blob: bytes
    marker: str
    source: str  # file:line


class KnownHosts(Struct):
    """Lines by the names that they are about; only those of the names asked for are kept."""

    by_name: dict[str, list[KnownKey]] = field(default_factory=dict)

    def of(self, name: str, files: Iterable[Path]) -> list[KnownKey]:
        """The lines about a host, as `name_of` calls it, in the files that hold for that host."""
        asked = {str(file) for file in files}
        return [key for key in self.by_name.get(name, []) if key.source.rpartition(":")[0] in asked]


def name_of(host: str, port: int) -> str:
    """What known_hosts calls a host: with its port where that is not 22."""
    return host if port == 22 else f"[{host}]:{port}"


def read(paths: Iterable[Path], names: Iterable[str]) -> KnownHosts:
    """The lines of these files that are about these names. A file that is not there has none."""
    known = KnownHosts()
    wanted = {name.lower(): name for name in names}
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            _take(line, f"{path}:{number}", wanted, known)
    return known


def _take(line: str, source: str, wanted: dict[str, str], known: KnownHosts) -> None:
    words = line.split()
    marker = words.pop(0)[1:] if words and words[0].startswith("@") else ""
    if len(words) < 3 or words[0].startswith("#"):
        return
    matching = list(_matching(words[0], wanted))
    if not matching:
        return
    try:
        blob = base64.b64decode(words[2], validate=True)
    except binascii.Error:
        return
    for name in matching:
        key = KnownKey(words[1], blob, marker, source)
        known.by_name.setdefault(name, []).append(key)


def _matching(hosts: str, wanted: dict[str, str]) -> Iterator[str]:
    if hosts.startswith("|1|"):
        yield from _hashed(hosts, wanted)
        return
    patterns = hosts.lower().split(",")
    if not re.search(r"[*?!]", hosts):  # nearly all lines: no need to try every name
        yield from (wanted[one] for one in dict.fromkeys(patterns) if one in wanted)
        return
    refused = [one[1:] for one in patterns if one.startswith("!")]
    taken = [one for one in patterns if not one.startswith("!")]
    for lower, name in wanted.items():
        if _fits(lower, taken) and not _fits(lower, refused):
            yield name


def _fits(name: str, patterns: Iterable[str]) -> bool:
    # Brackets stand for themselves here, as in [host]:port.
    return any(fnmatchcase(name, one.replace("[", "[[]")) for one in patterns)


def _hashed(hosts: str, wanted: dict[str, str]) -> Iterator[str]:
    try:
        salt, told = (base64.b64decode(part) for part in hosts[3:].split("|"))
    except ValueError:
        return
    for lower, name in wanted.items():
        if hmac.compare_digest(hmac.digest(salt, lower.encode(), hashlib.sha1), told):
            yield name
            return
