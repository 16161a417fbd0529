"""The files of a port that are many: its addresses and its counters, as grep prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.facts.nics import Gid, NicPort, PortErrors
from preflight.model import NOT_IN_INPUT
from preflight.probes.infiniband.ports import MOST_GIDS, gid_of, number_of

NO_GID = ":".join(["0000"] * 8)
#: Names of the kernel -> folder; hw_counters differ by driver, names by little.
_FIELDS = {
    "counters": (
        "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors",
        "port_xmit_discards", "local_link_integrity_errors", "excessive_buffer_overrun_errors",
        "VL15_dropped",
    ),
    "hw_counters": (
        "out_of_buffer", "out_of_sequence", "packet_seq_err", "local_ack_timeout_err",
        "rx_icrc_encapsulated", "roce_adp_retrans", "np_cnp_sent", "rp_cnp_handled",
    ),
}  # fmt: skip
#: What the shell makes files of.
COUNTERS = tuple(
    f"*/ports/*/{folder}/{name}" for folder, names in _FIELDS.items() for name in names
)
_COUNTED = frozenset(name for names in _FIELDS.values() for name in names)
#: mlx5_0/ports/1/gids/3:fe80:... and mlx5_0/ports/1/gid_attrs/types/3:RoCE v2
_LINE = re.compile(
    r"([\w.-]{1,64})/ports/(\d{1,3})/(gids|gid_attrs/types|gid_attrs/ndevs|counters|hw_counters)"
    r"/(\w{1,40}):(.{0,200})",
    re.ASCII,
)

#: Port -> folder -> file -> number of the line and what stands there.
Tables = dict[str, dict[str, dict[str, tuple[int, str]]]]


def is_table(line: str) -> bool:
    """Whether a line is of such a file."""
    return "/ports/" in line and _LINE.fullmatch(line) is not None


def tables(lines: Iterable[str]) -> Tables:
    """What the lines tell, by ports: mlx5_0/1. Other lines are passed over."""
    found: Tables = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line) if "/ports/" in line else None
        if match:
            of_port = found.setdefault(f"{match[1]}/{match[2]}", {})
            of_port.setdefault(match[3], {})[match[4]] = number, match[5].strip()
    return found


def with_tables(port: NicPort, found: Tables) -> NicPort:
    """The port with its addresses and counters, where they were told."""
    mine = found.get(port.name)
    if mine is None:
        return port
    # Where counters were told addresses were asked for as well; empty ones do not travel.
    return replace(port, gids=_gids(mine), errors=_errors(mine))


def _gids(mine: dict[str, dict[str, tuple[int, str]]]) -> tuple[Gid, ...]:
    kinds, netdevs = mine.get("gid_attrs/types", {}), mine.get("gid_attrs/ndevs", {})
    told = mine.get("gids", {})
    indices = sorted(int(at) for at in told if at.isdecimal() and len(at) < 5)
    found = (
        gid_of(
            at, told[str(at)][1],
            kinds.get(str(at), (0, ""))[1] or NOT_IN_INPUT,
            netdevs.get(str(at), (0, ""))[1] or NOT_IN_INPUT,
        )
        for at in indices if str(at) in told
    )  # fmt: skip
    return tuple(gid for gid in found if gid)[:MOST_GIDS]


def _errors(mine: dict[str, dict[str, tuple[int, str]]]) -> PortErrors:
    told = {**mine.get("hw_counters", {}), **mine.get("counters", {})}
    known = {name: told[name] for name in told if name in _COUNTED}
    values: dict[str, Any] = {name.lower(): _count(text) for name, (_, text) in known.items()}
    first = min((line for line, _ in known.values()), default=0)
    return PortErrors(**values, line=first, probe="nics" if known else "")


def _count(told: str) -> Any:
    """Counters of 64 bits have more digits than other numbers."""
    counted = told.isascii() and told.isdigit() and len(told) <= 20
    return int(told) if counted else number_of(told)


def locate_counter(lines: Sequence[str], start: int, field: str) -> int:
    """The line of a counter of the port whose first counter stands at `start`."""
    port = lines[start - 1].partition("counters/")[0].removesuffix("hw_")
    for number, line in enumerate(lines[start - 1 :], start):
        if line.startswith(port) and line.partition(":")[0].lower().endswith(f"/{field}"):
            return number
    return start
