"""What every pair of hosts measured, as a map of heat: each as a share of what sound pairs do.

It travels as one entry of a report's `measurements`, a row for each pair, and is drawn from that:
so a stored report shows the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from preflight.facts.collectives import Localisation
from preflight.facts.host import Host
from preflight.model import HostReport, Missing, Status
from preflight.units import format_bytes

#: From so much of the healthy level on a pair is as fast as the others.
SOUND = 0.95
#: The checks whose findings are marked, and what each finds.
_KINDS = {"collectives.host": "host", "collectives.link": "link"}
#: What stands for a pair that was not measured, and for a host with itself.
UNKNOWN, ITSELF = "?", "-"


class Heat(Struct, frozen=True):
    """`shares` of the level by pair, the lesser index first; `culprits`: names of slow hosts, and
    "a to b" of slow links."""

    hosts: tuple[str, ...]
    gbps: dict[tuple[int, int], float]
    level_gbps: float
    culprits: frozenset[str] = frozenset()

    def share(self, a: int, b: int) -> float | None:
        """Of the healthy level; None of a host with itself and of what was not measured."""
        gbps = self.gbps.get((min(a, b), max(a, b)))
        return None if gbps is None or not self.level_gbps else gbps / self.level_gbps

    def is_culprit(self, a: int, b: int | None = None) -> bool:
        """Whether a host, or the link between two, was found to be slow."""
        if b is None:
            return self.hosts[a] in self.culprits
        one, other = self.hosts[a], self.hosts[b]
        return bool({f"{one} to {other}", f"{other} to {one}"} & self.culprits)


def heat_tables(host: Host) -> tuple[dict[str, Any], ...]:
    """The entry of a host that led a search over all pairs; of others there is none."""
    found = host.localisation
    if isinstance(found, Missing) or not found.matrix:
        return ()
    level = found.level_gbps.get("pairs") or median(gbps for _, _, gbps in found.matrix)
    rows = [
        {"host": a, "and": b, "GB/s": round(gbps, 6), "share": round(gbps / level, 4)}
        for a, b, gbps in found.matrix
    ] if level else []  # fmt: skip
    title = f"every pair of hosts, GB/s at {format_bytes(found.size_bytes)}"
    culprits = [{"name": one.name, "kind": one.kind} for one in found.culprits]
    heat = {"level_gbps": level, "hosts": list(_hosts(found)), "culprits": culprits}
    return ({"table": title, "host": host.name, "rows": rows, "heat": heat},) if rows else ()


def marked(
    tables: Iterable[dict[str, Any]], hosts: Iterable[HostReport]
) -> tuple[dict[str, Any], ...]:
    """The tables, the maps among them with what any host was found to be: whoever led a search
    knows of itself and of its own links only."""
    found = {
        one.subject: {"name": one.subject, "kind": _KINDS[one.check]}
        for host in hosts for one in host.results
        if one.check in _KINDS and one.status is Status.FAIL
    }  # fmt: skip
    return tuple(_with(table, found) if "heat" in table else table for table in tables)


def _with(table: dict[str, Any], found: dict[str, dict[str, str]]) -> dict[str, Any]:
    heat = table["heat"]
    known = {one["name"]: one for one in heat["culprits"]}
    return {**table, "heat": {**heat, "culprits": list((known | found).values())}}


def _hosts(found: Localisation) -> Iterator[str]:
    """Those that any pair has, in the order of the ring."""
    seen = {name for a, b, _ in found.matrix for name in (a, b)}
    yield from (name for name in found.hosts if name in seen)
    yield from sorted(seen - set(found.hosts))


def heat_of(table: dict[str, Any]) -> Heat | None:
    """The map of an entry of `measurements`; None where it is another table, or out of order."""
    try:
        told = table["heat"]
        hosts = tuple(map(str, told["hosts"]))
        at = {name: number for number, name in enumerate(hosts)}
        pairs = [(at[str(row["host"])], at[str(row["and"])], float(row["GB/s"]))
                 for row in table["rows"]]  # fmt: skip
        culprits = frozenset(str(one["name"]) for one in told["culprits"])
        level = float(told["level_gbps"])
    except (KeyError, TypeError, ValueError):
        return None
    gbps = {(min(a, b), max(a, b)): rate for a, b, rate in pairs}
    return Heat(hosts, gbps, level, culprits) if hosts and level > 0 else None


def chosen(heat: Heat, most: int) -> list[int]:
    """At most so many hosts, in their order: first those that were found slow, themselves or by a
    link, then those with the slowest pairs."""
    everyone = range(len(heat.hosts))
    if len(heat.hosts) <= most:
        return list(everyone)

    ends = {end for name in heat.culprits for end in name.split(" to ")}

    def urgency(a: int) -> tuple[bool, bool, float, int]:
        shares = [share for b in everyone if (share := heat.share(a, b)) is not None]
        of_link = heat.hosts[a] in ends
        return not heat.is_culprit(a), not of_link, min(shares, default=0.0), a

    return sorted(sorted(everyone, key=urgency)[:most])


def shown(heat: Heat, a: int, b: int) -> str:
    """A pair as one character: . from 95 % on, else tenths."""
    share = heat.share(a, b)
    if a == b:
        return ITSELF
    if share is None:
        return UNKNOWN
    return "." if share >= SOUND else str(min(max(int(share * 10), 0), 9))


def slow(heat: Heat) -> list[str]:
    """What was found slow, in words: the pairs of a link with what they measured."""
    told = []
    for name in sorted(heat.culprits):
        ends = name.split(" to ")
        known = [heat.hosts.index(end) for end in ends if end in heat.hosts]
        share = heat.share(*known) if len(known) == len(ends) == 2 else _of_host(heat, known)
        told.append(name if share is None else f"{name} ({share:.0%})")
    return told


def _of_host(heat: Heat, known: Sequence[int]) -> float | None:
    """The median share of a host's pairs."""
    if len(known) != 1:
        return None
    shares = [heat.share(known[0], b) for b in range(len(heat.hosts))]
    told = [share for share in shares if share is not None]
    return median(told) if told else None


def legend(heat: Heat, hosts: Sequence[int]) -> list[str]:
    """What the characters mean, who is slow, and what was left out."""
    told = [
        f"share of {heat.level_gbps:.3g} GB/s, which sound pairs reach: . 95 % and more, 9 to 0 "
        "tenths of it, ? not measured, * found slow"
    ]
    if culprits := slow(heat):
        told.append(f"slow: {', '.join(culprits[:12])}"
                    + (f" and {len(culprits) - 12} more" if culprits[12:] else ""))  # fmt: skip
    left = len(heat.hosts) - len(hosts)
    if left:
        told.append(
            f"the {len(hosts)} hosts with the slowest pairs; {left} more are left out: "
            "--format json has all pairs"
        )
    return told
