"""What stacks of several ranks say together: who waits, and who does something else meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from preflight.diagnosis.hang.members import Look, Member, members_of
from preflight.diagnosis.hang.supply import AGAIN, ALL_STACKS, DUMPS
from preflight.diagnosis.reading import Confidence, Lack, Sign
from preflight.diagnosis.wording import duration
from preflight.facts.hangs import StackFile
from preflight.model import Evidence

#: Looks nearer than this to each other confirm nothing; so far apart a step rarely takes longer.
_NEAR_S, _FAR_S = 10.0, 60.0
#: Equal looks, whose times are not told, that are no longer one step that takes long.
_SURE = 3
_MOST = 8  # that are named
_TOGETHER = 3  # more of them at one place are told in one finding
_SOFT = ("device", "backward")
_FIX = {
    "data": "the loader of that rank: py-spy dump --subprocesses shows what its workers read; the "
    "file and its storage: preflight io-bench DIR on its host",
    "save": "the file system that it writes to: preflight io-bench DIR on its host",
    "load": "the file system that it reads from: preflight io-bench DIR on its host",
    "file": "the file system of that file: preflight io-bench DIR on its host",
    "gil": "the thread that holds it: py-spy dump --pid PID names it as active+gil",
    "debugger": "continue in the debugger, or take the breakpoint out: other ranks wait for it",
}
_NATIVE = "on the host of {name}: py-spy dump --pid PID --native, and its log"


class Told(Struct):
    """What the stacks say. `moves`: between two looks the run went on."""

    signs: list[Sign]
    members: list[Member]
    moves: bool = False


class _When(Struct, frozen=True):
    """How sure it is that they stand."""

    text: str
    suspected: bool
    confidence: Confidence
    against: tuple[str, ...] = ()
    timed: bool = True  # whether it is known that the looks are no moments of one step


def told_by_stacks(
    files: Sequence[StackFile], lacks: list[Lack], notes: list[str], *, hangs: bool
) -> Told:
    """`hangs`: something else says that the run stands."""
    members = members_of(files)
    died = [one for one in members if one.last.fatal]
    if died:
        return Told([_died(one) for one in died[:_MOST]], members)
    moving = [one for one in members if one.moves]
    if moving:
        return Told([], members, moves=_goes_on(members, moving, lacks, notes))
    if not members:
        lacks.append(Lack(("hang",), "no stack is of a rank's first thread", ALL_STACKS))
        return Told([], [])
    return Told(list(_standing(members, lacks, _when(members, hangs=hangs))), members)


def _died(one: Member) -> Sign:
    at = one.last
    return Sign(
        "crash", f"{one.name} ended by {at.fatal} at {at.place.site}",
        subject=one.name if one.rank is not None else "",
        # An abort is what a watchdog does, and what C++ does with any error.
        confidence="medium" if "Abort" in at.fatal else "high", evidence=_evidence([one]),
        fix=("the lines before it in its log: preflight explain FILE",
             "preflight gpu-health --hosts HOST: Xids, errors of memory"),
    )  # fmt: skip


def _goes_on(
    members: Sequence[Member], moving: Sequence[Member], lacks: list[Lack], notes: list[str]
) -> bool:
    """Whether all moved, or one has left a collective: then all had come to it."""
    first = moving[0]
    text = f"{_names(moving)} moved between looks: {first.name} from {first.looks[0].place.site} "
    text += f"to {first.last.place.site}"
    others = [one for one in members if not one.moves and len(one.looks) > 1]
    if others:
        text += f"; {_names(others)} did not"
    notes.append(text)
    goes_on = len(moving) == len(members) or any(_left_collective(one) for one in moving)
    if not goes_on:
        what = f"{text}: no hang of all; whether one is slow, stacks at moments do not tell"
        lacks.append(Lack(("hang", "straggler"), what, "preflight diagnose-step-time PID while it "
                          "runs, or --hosts HOSTS; stacks minutes apart"))  # fmt: skip
    return goes_on


def _left_collective(one: Member) -> bool:
    waited = [look for look in one.looks if look.place.kind == "collective"]
    return any(look.place.frames != one.last.place.frames for look in waited)


def _when(members: Sequence[Member], *, hangs: bool) -> _When:
    looks = min(len(one.looks) for one in members)
    if hangs:
        return _When("", suspected=False, confidence="high")
    if looks < 2:
        return _When(
            " at this one moment", suspected=True, confidence="low",
            against=("one moment does not tell a hang from a step that takes long",),
        )  # fmt: skip
    apart = min((one.apart_s for one in members if one.apart_s is not None), default=None)
    far = f", {duration(apart)} apart" if apart is not None else ""
    long = "a step that takes longer than the time between the looks would look the same"
    return _When(
        f" in each of {looks} looks{far}", suspected=apart is not None and apart < _NEAR_S,
        timed=apart is not None or looks >= _SURE,
        confidence="high" if looks > 2 or (apart or 0) >= _FAR_S else "medium", against=(long,),
    )  # fmt: skip


def _standing(members: Sequence[Member], lacks: list[Lack], when: _When) -> Iterator[Sign]:
    debugged = [one for one in members if one.last.place.kind == "debugger"]
    waiting = [one for one in members if one.last.place.kind == "collective"]
    soft = [one for one in members if one.last.place.kind in _SOFT]
    away = [one for one in members if one.last.place.kind not in ("collective", *_SOFT)]
    if debugged:
        yield from _roots(debugged, [*waiting, *soft], _CERTAIN)
    elif len(members) == 1:
        yield from _alone(members[0], lacks, when)
    elif away and (waiting or soft) and len(away) <= len(waiting) + len(soft):
        yield from _roots(away, waiting or soft, when)
    elif away:
        yield from _elsewhere(away, [*waiting, *soft], lacks, when)
    elif len({_call(one) for one in waiting}) > 1:
        yield _differ(waiting, when)
    else:
        yield from _together(members, lacks, when)


_CERTAIN = _When("", suspected=False, confidence="high")


def _roots(away: Sequence[Member], waiting: Sequence[Member], when: _When) -> Iterator[Sign]:
    """Each by itself; more of them at one place, as of one host, together."""
    by_site: dict[str, list[Member]] = {}
    for one in away:
        by_site.setdefault(one.last.place.site, []).append(one)
    told = 0
    for members in by_site.values():
        for some in [members] if len(members) > _TOGETHER else [[one] for one in members]:
            told += 1
            if told <= _MOST:
                yield _root(some, waiting, when)


def _root(members: Sequence[Member], waiting: Sequence[Member], when: _When) -> Sign:
    """A rank that is elsewhere while others wait; or several at one place."""
    one, at, name = members[0], members[0].last, _names(members)
    text = f"{name} is the suspected root: it {at.place.text}{when.text}"
    if len(members) > 1:
        text = f"{name} are the suspected root: each {at.place.text}{when.text}"
    if waiting:
        first = waiting[0]
        text += (
            f", while {_names(waiting)} {_wait(waiting)} {first.last.place.call or 'the device'}"
        )
        text += f" at {first.last.place.site}"
    if at.place.kind == "data" and one.workers:
        text += f"; its loader's process is at {one.workers[0].place.site}"
    if at.holder:
        text += f"; meanwhile its thread {at.holder} holds the interpreter's lock"
    extra = one.workers[:1] if at.place.kind == "data" else []
    return _sign(
        text, when, [one, *waiting[:1]], subject=name, extra=extra,
        against=(f"{len(waiting)} ranks wait, and are its echo",) if waiting else (),
        fix=(_FIX.get(at.place.kind) or _NATIVE.format(name=name),),
    )  # fmt: skip


def _wait(members: Sequence[Member]) -> str:
    soft = members[0].last.place.kind in _SOFT
    return ("waits" if len(members) == 1 else "wait") + (" for" if soft else " in")


def _elsewhere(
    away: Sequence[Member], waiting: Sequence[Member], lacks: list[Lack], when: _When
) -> Iterator[Sign]:
    """Most are elsewhere, or nobody waits for another."""
    places = {one.last.place.site for one in away}
    first = away[0].last.place
    if len(places) == 1:
        text = f"{_names(away)} all stand at {first.site}: each {first.text}{when.text}"
    else:
        told = "; ".join(f"{one.name} {one.last.place.text}" for one in away[:3])
        text = f"{len(away)} ranks are in no collective{when.text}: {told}"
    if waiting:
        text += f"; {_names(waiting)} waits, and may have called {_calls(waiting)} alone"
    text += "; unconfirmed: no rank is awaited by the others"
    if when.suspected:
        lacks.append(Lack(("hang",), text, AGAIN))
    else:
        yield _sign(text, when, away[:2], against=("no rank is named for it",),
                    fix=(_FIX.get(first.kind) or _NATIVE.format(name="each"),))  # fmt: skip


def _differ(waiting: Sequence[Member], when: _When) -> Sign:
    """All wait, in different collectives."""
    by_call: dict[tuple[str, ...], list[Member]] = {}
    for one in waiting:
        by_call.setdefault(_call(one), []).append(one)
    order = sorted(by_call.values(), key=len, reverse=True)
    told = [f"{ones[0].last.place.call} on {_names(ones)} at {ones[0].last.place.site}"
            for ones in order[:4]]  # fmt: skip
    return _sign(
        f"ranks wait in different collectives{when.text}: {'; '.join(told)}: the program of the "
        "ranks differs, unless these are of different groups or stages",
        when, [ones[0] for ones in order[:3]],
        against=("each of them is in a collective: no rank is dead",),
        fix=("look at the code before these calls for what depends on the rank or on data", DUMPS),
    )  # fmt: skip


def _together(members: Sequence[Member], lacks: list[Lack], when: _When) -> Iterator[Sign]:
    """Nobody is elsewhere: stacks do not tell who is to blame."""
    first = members[0].last.place
    text = f"all {len(members)} ranks wait{when.text}, the first in "
    text += f"{first.call or first.says} at {first.site}; unconfirmed: none is elsewhere, so that "
    text += "stacks do not tell which rank, device or link it is"
    if when.suspected or not when.timed:
        lacks.append(Lack(("hang",), text, DUMPS))
        lacks.append(Lack(("hang",), text, AGAIN))
    else:
        yield _sign(
            text, when, members[:2], against=("no rank is elsewhere",),
            fix=(DUMPS, "the network and its adapters: preflight nccl-bench --hosts HOSTS"),
        )  # fmt: skip


def _alone(one: Member, lacks: list[Lack], when: _When) -> Iterator[Sign]:
    """Of one process alone nothing is compared."""
    place = one.last.place
    text = f"{one.name} {place.text}{when.text}; unconfirmed: stacks of one process alone do not "
    text += "tell whether it waits for another or is awaited"
    if when.suspected or not when.timed:
        lacks += [Lack(("hang",), text, ALL_STACKS), Lack(("hang",), text, AGAIN)]
    else:
        fix = (ALL_STACKS, *((_FIX[place.kind],) if place.kind in _FIX else ()))
        yield _sign(text, when, [one], fix=fix)


def _sign(
    text: str, when: _When, members: Sequence[Member], *, subject: str = "",
    extra: Sequence[Look] = (), against: tuple[str, ...] = (), fix: tuple[str, ...] = (),
) -> Sign:  # fmt: skip
    return Sign(
        "hang", text, subject=subject, confidence=when.confidence, suspected=when.suspected,
        evidence=(*_evidence(members), *_of_looks(extra)), against=(*against, *when.against),
        fix=(AGAIN, *fix) if when.suspected else fix,
    )  # fmt: skip


def _evidence(members: Sequence[Member]) -> tuple[Evidence, ...]:
    return tuple(_of_looks([one.last for one in members]))


def _of_looks(looks: Sequence[Look]) -> Iterator[Evidence]:
    for one in looks:
        inner = one.place.frames[0] if one.place.frames else ""
        text = one.place.site if inner in one.place.site else f"{inner} < {one.place.site}"
        yield Evidence("stacks", text=text, line=one.line, source=one.source)


def _call(one: Member) -> tuple[str, ...]:
    return one.last.place.call, one.last.place.site


def _calls(members: Sequence[Member]) -> str:
    return ", ".join(dict.fromkeys(one.last.place.call or "a kernel" for one in members))


def _names(members: Sequence[Member]) -> str:
    """rank 0 to 2, 5; names that are none of ranks one by one."""
    from preflight.nodesets import fold

    ranks = [one.rank for one in members if one.rank is not None]
    if len(ranks) == len(members) > 1:
        return "rank " + fold([f"r{one}" for one in ranks]).removeprefix("r").strip("[]")
    more = f" and {len(members) - _MOST} more" if len(members) > _MOST else ""
    return ", ".join(one.name for one in members[:_MOST]) + more
