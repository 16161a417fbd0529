"""Parameters of the kernel as `sysctl -a` or `sysctl NAME ...` prints them."""

from __future__ import annotations

import re

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.setup import Sysctl
from preflight.probes.spec import probe
from preflight.probes.sysctls import NAMES, sysctls

_PROBE = "sysctl"

_LINE = re.compile(r"([a-z][\w-]{0,40}(?:\.[\w@:/-]{1,120}){1,12})[ \t]*=[ \t]?(.*)", re.ASCII)
#: In place of a line that tells no parameter, in what a host is asked.
_NOTHING = "-"


@probe(_PROBE, ["sysctl", "-a"], timeout_s=30)
def sysctl(text: str) -> tuple[Sysctl, ...]:
    """`name = value` lines, for a value of several lines the name in each. Of a thousand parameters
    those that a host is asked for: counters and sizes of memory say nothing."""
    lines = text.split("\n")
    values: dict[str, list[str]] = {}
    first: dict[str, int] = {}
    for number, line in enumerate(lines):
        if match := _LINE.fullmatch(line.strip()):
            values.setdefault(match[1], []).append(match[2])
            first.setdefault(match[1], number)
    if not values:
        raise ParseError("expected lines such as `vm.swappiness = 60`", 1)
    if not NAMES & values.keys():
        raise ParseError("none of these parameters is one that training is known to feel", 1)
    asked = [_NOTHING] * len(lines)
    for name in NAMES & values.keys():
        asked[first[name]] = f"{name.replace('.', '/')}:{' '.join(values[name])}"
    # As a host answers them, in the lines where they stand here: read in one place.
    found = sysctls("\n".join([*asked, "end"]))
    return tuple(replace(one, probe=_PROBE) for one in found)
