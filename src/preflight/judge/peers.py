"""Who is compared with whom: readings of all hosts, sorted by what must be equal (`like`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from preflight.judge.operators import majority
from preflight.judge.readings import Reading
from preflight.model import Scalar
from preflight.nodesets import fold

#: How many a list names before it counts the rest, and characters of one that a person reads.
_NAMED = 5
_LONG = 100
#: What an element is that most hosts have and this one has not.
ABSENT = "absent"


class Peer(Struct, frozen=True, gc=False):
    """One reading and its host."""

    host: str
    reading: Reading

    @property
    def value(self) -> Scalar:
        """The value; only readings that have one are compared."""
        return self.reading.value  # type: ignore[return-value]

    @property
    def count(self) -> int:
        """For how many elements it stands; a host's own fact is one."""
        return len(self.reading.subjects) or 1


class Group(Struct):
    """Peers that are compared with each other: all alike in `like`."""

    like: tuple[Scalar, ...]
    peers: list[Peer]

    @property
    def hosts(self) -> set[str]:
        return {peer.host for peer in self.peers}

    def values(self) -> list[Scalar]:
        """One value for each element."""
        return [peer.value for peer in self.peers for _ in range(peer.count)]

    def by_value(self) -> list[list[Peer]]:
        """The peers sorted by value, the most frequent value first."""
        sorts: dict[tuple[object, ...], list[Peer]] = {}
        for peer in self.peers:
            sorts.setdefault((type(peer.value), peer.value), []).append(peer)
        return sorted(sorts.values(), key=size, reverse=True)


def size(peers: Iterable[Peer]) -> int:
    """For how many elements they stand."""
    return sum(peer.count for peer in peers)


def grouped(peers: Iterable[Peer]) -> list[Group]:
    """The groups. One whose likeness is not wholly known belongs to each group that it may be of:
    it is put where its value is usual, else with the most."""
    groups: dict[tuple[object, ...], Group] = {}
    unsure: list[Peer] = []
    for peer in peers:
        like = peer.reading.like
        if None in like:
            unsure.append(peer)
        else:
            key = (*map(type, like), *like)
            groups.setdefault(key, Group(like, [])).peers.append(peer)
    known = sorted(groups.values(), key=lambda group: -size(group.peers))
    usual = [majority(group.values()) for group in known]
    alone: dict[tuple[Scalar, ...], Group] = {}
    for peer in unsure:
        may_be = [at for at, group in enumerate(known) if _fits(peer.reading.like, group.like)]
        at = next((at for at in may_be if usual[at] == peer.value), may_be[0] if may_be else None)
        like = peer.reading.like
        group = alone.setdefault(like, Group(like, [])) if at is None else known[at]
        group.peers.append(peer)
    return [*known, *alone.values()]


def _fits(like: Sequence[Scalar], of: Sequence[Scalar]) -> bool:
    return all(one is None or one == other for one, other in zip(like, of, strict=True))


def with_absent(groups: Iterable[Group], hosts: Sequence[str]) -> None:
    """Add to each group that most of the hosts are in the ones that are not, as ABSENT."""
    for group in groups:
        have, like = group.hosts, group.peers[0].reading
        if 2 * len(have) <= len(hosts):
            continue
        group.peers += [
            Peer(host, Reading(like.check, ABSENT, like.like, like.subjects))
            for host in hosts
            if host not in have
        ]


def places(peers: Iterable[Peer]) -> str:
    """`node[07,09] gpu[0-7], node12 gpu3`."""
    subjects: dict[str, dict[str, None]] = {}
    for peer in peers:
        subjects.setdefault(peer.host, {}).update(dict.fromkeys(peer.reading.subjects))
    alike: dict[tuple[str, ...], list[str]] = {}
    for host, names in subjects.items():
        alike.setdefault(tuple(names), []).append(host)
    return ", ".join(
        f"{folded(tuple(hosts))} {folded(names)}".strip() for names, hosts in alike.items()
    )


def briefly(peers: Sequence[Peer]) -> str:
    """The same where it is short, else how many hosts."""
    text = places(peers)
    hosts = {peer.host for peer in peers}
    return text if len(text) <= _LONG else f"{len(hosts):,} hosts"


@lru_cache(maxsize=64)  # the hosts that a check compares are mostly those of the next one
def folded(names: tuple[str, ...]) -> str:
    """`node[001-128]`."""
    return fold(names)


def listed(parts: Sequence[str]) -> str:
    """The first of the parts, and how many there are besides."""
    more = len(parts) - _NAMED
    return "; ".join([*parts[:_NAMED], *([f"and {more:,} more"] if more > 0 else [])])
