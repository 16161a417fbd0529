"""Each end of the links beside the others: what it carries at best, and how far that is behind.

A slow link has two ends. An end is behind where it is slow with everybody; then the others are not
held against it. A link is behind where both of its ends are fast with others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from .losses import losses
from .sides import Line

#: Fewer hosts have no level: of two neither can be told from the other.
_LEAST = 3
#: An end that is behind by less is one that others can be held against.
_BEHIND = 0.25
#: From this share of a processor's time on it was the processor that limited a test: the sender of
#: a loopback, which nothing else limits, is at work for 0.7 to 0.9 of a test.
BOUND = 0.65

#: A way and a number of connections: ("sends", 1).
_Kind = tuple[str, int]
_WAYS = (("sends", "from", "to"), ("receives", "to", "from"))


class Rates:
    """Of one rail: Gbit/s of each end, by kind and by the end at the other side."""

    def __init__(self, tests: Sequence[Line]) -> None:
        self.of: dict[str, dict[_Kind, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        self.bound: set[tuple[str, _Kind, str]] = set()
        self.nics: dict[str, str] = {}
        for one in tests:
            for way, mine, other in _WAYS:
                kind = (way, int(one["flows"]))
                self.of[one[mine]][kind][one[other]] = float(one.get("median_gbits", 0.0))
                if one.get("busy", 0.0) >= BOUND:
                    self.bound.add((one[mine], kind, one[other]))
            self.nics[one["from"]] = one.get("nic") or self.nics.get(one["from"], "")
        self.best = {host: {kind: max(by.values()) for kind, by in kinds.items()}
                     for host, kinds in self.of.items()}  # fmt: skip
        kinds = {kind for by in self.best.values() for kind in by}
        self.level = {} if len(self.best) < _LEAST else {
            kind: _level([by[kind] for by in self.best.values() if kind in by]) for kind in kinds
        }  # fmt: skip

    def behind(self, kind: _Kind, gbits: float) -> float:
        """A share of the level; 0 where there is none."""
        level = self.level.get(kind, 0.0)
        return max(0.0, 1 - gbits / level) if level else 0.0

    def worst(self, host: str) -> _Kind:
        """In which it is most behind."""
        best = self.best[host]
        return max(best, key=lambda kind: self.behind(kind, best[kind]))

    def is_behind(self, host: str) -> bool:
        kind = self.worst(host)
        return self.behind(kind, self.best[host][kind]) >= _BEHIND

    def is_bound(self, host: str, kind: _Kind) -> bool:
        """Whether processors limited the best of a kind."""
        by = self.of[host][kind]
        return (host, kind, max(by, key=lambda peer: by[peer])) in self.bound


def _level(gbits: Sequence[float]) -> float:
    """What three of four do not exceed: more of them may be slow than not, and none is alone in
    being fast, which takes two."""
    return sorted(gbits)[int(0.75 * (len(gbits) - 1) + 0.5)]


def ends(tests: Sequence[Line]) -> Iterator[Line]:
    """A line for each end of each rail, and one for each link between two that are not behind."""
    rails: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for one in tests:
        counts = "median_gbits" in one or "trouble" in one
        alone = not one.get("together") and one.get("memory", "host") == "host"
        trips = not one["tool"] or one["tool"].endswith("_lat")
        if counts and alone and one["from"] != one["to"] and not trips:
            family = "tcp" if one["tool"] == "tcp" else "rdma"
            rails[family, one["rail"]].append(one)
    for (family, rail), mine in sorted(rails.items()):
        if any("median_gbits" in one for one in mine):
            rates, lost = Rates(mine), losses(mine)
            for host in rates.best:
                yield {**_end(rates, host), **lost.get(host, {}), "tool": family, "rail": rail}
            for line in _links(rates):
                yield {**line, "tool": family, "rail": rail}


def _end(rates: Rates, host: str) -> Line:
    kind = rates.worst(host)
    gbits = rates.best[host][kind]
    peers = {peer for by in rates.of[host].values() for peer in by}
    behind = sorted(peer for peer in peers if rates.is_behind(peer))
    told: Line = {
        "kind": "wire_end", "of": host, "nic": rates.nics.get(host, ""),
        "gbits": {_named(one): round(value, 4) for one, value in rates.best[host].items()},
        "bound": [_named(one) for one in rates.best[host] if rates.is_bound(host, one)],
        "peers_behind": behind, "behind_from_percent": 100 * _BEHIND,
        "bound_from_percent": 100 * BOUND,
    }  # fmt: skip
    if not rates.level:
        return told
    told |= {"behind_percent": round(100 * rates.behind(kind, gbits), 1), "where": _named(kind),
             "level_gbits": round(rates.level[kind], 4)}  # fmt: skip
    alone = rates.is_behind(host) and not peers - set(behind)
    why = f"all that it was timed with are behind too ({', '.join(behind)})"
    return (
        {**told, "undetermined": f"{why}: --pairwise tries it with the others"} if alone else told
    )


def _links(rates: Rates) -> Iterator[Line]:
    """To both ends: by how much the slower way or number of connections is behind."""
    worst: dict[tuple[str, str], tuple[float, _Kind, float]] = {}
    for host, kinds in rates.of.items():
        for kind, by in kinds.items():
            for peer, gbits in by.items():
                apart = rates.is_behind(host) or rates.is_behind(peer)
                if kind[0] == "sends" and rates.level and not apart:
                    bound = (host, kind, peer) in rates.bound
                    told = (0.0 if bound else rates.behind(kind, gbits), kind, gbits)
                    worst[host, peer] = max(worst.get((host, peer), told), told)
    for (host, peer), (behind, kind, gbits) in worst.items():
        for of in (host, peer):
            yield {"kind": "wire_link", "of": of, "from": host, "to": peer, "flows": kind[1],
                   "gbits": round(gbits, 4), "level_gbits": round(rates.level[kind], 4),
                   "behind_percent": round(100 * behind, 1)}  # fmt: skip


def _named(kind: _Kind) -> str:
    return f"{kind[0]}, {kind[1]} {'flow' if kind[1] == 1 else 'flows'}"
