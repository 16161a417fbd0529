"""A run that stands still, or ended: its root, what is only the echo, what is not confirmed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.hang.members import Member
from preflight.diagnosis.hang.stack_words import told_by_stacks
from preflight.diagnosis.hang.supply import DUMPS
from preflight.diagnosis.hang.waits import Stuck, Waits, waits_of
from preflight.diagnosis.hang.words import crash_signs, log_hang_signs, speaks_of_hang
from preflight.diagnosis.reading import Lack, Reading, Sign
from preflight.facts.hangs import Dump, StackFile
from preflight.facts.series import Log
from preflight.logs.hangs.stacks import rank_of
from preflight.model import Evidence

_STACKS = "on the host of rank {rank}: py-spy dump --pid PID --native, and its log"


def reading(facts: dict[str, list[Any]], asked: Asked) -> Reading | None:
    """None where neither dumps, stacks, nor words of a hang or an error are there."""
    dumps: list[Dump] = facts.get("flight-recorder", [])
    logs: list[Log] = [one for one in facts.get("log", []) if speaks_of_hang(one)]
    files: list[StackFile] = facts.get("stacks", [])
    if not dumps and not logs and not files:
        return None
    lacks: list[Lack] = []
    notes: list[str] = []
    signs = [*_of_dumps(dumps, lacks), *log_hang_signs(logs, lacks, has_dumps=bool(dumps))]
    signs, moves = _with_stacks(signs, files, logs, lacks, notes)
    signs = _with_crashes(signs, list(crash_signs(logs)))
    notes += [f"{one.source}: whose rank it is does not show in its name" for one in dumps
              if one.rank is None][:3]  # fmt: skip
    sound = (dumps or moves) and not signs and not lacks
    return Reading(
        _input(dumps, files, logs), signs=tuple(signs), lacks=tuple(lacks), notes=tuple(notes),
        covers=frozenset({"hang"}) if sound else frozenset(),
    )  # fmt: skip


def _input(dumps: Sequence[Dump], files: Sequence[StackFile], logs: Sequence[Log]) -> str:
    named = ((len(dumps), "flight-recorder dump(s)"), (len(files), "file(s) of stacks"),
             (len(logs), "log(s)"))  # fmt: skip
    return " and ".join(f"{count} {name}" for count, name in named if count)


def _with_stacks(
    signs: list[Sign], files: Sequence[StackFile], logs: Sequence[Log], lacks: list[Lack],
    notes: list[str],
) -> tuple[list[Sign], bool]:  # fmt: skip
    """With what stacks say: of a rank that is named already its place; else who is elsewhere.
    Whether all that they show moves."""
    own = [*files, *(one for log in logs if (one := _after_steps(log)) is not None)]
    if not own:
        return signs, False
    more: list[Lack] = []
    told = told_by_stacks(own, more, notes, hangs=any(one.cause == "hang" for one in signs))
    named = {one.subject for one in signs} - {""}
    bare = bool(files) or not any(log.series for log in logs)
    lacks += more if bare and not named else []
    if named:
        others = [one for one in told.signs if one.subject and one.subject not in named]
        return [*(_placed(one, told.members) for one in signs), *others], told.moves
    if any(one.subject for one in told.signs):  # what only says that somebody is awaited
        lacks[:] = [one for one in lacks if one.causes != ("hang",)]
    return [*signs, *told.signs], told.moves


def _placed(sign: Sign, members: Sequence[Member]) -> Sign:
    """With where the rank is that it names."""
    one = next((each for each in members if each.name == sign.subject), None)
    if one is None:
        return sign
    look = one.last
    at = Evidence("stacks", text=look.place.site, line=look.line, source=look.source)
    return replace(sign, text=f"{sign.text}; by its stack it {look.place.text}",
                   evidence=(*sign.evidence, at))  # fmt: skip


def _with_crashes(signs: list[Sign], crashes: list[Sign]) -> list[Sign]:
    """The words of a log for a fatal error are those of the stack that follows it."""
    found = []
    for one in signs:
        own = [two for two in crashes if one.cause == "crash" and _is_fatal(two, one)]
        if own:
            fix = (*own[0].fix, *one.fix[1:])
            one = replace(one, text=f"{one.text}. {own[0].text}", fix=fix)
        found.append(one)
        crashes = [two for two in crashes if two not in own]
    return [*found, *crashes]


def _is_fatal(crash: Sign, died: Sign) -> bool:
    first, second = crash.evidence[0], died.evidence[0]
    return first.source == second.source and "Fatal Python error" in first.text


def _after_steps(log: Log) -> StackFile | None:
    """Stacks in a log, where no step follows them."""
    last = max((one.line[-1] for one in log.series if one.line), default=0)
    ends = tuple(one for one in log.stacks if one.line > last)
    return StackFile(log.source, "faulthandler", ends, rank_of(log.source)) if ends else None


def _of_dumps(dumps: Sequence[Dump], lacks: list[Lack]) -> Iterator[Sign]:
    waits = waits_of(dumps)
    if dumps and (not waits.ranks or not any(one.entries or one.status for one in dumps)):
        text = "no dump tells of which rank it is" if not waits.ranks else "the dumps are empty"
        lacks.append(Lack(("hang",), text, DUMPS))
    if waits.no_dump:
        text = f"no dump of {len(waits.no_dump)} ranks: {', '.join(map(str, waits.no_dump[:8]))}"
        lacks.append(Lack(("hang",), text, DUMPS))
    if not waits.stuck and not waits.edges:
        return
    by_rank = {one.rank: one for one in dumps if one.rank is not None}
    diverged = next((one for one in waits.stuck if one.mismatch), None)
    ahead = [one for one in waits.stuck if 1 < len(one.missing) > len(one.waiting)]
    # More dumps lacking than given: they were not collected, rather than not written.
    uncollected = len(waits.no_dump) > len(waits.ranks)
    if diverged is not None:
        yield _diverged(diverged, by_rank)
    elif uncollected or (ahead and len(ahead) == len([one for one in waits.stuck if one.missing])):
        yield _unknown_root(waits, by_rank, uncollected=uncollected)
    elif waits.roots:
        yield from (_root(rank, waits, by_rank) for rank in waits.roots[:8])
    elif waits.missed:
        yield _crossed(waits, by_rank)
    elif any(not one.sure for one in waits.stuck):
        yield _apart([one for one in waits.stuck if not one.sure], by_rank)
    else:
        yield from _all_there(waits, by_rank)


def _unknown_root(waits: Waits, dumps: dict[int, Dump], *, uncollected: bool) -> Sign:
    """Somebody waits; who is to blame cannot be told from what is there."""
    stuck = max(waits.stuck, key=lambda one: len(one.missing))
    who = ", ".join(map(str, stuck.waiting[:8]))
    missing = ", ".join(map(str, stuck.missing[:8]))
    text = f"rank {who} waits in {_about(stuck)}, and rank {missing} has not entered it"
    why = f"unconfirmed: most are elsewhere, so that rank {who} may have called it alone"
    if uncollected:
        whole = len(waits.ranks) + len(waits.no_dump)
        why = f"{len(waits.ranks)} of {whole} dumps are there: which is the root is not known"
    return Sign("hang", f"{text}; {why}", confidence="medium", evidence=_evidence(
        stuck.waiting, dumps, f"waits in {_about(stuck)}"), against=("no rank is named for it",),
        fix=(DUMPS if uncollected else "py-spy dump --pid PID on both: what each of them does",),
    )  # fmt: skip


def _about(stuck: Stuck) -> str:
    group = f"{stuck.about} ({stuck.group})" if stuck.about else f"group {stuck.group}"
    return f"{stuck.name or 'a collective'} number {stuck.seq:,} of {group}"


def _evidence(ranks: Sequence[int], dumps: dict[int, Dump], text: str) -> tuple[Evidence, ...]:
    known = [rank for rank in ranks if rank in dumps][:2]
    return tuple(Evidence("flight-recorder", source=dumps[rank].source, text=text)
                 for rank in known)  # fmt: skip


def _root(rank: int, waits: Waits, dumps: dict[int, Dump]) -> Sign:
    """A rank that others wait for, and that waits for nobody."""
    mine = [one for one in waits.stuck if rank in one.missing]
    # Of several groups that in which others began to wait first.
    stuck = min(mine, key=lambda one: one.since_ns) if mine else None
    behind = [one for one in waits.stuck if rank in one.behind]
    waiting = _waiting_for(rank, waits)
    where = _about(stuck) if stuck else "a send or receive between two ranks"
    text = f"rank {rank} is the root: it has not entered {where}"
    if rank in waits.no_dump:
        text = (
            f"rank {rank} is the root: it left no dump, so that it died or is stuck before others"
        )
    against = [f"{len(waiting)} ranks wait for it, directly or through others: cascade"]
    fix = [_STACKS.format(rank=rank)]
    if behind:
        one = behind[0]
        text += f"; its device had stopped before: in group {one.group} it finished nothing after "
        text += f"number {one.behind[rank] - 1:,}, others did"
        fix.insert(0, "that GPU: preflight gpu-health --hosts HOST, Xids of its kernel log")
    others = sorted({r for one in waits.stuck for r in one.behind if r != rank})
    if others:
        against.append(
            f"unconfirmed: devices of rank {', '.join(map(str, others[:8]))} lag as well"
        )
    why = stuck.waiting if stuck else [r for r, to in waits.edges.items() if rank in to]
    return Sign(
        "hang", text, subject=f"rank {rank}",
        confidence="high" if mine and rank in dumps else "medium",
        evidence=_evidence(list(why), dumps, f"waits in {where}"), against=tuple(against),
        fix=tuple(fix),
    )  # fmt: skip


def _waiting_for(rank: int, waits: Waits) -> set[int]:
    """All that wait for it in the end."""
    found, open_ = set[int](), [rank]
    while open_:
        one = open_.pop()
        for other, to in waits.edges.items():
            if one in to and other not in found and other != rank:
                found.add(other)
                open_.append(other)
    return found


def _diverged(stuck: Stuck, dumps: dict[int, Dump]) -> Sign:
    return Sign(
        "hang", f"the program of the ranks differs in {_about(stuck)}: {stuck.mismatch}",
        confidence="high", evidence=_evidence(stuck.waiting, dumps, stuck.mismatch),
        against=("all of them have entered it: no machine is to blame",),
        fix=("look at the code before this call for what depends on the rank or on data",),
    )  # fmt: skip


def _crossed(waits: Waits, dumps: dict[int, Dump]) -> Sign:
    """All that are missed miss others: a ring."""
    ranks = sorted(waits.missed)[:8]
    told = [f"rank {rank} waits for {', '.join(map(str, sorted(waits.edges[rank])[:4]))}"
            for rank in ranks]  # fmt: skip
    return Sign(
        "hang", "ranks wait for each other in a ring: they call collectives of two groups in "
        f"different order: {'; '.join(told)}", confidence="medium",
        evidence=_evidence(ranks, dumps, "is in the ring"),
        against=("each of them has entered a collective: no rank is dead",),
        fix=("call the collectives of overlapping groups in one order on all ranks",),
    )  # fmt: skip


def _apart(stuck: Sequence[Stuck], dumps: dict[int, Dump]) -> Sign:
    """They wait in groups of which only those are known that called."""
    told = [f"rank {', '.join(map(str, one.waiting[:8]))} waits in {_about(one)}"
            for one in stuck[:4]]  # fmt: skip
    text = "; ".join(told)
    why = "unconfirmed: the dumps do not tell who else belongs to it"
    if len(stuck) > 1:
        why = ("unconfirmed: where these groups share ranks, they are called in different order; "
               "the dumps do not tell who belongs to them")  # fmt: skip
    ranks = [rank for one in stuck for rank in one.waiting]
    return Sign(
        "hang", f"{text}; {why}", confidence="medium",
        evidence=_evidence(ranks, dumps, "waits in such a group"),
        against=("no rank is named for it",),
        fix=("call the collectives of overlapping groups in one order on all ranks",)
        if len(stuck) > 1 else ("py-spy dump --pid PID on all ranks: who of them calls it",),
    )  # fmt: skip


def _all_there(waits: Waits, dumps: dict[int, Dump]) -> Iterator[Sign]:
    """Every member has entered: the transfer, or a device, does not go on."""
    stuck = max(waits.stuck, key=lambda one: len(one.waiting))
    behind = sorted({rank for one in waits.stuck for rank in one.behind})
    states = {
        one.state for rank in stuck.waiting for one in dumps[rank].entries
        if one.group == stuck.group and one.seq == stuck.seq
    }  # fmt: skip
    text = f"all ranks have entered {_about(stuck)}, and it does not end"
    if behind:
        text += f"; devices of rank {', '.join(map(str, behind[:8]))} finished less than others"
    elif states == {"scheduled", "started"}:
        text += "; on some ranks its kernel has begun and on others not: something before it holds "
        text += "up their stream"
    yield Sign(
        "hang", text, subject=f"rank {behind[0]}" if len(behind) == 1 else "",
        confidence="medium", evidence=_evidence(stuck.waiting, dumps, _about(stuck)),
        against=("no rank is missing: not the program of one rank",),
        fix=("the network and its adapters: preflight nccl-bench --hosts HOSTS; Xids: preflight "
             "gpu-health --hosts HOSTS",),
    )  # fmt: skip
