"""What most hosts told and one did not: nobody knows whether it is like the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.judge.comparison import Compared, wanted
from preflight.judge.peers import Peer, places, size
from preflight.judge.results import result
from preflight.judge.unlike import by_reason
from preflight.model import Missing, Result, Status


def untold(compared: Compared, status: Status, argument: Any) -> Iterator[Result]:
    """One result for each part and reason; parts that the same hosts do not tell for one reason are
    one. `status` is for an absent tool, of which it is known what to do; else it is ERROR."""
    check, phrase = compared.check, wanted(compared.check, "told", argument)
    for missing, peers, others in _gaps(compared):
        names = ", ".join(dict.fromkeys(name for peer in peers for name in peer.reading.subjects))
        found = status if missing.kind == "no-tool" else Status.ERROR
        reason = f"{names}: {missing.text}; the other {others:,} told it"
        yield result(check, places(peers), found, expected=phrase, reason=reason)


def _gaps(compared: Compared) -> Iterator[tuple[Missing, list[Peer], int]]:
    """Why parts are not told, by whom, and how many others told them: of parts that half of the
    hosts or more told. That a host has no such thing is a fact and no gap."""
    found: dict[tuple[Missing, tuple[str, ...]], tuple[list[Peer], list[int]]] = {}
    for group in compared.groups:
        without = [peer for peer in compared.unknown if peer.reading.like == group.like]
        without = [peer for peer in without if not _has_none(peer)]
        if size(group.peers) < size(without):
            continue
        for missing, peers in by_reason(without):
            hosts = tuple(peer.host for peer in peers)
            parts, told = found.setdefault((missing, hosts), ([], []))
            parts += peers
            told.append(size(group.peers))
    for (missing, _), (parts, told) in found.items():
        yield missing, parts, min(told)


def _has_none(peer: Peer) -> bool:
    value = peer.reading.value
    return isinstance(value, Missing) and value.kind == "not-applicable"
