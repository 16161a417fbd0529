"""Ranks that did not come to their end, and which of them took the others with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.facts.training import TrainFailure
from preflight.model import Known, Missing
from preflight.probes.training.lines import PROBE, WHOLE, Line, Told

#: What a rank says when another one has gone: NCCL's and gloo's words for a lost connection.
_OF_ANOTHER = re.compile(
    r"[Cc]onnection (?:closed|reset|was|refused)|\bgloo\b|NCCL|[Tt]imed out|remote process|"
    r"Broken pipe|DistBackendError|DistNetworkError"
)
#: A cause before what follows from it.
_WORST_FIRST = ("failed", "silent", "died", "followed")


def failures(told: Told) -> tuple[TrainFailure, ...]:
    """All of them, in the order in which they were told."""
    return tuple(_failures(told))


def _failures(told: Told) -> Iterator[TrainFailure]:
    for one in told.lines:
        launch = str(one.get("launch", ""))
        name = f"rank {one['rank']}" if "rank" in one else "all ranks"
        if one["kind"] == "failed":
            text = f"{one['error']}: {one['text']}"
            yield TrainFailure(name, "failed", launch, text, line=one["line"], probe=PROBE)
        elif one["kind"] == "died" and one["status"] < 0:
            at = after(one["step"])
            text = f"ended by signal {-one['status']} {at}{_for_memory(one)}"
            yield TrainFailure(name, "died", launch, text, one["step"], one["line"], PROBE)
        elif one["kind"] == "silent":
            yield from _silent(one, launch)


def _silent(one: Line, launch: str) -> Iterator[TrainFailure]:
    """Whom it is known of that it holds the others up; where nobody is behind, all of them."""
    held: dict[int, Line] = {}
    for each in one.get("held", ()):
        held.setdefault(int(each["rank"]), each)
    suspects, all_alike = one["suspects"], len(one["suspects"]) == len(one["steps"]) > 1
    for_s = f"said nothing for {one['after_s']:g} s"
    if all_alike and not held and not one["stopped"]:
        step = min(int(at) for at in one["steps"].values())
        text = f"{for_s} {after(step)}, and none is further than the others: which one holds them "
        text += f"is not known{_pids(one, suspects)}"
        yield TrainFailure("all ranks", "silent", launch, text, step, one["line"], PROBE)
        return
    for rank in suspects:
        step = int(one["steps"].get(str(rank), -1))
        how = _held_by(held[rank]) if rank in held else _behind(one, rank)
        text = f"{for_s} {after(step)}{how}"
        yield TrainFailure(f"rank {rank}", "silent", launch, text, step, one["line"], PROBE)


def _held_by(held: Line) -> str:
    state = str(held["state"])
    how = "stopped by a signal" if state == "stopped" else "waits in the kernel (state D)"
    if held["what"] == "rank":
        return f", {how} (PID {int(held['pid'])})"
    return f": its process {int(held['pid'])} ({held['what']}) {'is ' * (state == 'stopped')}{how}"


def _behind(one: Line, rank: int) -> str:
    if rank in one["stopped"]:
        return ", stopped by a signal"
    where = ", behind the others" if len(one["steps"]) > 1 else ""
    return f"{where}{_pids(one, [rank])}"


def _pids(one: Line, ranks: list[int]) -> str:
    """For a debugger to be told; "" where they were not told."""
    found = [str(int(pid)) for rank in ranks if (pid := one.get("pids", {}).get(str(rank)))]
    return f" (PID {', '.join(found)})" if found else ""


def _for_memory(died: Line) -> str:
    """Said by launchers that count whom the kernel ends for want of memory."""
    killed = died.get("oom_kills")
    if not isinstance(killed, int) or killed < 1:
        return ""
    many = f"{killed} processes" if killed > 1 else "a process"
    return f": the kernel ended {many} here for want of memory meanwhile"


def after(step: int) -> str:
    return "before its first step" if step < 0 else f"after step {step}"


def causes(found: tuple[TrainFailure, ...], launch: str) -> list[TrainFailure]:
    """Of one launch those that took the others with them: an error of its own before a silence
    before a death, and any of them before a connection that was lost."""
    mine = [one for one in found if one.launch == launch]
    kinds = [_kind(one) for one in mine]
    worst = next((kind for kind in _WORST_FIRST if kind in kinds), "")
    same = [one for one, kind in zip(mine, kinds, strict=True) if kind == worst]
    # Whoever died first: the launcher ends the others seconds later.
    return same[:1] if worst in ("died", "followed") else same


def _kind(one: TrainFailure) -> str:
    return "followed" if one.kind == "failed" and _OF_ANOTHER.search(one.text) else one.kind


def ended(told: Told, rank: int, found: tuple[TrainFailure, ...]) -> tuple[Known[bool], str]:
    """Whether a rank came to the end of the whole run, and why not."""
    if told.where("done", launch=WHOLE, rank=rank):
        return (True if told.whole() else told.unfinished()), ""
    if told.job.get("causes"):
        return _in_job(told, rank)
    first = causes(found, WHOLE)
    mine = next((one for one in first if one.name in (f"rank {rank}", "all ranks")), None)
    if first and told.hosts() > 1 and not is_own(told, first[0]):
        return Missing("exited", _of_another_host(first[0])), ""
    if mine is not None:
        return False, mine.text
    if first:
        return Missing("not-applicable", f"it was ended because of {first[0].name}"), ""
    if told.told_nothing(rank):
        return Missing("unreadable", f"rank {rank} told nothing"), ""
    return told.unfinished(), ""


def _in_job(told: Told, rank: int) -> tuple[Known[bool], str]:
    """The same where it is known what all hosts of the job told."""
    host, causes = told.job["host"], told.job["causes"]
    mine = next((one for one in causes if one["host"] == host and one["rank"] in (rank, -1)), None)
    if mine is not None and mine["rank"] == rank:
        return False, str(mine["text"])
    if mine is not None and mine.get("of_host"):
        return False, str(mine["text"])
    if mine is not None:
        return Missing("exited", str(mine["text"])), ""
    first = causes[0]
    named = first["host"] + (f", rank {first['rank']}" if first["rank"] >= 0 else "")
    if first["host"] == host:
        return Missing("not-applicable", f"it was ended because of rank {first['rank']}"), ""
    return Missing("exited", f"it waited for {named}, which is why: {first['text']}"[:400]), ""


def is_own(told: Told, one: TrainFailure) -> bool:
    """Whether a host of several can know that its own rank is why: an error of its own, a signal
    that came before anything else, a process that is stopped. One that only waits says the same
    nothing as the one that it waits for, and the launcher ends it as it ends all."""
    line = next((each for each in told.lines if each["line"] == one.line), {})
    if one.kind == "silent":
        known = {*line.get("stopped", ()), *(each["rank"] for each in line.get("held", ()))}
        return one.name in {f"rank {rank}" for rank in known}
    if one.kind == "died":
        return line.get("first") is not False
    return _kind(one) != "followed"


def _of_another_host(one: TrainFailure) -> str:
    how = "waited for the others" if one.kind == "silent" else "lost its connection"
    text = f"{one.name} {how}, and no rank of this host is known to be why: see the other hosts"
    return f"{text} ({one.text})"[:400]
