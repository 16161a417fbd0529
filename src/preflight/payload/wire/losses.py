"""Packets that were sent once more, by both ends of each way: a packet that is lost between two
hosts does not tell which of them loses it, but with whom else they lose none does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from .sides import Line

#: Percent of the packets of one connection: a sound end loses hardly one.
_LOSSY = 0.5
_OTHER = {"sends": "receives", "receives": "sends"}
_ENDS = (("sends", "from", "to"), ("receives", "to", "from"))


def losses(tests: Sequence[Line]) -> dict[str, Line]:
    """Of each end what is told of it besides: `lost_everywhere_percent`, which the best of all ends
    loses too; and in `peers_lossy` the peers of one that loses with each of them, where each of
    these does so with everybody: then it may be they, or what lies between."""
    lost: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for one in tests:
        if one["tool"] == "tcp" and one["flows"] == 1 and one.get("sent"):
            for way, mine, other in _ENDS:
                lost[one[mine], way][one[other]] = 100 * one["again"] / one["sent"]
    best = {end: min(by.values()) for end, by in lost.items()}
    hosts = dict.fromkeys(host for host, _ in best)
    everywhere = min((max(best.get((host, way), 0.0) for way in _OTHER) for host in hosts),
                     default=0.0)  # fmt: skip
    found: dict[str, Line] = {}
    for host in hosts:
        found[host] = {"lost_everywhere_percent": round(everywhere, 2)}
        lossy = [way for way in _OTHER if best.get((host, way), 0.0) > _LOSSY]
        peers = {(peer, _OTHER[way]) for way in lossy for peer in lost[host, way]}
        if peers and all(best.get(end, 0.0) > _LOSSY for end in peers):
            found[host]["peers_lossy"] = sorted({peer for peer, _ in peers})
    return found
