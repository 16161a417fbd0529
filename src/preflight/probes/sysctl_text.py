"""Parameters of the kernel as `sysctl -a` or `sysctl NAME ...` prints them."""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.setup import Sysctl
from preflight.probes.spec import probe
from preflight.probes.sysctls import asked_for, parameter

_PROBE = "sysctl"

_LINE = re.compile(r"([a-z][\w-]{0,40}(?:\.[\w@:/-]{1,120}){1,12})[ \t]*=[ \t]?(.*)", re.ASCII)


@probe(_PROBE, ["sysctl", "-a"], timeout_s=30)
def sysctl(text: str) -> tuple[Sysctl, ...]:
    """`name = value` lines, for a value of several lines the name in each. Of a thousand parameters
    those that this host would be asked for: counters and sizes of memory say nothing."""
    values: dict[str, list[str]] = {}
    first: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if match := _LINE.fullmatch(line.strip()):
            values.setdefault(match[1], []).append(match[2])
            first.setdefault(match[1], number)
    if not values:
        raise ParseError("expected lines such as `vm.swappiness = 60`", 1)
    found = tuple(
        parameter(name.replace(".", "/"), " ".join(told), first[name], _PROBE)
        for name, told in values.items()
        if asked_for(name)
    )
    if not found:
        raise ParseError("none of these parameters is one that training is known to feel", 1)
    return found
