"""What most hosts told and one did not: nobody knows whether it is like the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.judge.comparison import Compared, wanted
from preflight.judge.peers import Group, Peer, places, size
from preflight.judge.results import result
from preflight.judge.unlike import by_reason
from preflight.model import Missing, Result, Status


def untold(compared: Compared, status: Status, argument: Any) -> Iterator[Result]:
    """One result for each part and reason, where half of the hosts or more told the part. That the
    host has no such thing is a fact and no gap; of an absent tool only `status`, for it is known
    what to install."""
    for group in compared.groups:
        without = [peer for peer in compared.unknown if peer.reading.like == group.like]
        without = [peer for peer in without if _kind(peer) != "not-applicable"]
        if without and size(group.peers) >= size(without):
            yield from _of_part(compared, status, argument, group, without)


def _kind(peer: Peer) -> str:
    value = peer.reading.value
    return value.kind if isinstance(value, Missing) else ""


def _of_part(
    compared: Compared, status: Status, argument: Any, group: Group, without: list[Peer]
) -> Iterator[Result]:
    check, told = compared.check, f"the other {size(group.peers):,} told it"
    for missing, peers in by_reason(without):
        names = ", ".join(dict.fromkeys(name for peer in peers for name in peer.reading.subjects))
        found = status if missing.kind == "no-tool" else Status.ERROR
        yield result(
            check, places(peers), found, expected=wanted(check, "told", argument),
            reason=f"{names}: {missing.text}; {told}",
        )  # fmt: skip
