"""Parameters of the kernel as `sysctl -a` or `sysctl NAME ...` prints them."""

from __future__ import annotations

import re

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.setup import Sysctl
from preflight.probes.parameters.sysctls import NAMES, sysctls
from preflight.probes.spec import probe

_PROBE = "sysctl"

#: vm.swappiness = 60, vm.swappiness=60, vm/swappiness = 60, /proc/sys/vm/swappiness:60
_LINE = re.compile(
    r"(?:([a-z][\w-]{0,40}[./][\w./@:-]{1,300}?)[ \t]{0,9}=|/proc/sys/([\w./@-]{1,300}):)"
    r"[ \t]?(.*)",
    re.ASCII,
)
#: In place of a line that tells no parameter, in what a host is asked.
_NOTHING = "-"


@probe(_PROBE, ["sysctl", "-a"], timeout_s=30)
def sysctl(text: str) -> tuple[Sysctl, ...]:
    """`name = value` lines. Of a thousand parameters
    those that a host is asked for: counters and sizes of memory say nothing."""
    lines = text.split("\n")
    values: dict[str, list[str]] = {}
    first: dict[str, int] = {}
    for number, line in enumerate(lines):
        if match := _LINE.fullmatch(line.strip()):
            name = _name(match[1] or match[2])
            values.setdefault(name, []).append(match[3])
            first.setdefault(name, number)
    if not values:
        raise ParseError("expected lines such as `vm.swappiness = 60`", 1)
    if not NAMES & values.keys():
        raise ParseError("none of these parameters is one that training is known to feel", 1)
    asked = [_NOTHING] * len(lines)
    for name in NAMES & values.keys():
        told = dict.fromkeys(value.strip() for value in values[name])
        if len(told) > 1:  # two hosts, or two looks: neither is the one that counts
            raise ParseError(f"{name} stands here as {' and as '.join(told)}", first[name] + 1)
        asked[first[name]] = f"{name.replace('.', '/')}:{next(iter(told))}"
    # As a host answers them, in the lines where they stand here: read in one place.
    found = sysctls("\n".join([*asked, "end"]))
    return tuple(replace(one, probe=_PROBE) for one in found)


def _name(path: str) -> str:
    """A name with its first separator for all: the other kind belongs to a device's name."""
    return path if path.partition("/")[0].count(".") else path.replace("/", ".")
