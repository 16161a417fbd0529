"""Who waits for whom, by the dumps of ranks: groups, what is unfinished, who is not there.

A rank is missing in a group where others have reached a collective that it has not entered. Those
who wait for a missing rank may be missed by others in turn: the root is missed and misses nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from preflight.facts.hangs import Dump, DumpEntry


class Stuck(Struct):
    """One group that does not go on. `seq`: the furthest collective that a member has as its first
    unfinished one; `missing`: members that have not entered it; `behind`: members whose device
    finished less than that of others, though they entered it: seq by rank."""

    group: str
    about: str  # what the group is for
    members: tuple[int, ...]
    seq: int
    name: str  # of the collective
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    behind: dict[int, int] = field(default_factory=dict)
    mismatch: str = ""
    since_ns: int = 0  # when the first that waits entered it
    #: Whether its members are known, not only those that have called it.
    sure: bool = True


class Waits(Struct):
    """All of it. `edges`: rank -> ranks that it waits for; `no_dump`: members of groups whose dump
    is not there."""

    stuck: list[Stuck] = field(default_factory=list)
    edges: dict[int, set[int]] = field(default_factory=dict)
    no_dump: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()

    @property
    def missed(self) -> set[int]:
        return {one for ranks in self.edges.values() for one in ranks}

    @property
    def roots(self) -> list[int]:
        """Missed by others, and missing nobody themselves."""
        return sorted(one for one in self.missed if not self.edges.get(one))


def waits_of(dumps: Sequence[Dump]) -> Waits:
    """Dumps without a rank are left out."""
    by_rank = {one.rank: one for one in dumps if one.rank is not None}
    found = Waits(ranks=tuple(sorted(by_rank)))
    members = _members(by_rank)
    found.no_dump = tuple(sorted({r for ranks in members.values() for r in ranks} - set(by_rank)))
    abouts = _abouts(by_rank.values())
    for group, ranks in sorted(members.items()):
        stuck = _stuck(group, abouts.get(group, ""), ranks, by_rank)
        if stuck is None:
            continue
        listed = any(dump.group_ranks.get(group) for dump in dumps)
        stuck.sure = listed or len(ranks) == len(by_rank) > 1  # of all: the default group
        found.stuck.append(stuck)
        for rank in stuck.waiting:
            found.edges.setdefault(rank, set()).update(set(stuck.missing) - {rank})
    _add_pairs(found, by_rank, members)
    return found


def _members(dumps: dict[int, Dump]) -> dict[str, tuple[int, ...]]:
    """By the list of a dump that has it; of a group that no dump lists, who has called it."""
    found: dict[str, tuple[int, ...]] = {}
    for dump in dumps.values():
        for group, ranks in dump.group_ranks.items():
            if len(ranks) > len(found.get(group, ())):
                found[group] = ranks
    for rank, dump in dumps.items():
        for group in {one.group for one in dump.entries} - set(found):
            callers = {rank} | {
                other for other, two in dumps.items() if any(e.group == group for e in two.entries)
            }
            found[group] = tuple(sorted(callers))
    return found


def _abouts(dumps: Iterable[Dump]) -> dict[str, str]:
    return {group: about for dump in dumps for group, about in dump.group_names.items() if about}


def unfinished(dump: Dump, group: str) -> list[DumpEntry]:
    """Collectives of the group that the rank has not finished, oldest first; pairs apart."""
    return sorted(
        (one for one in dump.entries
         if one.group == group and one.state != "completed" and not one.is_p2p),
        key=lambda one: one.seq,
    )  # fmt: skip


def _stuck(
    group: str, about: str, members: tuple[int, ...], dumps: dict[int, Dump]
) -> Stuck | None:
    pending = {
        rank: found for rank in members
        if rank in dumps and (found := unfinished(dumps[rank], group))
    }  # fmt: skip
    if not pending:
        return None
    first = {rank: found[0].seq for rank, found in pending.items()}
    seq = max(first.values())
    entered = {rank: found[-1].seq for rank, found in pending.items()}
    missing = [rank for rank in members if not _is_there(rank, seq, entered, dumps, group, about)]
    at = next((one for found in pending.values() for one in found if one.seq == seq), None)
    behind = {rank: value for rank, value in first.items() if value < seq and rank not in missing}
    behind |= {rank: first[rank] for rank in missing if first.get(rank, seq) < seq}
    return Stuck(
        group, about, members, seq, at.name if at else "",
        tuple(sorted(set(pending) - set(missing))),
        tuple(missing), behind, _mismatch(group, seq, members, dumps), _since(seq, pending),
    )  # fmt: skip


def _since(seq: int, pending: dict[int, list[DumpEntry]]) -> int:
    times = [one.created_ns or 0 for found in pending.values() for one in found if one.seq == seq]
    return min(filter(None, times), default=0)


def _is_there(
    rank: int, seq: int, entered: dict[int, int], dumps: dict[int, Dump], group: str, about: str
) -> bool:
    """Whether a member has entered the collective. Of one without a dump nothing shows it."""
    if rank in entered:
        return entered[rank] >= seq
    if rank not in dumps:
        return False
    finished = [one.seq for one in dumps[rank].entries if one.group == group and not one.is_p2p]
    if finished:
        return max(finished) >= seq
    status = dumps[rank].status.get(group) or dumps[rank].status.get(_number(about, dumps))
    return status is not None and status.enqueued >= seq


def _number(about: str, dumps: dict[int, Dump]) -> str:
    """Under which a rank has the status of a group that none of its entries names: by the number
    that other ranks have for the same purpose, for ranks make their groups in one order."""
    found = {dump.numbers[about] for dump in dumps.values() if about in dump.numbers}
    return f"#{found.pop()}" if len(found) == 1 else ""


def _mismatch(group: str, seq: int, members: tuple[int, ...], dumps: dict[int, Dump]) -> str:
    """How the calls of one number differ between ranks, ended or not; "" where they agree. What
    each rank gives may differ in all-to-all, gathers and scatters."""
    calls = {
        rank: one for rank in members if rank in dumps for one in dumps[rank].entries
        if one.group == group and one.seq == seq and not one.is_p2p
    }  # fmt: skip
    for what, of in (("collective", _name), ("dtype", _dtypes), ("size", _sizes)):
        values: dict[object, list[int]] = {}
        for rank, one in calls.items():
            if (value := of(one)) is not None:
                values.setdefault(value, []).append(rank)
        if len(values) > 1:
            by_count = sorted(values.items(), key=lambda item: -len(item[1]))
            told = [f"{_shown(value)} on rank {_listed(ranks)}{_at(calls[ranks[0]])}"
                    for value, ranks in by_count]  # fmt: skip
            return f"{what} differs: " + "; ".join(told[:3])
    return ""


#: Collectives to which all ranks give as much, of one type.
_EQUAL = ("all_reduce", "allreduce", "broadcast", "reduce_scatter", "_allgather_base",
          "_all_gather_base")  # fmt: skip


def _name(one: DumpEntry) -> object:
    return one.name.rpartition(":")[2]


def _dtypes(one: DumpEntry) -> object:
    return one.input_dtypes if _is_equal(one) and one.input_dtypes else None


def _sizes(one: DumpEntry) -> object:
    """In elements."""
    return sum(map(_product, one.input_sizes)) if _is_equal(one) else None


def _is_equal(one: DumpEntry) -> bool:
    return any(word in one.name for word in _EQUAL)


def _product(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _listed(ranks: Sequence[int]) -> str:
    from preflight.nodesets import fold

    if len(ranks) == 1:
        return str(ranks[0])
    return fold([f"r{one}" for one in ranks]).removeprefix("r").strip("[]")


def _at(one: DumpEntry) -> str:
    """The line of the program that called it, not of torch."""
    own = [frame for frame in one.frames if "/torch/" not in frame] or one.frames
    return f" at {own[0]}" if own else ""


def _add_pairs(found: Waits, dumps: dict[int, Dump], members: dict[str, tuple[int, ...]]) -> None:
    """Sends and receives: who has one open waits for a peer that has not its counterpart open."""
    for rank, dump in dumps.items():
        for peer in _peers(rank, dump, members):
            if peer not in dumps or rank not in set(_peers(peer, dumps[peer], members)):
                found.edges.setdefault(rank, set()).add(peer)


def _peers(rank: int, dump: Dump, members: dict[str, tuple[int, ...]]) -> Iterator[int]:
    import re

    for one in dump.entries:
        match = re.search(r"(send|recv) (\d+)(?:->|<-)(\d+)", one.name)
        if not one.is_p2p or one.state == "completed" or not match:
            continue
        ranks = members.get(one.group, ())
        ends = [ranks[int(at)] for at in match.groups()[1:] if int(at) < len(ranks)]
        yield from (end for end in ends if end != rank)
