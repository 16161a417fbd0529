"""Who is compared with whom: readings of all hosts, sorted by what must be equal (`like`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from preflight.judge.alike import parts
from preflight.judge.readings import Reading
from preflight.model import Missing, Scalar
from preflight.nodesets import fold

#: How many a list names before it counts the rest, and characters of one that a person reads.
_NAMED = 5
_LONG = 100
#: What an element is that most hosts have and this one has not.
ABSENT = "absent"
#: What a field is that most elements of this kind have and this one says it has not.
NOT_THERE = "N/A"


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

    def by_value(self, most: float = 0.0) -> list[list[Peer]]:
        """The peers sorted by value, the most frequent value first; numbers that differ from their
        neighbour by less than the fraction `most` are one."""
        found = parts([peer.value for peer in self.peers], most)
        return sorted(([self.peers[at] for at in part] for part in found), key=size, reverse=True)

    def usual(self, most: float = 0.0) -> list[Peer]:
        """The peers whose value more than half of the elements have; none where there is no such
        value ("mixed")."""
        first = self.by_value(most)[0]
        return first if 2 * size(first) > size(self.peers) else []


def size(peers: Iterable[Peer]) -> int:
    """For how many elements they stand."""
    return sum(peer.count for peer in peers)


def grouped(peers: Iterable[Peer], most: float = 0.0) -> list[Group]:
    """The groups. One whose likeness is not wholly known belongs to each group that it may be of:
    it is put where its value is usual, else with the most. `most`: as for Group.by_value."""
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
    usual = [[peer.value for peer in group.usual(most)] for group in known] if unsure else []
    alone: dict[tuple[Scalar, ...], Group] = {}
    for peer in unsure:
        like = peer.reading.like
        may_be = [at for at, group in enumerate(known) if fits(like, group.like)]
        at = next((at for at in may_be if _is_usual(peer.value, usual[at], most)), None)
        at = may_be[0] if at is None and may_be else at
        group = alone.setdefault(like, Group(like, [])) if at is None else known[at]
        group.peers.append(peer)
    return [*known, *alone.values()]


def _is_usual(value: Scalar, usual: Sequence[Scalar], most: float) -> bool:
    different = list(dict.fromkeys(usual))
    return bool(different) and len(parts([value, *different], most)) == len(parts(different, most))


def fits(one: Sequence[Scalar], of: Sequence[Scalar]) -> bool:
    """Whether the two may be alike: what is not known may be anything."""
    return all(a is None or b is None or a == b for a, b in zip(one, of, strict=True))


def with_absent(groups: Iterable[Group], hosts: Mapping[str, Sequence[Scalar]]) -> None:
    """Add to each group that half or more of the hosts of its kind are in the ones that are not, as
    ABSENT. `hosts`: what each is alike in, None for what is an element's or not known."""
    for group in groups:
        have, like = group.hosts, group.peers[0].reading
        kind = next(iter(hosts[peer.host] for peer in group.peers))
        alike = [host for host, own in hosts.items() if _of_kind(own, kind, hosts.values())]
        absent = [host for host in alike if host not in have]
        if len(absent) <= len(have):
            group.peers += [
                Peer(host, Reading(like.check, ABSENT, like.like, like.subjects)) for host in absent
            ]


def _of_kind(
    own: Sequence[Scalar], kind: Sequence[Scalar], all_kinds: Iterable[Sequence[Scalar]]
) -> bool:
    """Whether a host is of this kind; of one that does not tell, where there is no other kind."""
    return own == kind or (fits(own, kind) and all(fits(each, kind) for each in all_kinds))


def with_not_there(groups: Sequence[Group], peers: Iterable[Peer]) -> None:
    """Add the elements that say they have no such field, as NOT_THERE, to the group that they are
    of, where more than half of it have a value."""
    without: dict[int, list[Peer]] = {}
    for peer in peers:
        like = peer.reading.like
        at = next((at for at, group in enumerate(groups) if fits(like, group.like)), None)
        if at is not None:
            told = Reading(peer.reading.check, NOT_THERE, like, peer.reading.subjects)
            without.setdefault(at, []).append(Peer(peer.host, told))
    for at, found in without.items():
        if size(groups[at].peers) > size(found):
            groups[at].peers += found


def not_applicable(peer: Peer) -> bool:
    """Whether an element itself says that it has no such value."""
    value = peer.reading.value
    return (
        isinstance(value, Missing)
        and value.kind == "not-applicable"
        and bool(peer.reading.subjects)
    )


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
