"""Whose kernel wrote the lines of a log: a log server's file holds those of many hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

#: A host that gets its name while it boots writes the first lines under another one: cloud-init and
#: DHCP take a minute or two.
_RENAMED_S = 300.0

_TIME = (
    r"(?:[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d"
    r"|(?:[A-Z][a-z]{2} )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s,]{0,16}(?: [A-Z]{3,5})?"
    r"|\d{9,11}\.\d{1,9}|\[ *\d{1,12}\.\d{1,9}\])"
)
_SYSLOG = re.compile(
    rf"(?:<\d{{1,4}}>)?{_TIME} (?P<host>[\w.:-]{{1,255}}) (?:[a-z]+\d?\.[a-z]+ )?"
    r"(?:kernel|nv-fabricmanager)(?:\[\d+\])?: "
)
_RFC5424 = re.compile(rf"(?:<\d{{1,4}}>)?1 {_TIME} (?P<host>[\w.:-]{{1,255}}) kernel ")
_JSON = re.compile(r'"_HOSTNAME" ?: ?"(?P<host>[\w.:-]{1,255})"')
_ADDRESS = re.compile(r"[\d.]+|[0-9a-f:]*:[0-9a-f:]*")
#: Names of hosts that have none yet.
_NO_NAME = re.compile(r"localhost\b|(?:none|linux|-)?$")


class Written(Struct, frozen=True):
    """A line: who wrote it and when, and whether it is the first of a boot."""

    host: str
    at_s: float | None
    boot: bool


def host_of(raw: str) -> str:
    """The host that a line names; empty where it names none, or one that has no name yet."""
    json = _JSON.search(raw) if raw.startswith("{") else None
    found = json or _SYSLOG.match(raw) or _RFC5424.match(raw)
    host = found["host"].lower() if found else ""
    return "" if _NO_NAME.match(host) else host


def hosts_of(lines: Sequence[Written]) -> tuple[str, ...]:
    """The hosts of a log's lines; under the names of one host the last one stands for all."""
    named = [line for line in lines if line.host]
    last = {line.host: at for at, line in enumerate(named)}
    found: dict[str, None] = {}
    boot: Written | None = None
    before: Written | None = None
    for at, line in enumerate(named):
        renamed = before and line.host not in found and last[before.host] < at
        if before and renamed and _soon(boot, before, line):
            found.pop(before.host, None)
        found[line.host] = None
        boot = line if line.boot else boot
        before = line
    return distinct(found)


def _soon(boot: Written | None, before: Written, line: Written) -> bool:
    """Whether the name changed while the host was booting."""
    if boot is None or boot.host != before.host or None in (boot.at_s, line.at_s):
        return False
    return 0 <= (line.at_s or 0.0) - (boot.at_s or 0.0) <= _RENAMED_S


def distinct(hosts: Iterable[str]) -> tuple[str, ...]:
    """Without the short name of a host whose full one is there: node01 and node01.cluster."""
    found = tuple(dict.fromkeys(hosts))
    return tuple(one for one in found if not any(_is_short(one, other) for other in found))


def _is_short(one: str, other: str) -> bool:
    return not _ADDRESS.fullmatch(one) and other.startswith(f"{one}.")


def several(hosts: Sequence[str]) -> str:
    """Why a log of several hosts is not judged, and what to do."""
    first, *others = hosts
    more = f" and {len(hosts) - 3} more" if len(hosts) > 3 else ""
    told = ", ".join([first, *others[:2]]) + more
    return (
        f"it holds lines of {len(hosts)} hosts ({told}), and what one does tells nothing of "
        f"another: give each its own file, `grep -w {first} FILE > {first}.log`, "
        f"--from {first}={first}.log"
    )


def written(lines: Iterable[tuple[str, float | None, bool]]) -> Iterator[Written]:
    """The same for the text of lines, their times, and whether they begin a boot."""
    for raw, at_s, boot in lines:
        yield Written(host_of(raw), at_s, boot)
