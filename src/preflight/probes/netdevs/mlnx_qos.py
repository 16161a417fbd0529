"""What a port pauses, and by what it tells priorities: mlnx_qos of MLNX_OFED and DOCA."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.errors import ParseError
from preflight.facts.nics import Netdev, Netdevs
from preflight.model import NOT_IN_INPUT
from preflight.probes.spec import probe

_PROBE = "mlnx-qos"
#: Interfaces that are asked: each is a start of Python.
_MOST = 16
# Of Ethernet ports that do RDMA. The answer does not name its interface, so the question does.
_ASK = f"""\
command -v mlnx_qos >/dev/null || {{ echo 'mlnx_qos is not installed' >&2; exit 127; }}
left={_MOST}
for d in /sys/class/infiniband/*/device/net/*; do
  [ -e "$d/mtu" ] && [ "$left" -gt 0 ] || continue
  t=; {{ read -r t <"$d/type"; }} 2>/dev/null; [ "$t" = 1 ] || continue
  left=$((left - 1)); echo "interface ${{d##*/}}"; mlnx_qos -i "${{d##*/}}" 2>/dev/null
done
echo end"""

_INTERFACE = re.compile(r"^interface (\S{1,32})$", re.ASCII | re.MULTILINE)
_TRUST = re.compile(r"Priority trust state: (pcp|dscp)\b", re.ASCII)
_PRIORITIES = re.compile(r"priority((?:\s+[0-7]){1,8})", re.ASCII)
_ENABLED = re.compile(r"enabled((?:\s+[01]){1,8})", re.ASCII)


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=20, needs_root=True)
def mlnx_qos(text: str) -> Netdevs:
    """`Priority trust state: dscp` and, below `PFC configuration:`, a line of priorities and one
    of as many 0 and 1. It does not name its interface: that is told above it, or not known."""
    found = tuple(_ports(text))
    if not found and text.strip().split("\n")[-1].strip() != "end":
        raise ParseError("expected `PFC configuration:` with its lines priority and enabled", 1)
    return Netdevs(found, probe=_PROBE)


def _ports(text: str) -> Iterator[Netdev]:
    heads = list(_INTERFACE.finditer(text))
    starts = [head.end() for head in heads] or [0]
    for at, start in enumerate(starts):
        end = heads[at + 1].start() if at + 1 < len(heads) else len(text)
        port = _port(heads[at][1] if heads else "the port", text[start:end])
        if port:
            line = text.count("\n", 0, start) + port.line
            yield Netdev(port.name, kind=port.kind, pfc=port.pfc, lossless=port.lossless,
                         trust=port.trust, line=line, probe=_PROBE)  # fmt: skip


def _port(name: str, text: str) -> Netdev | None:
    """One answer; `line` counts within it."""
    trust = _TRUST.search(text)
    priorities, enabled = _PRIORITIES.search(text), _ENABLED.search(text)
    if not (priorities and enabled and len(priorities[1].split()) == len(enabled[1].split())):
        return None
    pairs = zip(priorities[1].split(), enabled[1].split(), strict=True)
    told = tuple(int(number) for number, on in pairs if on == "1")
    return Netdev(name, kind="physical", pfc=told, lossless=bool(told),
                  trust=trust[1] if trust else NOT_IN_INPUT,
                  line=text.count("\n", 0, enabled.start()) + 1)  # fmt: skip
