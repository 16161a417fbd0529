"""What a look at running processes tells. Utilisation of a GPU alone proves nothing: a collective
that spins is 100 % of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from msgspec.structs import replace

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.reading import Lack, Reading, Sign
from preflight.diagnosis.step_time.live_host import host_signs, known
from preflight.diagnosis.step_time.live_loader import culprit
from preflight.diagnosis.step_time.live_stacks import At, at_of
from preflight.facts.process import HostLook, KeptLooks, ProcessLook
from preflight.model import Evidence, Missing

Seen = list[tuple[ProcessLook, At]]

#: Shares of samples. A rank that is awaited waits itself hardly ever, the others mostly.
_AWAITED, _WAIT = 0.25, 0.5
_SURE, _LEAST = 8, 3  # samples
#: Percent of a core below which nothing moves, and seconds that it must last.
_STILL, _STILL_S = 2.0, 3.0
#: Waits a second of a thread that only looks now and then whether it may go on.
_POLLS = 2.0
_SPY = "pip install py-spy on the host (PATH), then the same command again"
_DATA = ("data-wait", "straggler", "checkpoint-stall", "exposed-communication")


def reading(facts: dict[str, list[Any]], asked: Asked) -> Reading | None:
    """Of all hosts together: what one rank does is told by what the others do meanwhile."""
    kept: list[KeptLooks] = facts.get("kept-looks", [])
    all_ = [*facts.get("look", []), *(host for one in kept for host in one.hosts)]
    hosts: list[HostLook] = list({one.host: one for one in all_}.values())
    ranks = [one for host in hosts for one in host.processes if one.role == "rank"]
    alive = [one for one in ranks if not one.ended]
    several = len(hosts) > 1
    seen: Seen = [(one, at) for one in alive if (at := at_of(one)) is not None]
    signs = list(_hang(hosts, alive, seen, several))
    if not signs:
        signs = [*_stack_signs(hosts, seen, several), *_by_processor(alive, seen, several)]
        signs += [sign for host in hosts for sign in host_signs(host, seen, several)]
    return Reading(
        _input(hosts, ranks), signs=tuple(signs), covers=_covers(hosts, alive, seen),
        lacks=tuple(_lacks(hosts, alive, seen)),
        notes=(*_notes(hosts), *_of_files(kept, len(all_) - len(hosts))),
        unread=tuple(_unread(hosts, ranks)),
    )  # fmt: skip


def name_of(one: ProcessLook, several: bool) -> str:
    """rank 3; where it has no number its PID; with its host where there are several."""
    name = f"PID {one.pid}" if isinstance(one.rank, Missing) else f"rank {one.rank}"
    return f"{one.host} {name}" if several else name


def _input(hosts: Sequence[HostLook], ranks: Sequence[ProcessLook]) -> str:
    seconds = max((host.seconds for host in hosts), default=0)
    on = f" on {len(hosts)} hosts" if len(hosts) > 1 else ""
    return f"a look of {seconds:g} s at {len(ranks)} rank(s){on}"


def _evidence(one: ProcessLook, line: int, text: str) -> tuple[Evidence, ...]:
    return (Evidence("look", text=text, line=line or None, source=one.host),)


def _hang(
    hosts: Sequence[HostLook], ranks: Sequence[ProcessLook], seen: Seen, several: bool
) -> Iterator[Sign]:
    for host in hosts:
        for one in host.processes:
            if one.stopped and one.role in ("rank", "worker"):
                yield _stopped(one, host, several)
    stopped = any(one.stopped for host in hosts for one in host.processes)
    if stopped or not ranks or not all(_still(one, hosts) for one in ranks):
        return
    at_of_rank = {id(one): at for one, at in seen}
    if not all(_stays(one, at_of_rank.get(id(one))) for one in ranks):
        return
    stuck = [one for one in ranks if (known(one.disk_wait_percent) or 0) >= 95]
    missing = [(one, at) for one, at in seen if at.waits < _AWAITED]
    odd = missing if 0 < len(missing) <= len(seen) / 2 else []
    named = stuck[:1] or [one for one, _ in odd[:1]]
    text = f"nothing moved for {ranks[0].seconds:.3g} s: no processor, no reading or writing in any"
    text += f" of {len(ranks)} rank(s) and their workers"
    if stuck:
        text += f"; {name_of(stuck[0], several)} waits in the kernel ({stuck[0].wchan or '?'})"
    elif odd:
        text += f"; {name_of(odd[0][0], several)} is at {odd[0][1].frame}, the others wait for it"
    elif seen:
        text += f"; {name_of(seen[0][0], several)} is at {seen[0][1].frame}"
    yield Sign(
        "hang", text, subject=name_of(named[0], several) if named else "",
        confidence="high" if named else "medium",
        evidence=tuple(e for one, at in seen[:4] for e in _evidence(one, at.line, at.frame))
        or _evidence(ranks[0], ranks[0].line, ""),
        against=("a long step would use a processor or a GPU",),
    )  # fmt: skip


def _stopped(one: ProcessLook, host: HostLook, several: bool) -> Sign:
    of = next((each for each in host.processes if each.pid == one.parent), one)
    what = "" if of is one else f", a data worker of {name_of(of, several)}"
    return Sign(
        "hang", f"PID {one.pid} on {one.host}{what} is stopped by a signal (state T in all "
        f"{one.looks} looks)", subject=name_of(of, several), confidence="high",
        evidence=_evidence(one, one.line, f"state T, {one.looks} looks"),
        fix=(f"kill -CONT {one.pid} on {one.host}; find who stopped it: a debugger, a shell, a "
             "scheduler that suspends",),
    )  # fmt: skip


def _still(rank: ProcessLook, hosts: Sequence[HostLook]) -> bool:
    """Neither it nor what works for it, nor its GPU."""
    host = next(one for one in hosts if one.host == rank.host)
    family = [one for one in host.processes if one is rank or one.parent == rank.pid]
    moved = any(
        (known(one.cpu_percent) or 0) >= _STILL or (known(one.write_bytes_per_s) or 0) > 1024
        or (known(one.read_bytes_per_s) or 0) > 1024 for one in family
    )  # fmt: skip
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    busy = any(rank.pid in gpu.pids and (known(gpu.sm_percent) or 0) > 0 for gpu in gpus)
    told = not isinstance(rank.cpu_percent, Missing) and rank.seconds >= _STILL_S
    return told and rank.trains and not moved and not busy


def _stays(rank: ProcessLook, at: At | None) -> bool:
    """Whether it is at one place: a training whose work is elsewhere uses hardly a processor, but
    goes from place to place; without stacks by how often it begins to wait."""
    if at is not None:
        return at.still and at.samples >= _SURE
    waits = known(rank.waits_per_s)
    return waits is None or waits < _POLLS


def _stack_signs(hosts: Sequence[HostLook], seen: Seen, several: bool) -> Iterator[Sign]:
    for cause, kind, what in (("data-wait", "data", "waits in the loader"),
                              ("checkpoint-stall", "save", "writes a checkpoint"),
                              ("python-gc", "gc", "is in gc.collect()")):  # fmt: skip
        for sign, rank, at in _all_or_one(seen, cause, kind, what, several):
            yield _with_culprit(sign, rank, at, hosts) if kind == "data" else sign
    odd = _awaited(seen)
    if odd is not None:
        yield from _straggler(*odd, seen, several)
    elif len(seen) > 1:
        shares = [at.shares.get("communication", 0) for _, at in seen]
        if min(shares) >= 0.1 and _enough(seen, "communication"):
            one, at = seen[0]
            yield Sign(
                "exposed-communication", f"all {len(seen)} ranks are in collectives in "
                f"{_percent(median(shares))} of the samples", share=median(shares),
                confidence="medium" if at.samples >= _SURE else "low",
                evidence=_evidence(one, at.line, at.frame), against=("no rank is awaited",),
            )  # fmt: skip


def _all_or_one(
    seen: Seen, cause: str, kind: str, what: str, several: bool
) -> Iterator[tuple[Sign, ProcessLook, At]]:
    """A part that all ranks have; or one alone, for which the others wait."""
    if not seen or not _enough(seen, kind):
        return
    shares = sorted(((at.shares.get(kind, 0), n) for n, (_, at) in enumerate(seen)), reverse=True)
    middle = median(share for share, _ in shares)
    alone = len(seen) > 1 and shares[0][0] >= 2 * max(middle, shares[1][0]) + 0.1
    share, at_ = shares[0] if alone else (middle, shares[0][1])
    one, at = seen[at_]
    if share <= 0:
        return
    place = at.places[kind]
    who = name_of(one, several) if alone else ("the rank" if len(seen) == 1 else "each rank")
    yield Sign(
        cause, f"{who} {what} in {_percent(share)} of {at.samples} samples ({place.frame})",
        share=share, subject=name_of(one, several) if alone else "",
        confidence="high" if at.samples >= _SURE and share >= _WAIT else
        "medium" if at.samples >= _SURE else "low",
        evidence=_evidence(one, place.line, place.frame),
    ), one, at  # fmt: skip


def _with_culprit(sign: Sign, rank: ProcessLook, at: At, hosts: Sequence[HostLook]) -> Sign:
    """With whom the loader waits for."""
    host = next(one for one in hosts if one.host == rank.host)
    found = culprit(rank, host, inline=at.inline)
    text, fixes = sign.text, list(found.fix if found else ())
    if at.inline:
        text += "; num_workers is 0: it loads the data itself"
        fixes.append("num_workers above 0 in the DataLoader: a process of its own loads meanwhile")
    if found is None:
        return replace(sign, text=text, fix=tuple(fixes))
    known = {one.text for one in sign.evidence}
    more = _evidence(rank, found.line, found.frame) if found.frame not in {"", *known} else ()
    return replace(sign, text=f"{text}; {found.text}", fix=tuple(fixes),
                   evidence=(*sign.evidence, *more))  # fmt: skip


def _enough(seen: Seen, kind: str) -> bool:
    return max(at.shares.get(kind, 0) * at.samples for _, at in seen) >= _LEAST - 0.5


def _awaited(seen: Seen) -> tuple[ProcessLook, At, float] | None:
    """The only rank that does not wait while all others do."""
    order = sorted(seen, key=lambda pair: pair[1].waits)
    if len(order) < 2 or order[0][1].waits > _AWAITED or order[1][1].waits < _WAIT:
        return None
    return *order[0], median(at.waits for _, at in order[1:]) - order[0][1].waits


def _straggler(one: ProcessLook, at: At, share: float, seen: Seen, several: bool) -> Iterator[Sign]:
    if at.shares.get("data", 0) >= _WAIT or at.shares.get("save", 0) >= _WAIT:
        return  # told as that, with its name
    name = name_of(one, several)
    yield Sign(
        "straggler", f"{name} is at {at.frame} while the other {len(seen) - 1} wait for it in "
        f"{_percent(share + at.waits)} of their samples; it waits in {_percent(at.waits)}",
        share=share, subject=name, confidence="high" if at.samples >= _SURE else "low",
        evidence=_evidence(one, at.line, at.frame),
        against=("a slow rank that changes would wait as often as the others",),
    )  # fmt: skip


def _by_processor(ranks: Sequence[ProcessLook], seen: Seen, several: bool) -> Iterator[Sign]:
    """Without stacks: one rank whose processor time is unlike that of all others, which agree."""
    loads = [(value, one) for one in ranks if (value := known(one.cpu_percent)) is not None]
    if len(seen) == len(ranks) or len(loads) < 3:
        return
    middle = median(value for value, _ in loads)
    far = [(value, one) for value, one in loads if abs(value - middle) > 0.4 * max(middle, 100)]
    near = all(abs(value - middle) < 15 for value, one in loads if (value, one) not in far)
    if len(far) == 1 and near:
        value, one = far[0]
        yield Sign(
            "straggler", f"{name_of(one, several)} takes {value:.0f} % of a processor, the other "
            f"{len(loads) - 1} ranks {middle:.0f} %", share=min(abs(value - middle) / 100, 1),
            subject=name_of(one, several), confidence="low", evidence=_evidence(one, one.line, ""),
            against=("stacks would tell whether the others wait for it",), fix=(_SPY,),
        )  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _covers(hosts: Sequence[HostLook], ranks: Sequence[ProcessLook], seen: Seen) -> frozenset[str]:
    if not any(one.trains for one in ranks) or any(host.troubles for host in hosts):
        return frozenset()
    found = {"hang"}
    if len(seen) == len(ranks) and all(at.samples >= _SURE for _, at in seen):
        found |= set(_DATA)
    if all(not isinstance(host.gpus, Missing) and host.gpus for host in hosts):
        found |= {"throttled", "host"}
    if all(not isinstance(host.pressure, Missing) for host in hosts):
        found.add("host-memory")
    return frozenset(found)


def _lacks(hosts: Sequence[HostLook], ranks: Sequence[ProcessLook], seen: Seen) -> Iterator[Lack]:
    without = [host.host for host in hosts if isinstance(host.spy, Missing)]
    if without and ranks:
        yield Lack(_DATA, f"py-spy is not on {', '.join(without[:4])}: what the ranks wait for is "
                   "not known", _SPY)  # fmt: skip
    denied = [one for one in ranks if isinstance(one.stacks, Missing) and one.host not in without]
    if denied:
        told = denied[0].stacks
        why = told.text if isinstance(told, Missing) else ""
        many = why.startswith("more than")
        yield Lack(_DATA, f"py-spy has no stacks of PID {denied[0].pid}: {why}",
                   "preflight diagnose-step-time PID PID..., of some ranks at once" if many else
                   "the same command with sudo, or in the job's container with SYS_PTRACE "
                   "(kernel.yama.ptrace_scope is 0 or 1)")  # fmt: skip
    elif not without and sum(at.samples >= _SURE for _, at in seen) < len(ranks):
        yield Lack(_DATA, f"fewer than {_SURE} stacks of a rank", "--duration 30s")


def _notes(hosts: Sequence[HostLook]) -> Iterator[str]:
    for host in hosts:
        if isinstance(host.gpus, Missing):
            yield f"{host.host}: GPUs were not looked at: {host.gpus.text}"


def _of_files(kept: Sequence[KeptLooks], repeated: int) -> Iterator[str]:
    yield from (f"{one.source}: {one.damage}" for one in kept if one.damage)
    if repeated:
        yield f"{repeated} look(s) at a host that was looked at again are left out"


def _unread(hosts: Sequence[HostLook], ranks: Sequence[ProcessLook]) -> Iterator[str]:
    for host in hosts:
        yield from (f"{host.host}: {text}" for text in host.troubles)
    if ranks and not any(one.trains for one in ranks):
        yield (f"PID {ranks[0].pid}: no torch, jax or tensorflow is loaded, and it has neither GPU "
               "nor RANK: is it a training?")  # fmt: skip
    for one in ranks:
        if one.ended:
            yield f"{one.host}: PID {one.pid}: {one.ended}"
