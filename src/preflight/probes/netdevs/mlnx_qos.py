"""What a port pauses, and by what it tells priorities: mlnx_qos of MLNX_OFED and DOCA."""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.nics import Netdev, Netdevs
from preflight.model import NOT_IN_INPUT
from preflight.probes.spec import probe

_PROBE = "mlnx-qos"
_TRUST = re.compile(r"Priority trust state: (pcp|dscp)\b", re.ASCII)
_PRIORITIES = re.compile(r"priority((?:\s+[0-7]){1,8})", re.ASCII)
_ENABLED = re.compile(r"enabled((?:\s+[01]){1,8})", re.ASCII)


@probe(_PROBE, ["mlnx_qos"], timeout_s=20)
def mlnx_qos(text: str) -> Netdevs:
    """`Priority trust state: dscp` and, below `PFC configuration:`, a line of priorities and one
    of as many 0 and 1. It does not name its interface."""
    trust = _TRUST.search(text)
    priorities, enabled = _PRIORITIES.search(text), _ENABLED.search(text)
    if not (priorities and enabled and len(priorities[1].split()) == len(enabled[1].split())):
        raise ParseError("expected `PFC configuration:` with its lines priority and enabled", 1)
    pairs = zip(priorities[1].split(), enabled[1].split(), strict=True)
    line = text.count("\n", 0, enabled.start()) + 1
    told = tuple(int(number) for number, on in pairs if on == "1")
    port = Netdev("the port", kind="physical", pfc=told, lossless=bool(told),
                  trust=trust[1] if trust else NOT_IN_INPUT, line=line, probe=_PROBE)  # fmt: skip
    return Netdevs((port,), probe=_PROBE)
