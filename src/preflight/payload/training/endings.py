"""Why a setting of a sweep was not measured: a limit, which was looked for, or a failure."""

from __future__ import annotations

import math
import re
import signal
from typing import Any

from ..holdups import held_up
from ..ranks import Launch

Line = dict[str, Any]
#: What a rank says when another one has gone, or is silent.
_OF_ANOTHER = re.compile(
    r"[Cc]onnection|\bgloo\b|NCCL|[Tt]imed out|[Tt]imeout|Broken pipe|Read error|remote process"
)
#: What ends a process from outside, and where that can be read.
_HINTS = {
    "SIGKILL": ": for want of memory? `sudo dmesg | grep -i oom`",
    "SIGBUS": ": /dev/shm may be full, `df /dev/shm`",
}


def why(ills: list[Line]) -> Line:
    """Of all that was told what the rest follows from; empty where nothing was wrong. A limit comes
    before an error of a rank's own, before a rank that is silent, before a death, before a
    connection that was lost because of any of them."""
    own = {one["rank"] for one in ills if one["kind"] == "failed"}
    # Whoever has said why it ends itself is not told again by its status.
    told = [one for one in ills if one["kind"] != "died" or one["rank"] not in own]
    causes = sorted(filter(ill, told), key=_follows)
    return ill(causes[0]) if causes else {}


def waits_for(line: Line, launch: Launch) -> Line:
    """Of a rank that has lost another one, or waited too long: which of the others is stopped, or
    waits in the kernel. Asked at once: all of them are ended soon. Empty where none is."""
    if line["kind"] != "failed" or not _OF_ANOTHER.search(line["text"]):
        return {}
    others = [one for one in launch.ranks if one.number != line["rank"] and not one.ended()]
    held = held_up({one.number: one.pid for one in others})
    if not held:
        return {}
    suspects = sorted({one["rank"] for one in held})
    steps = {str(one.number): one.step for one in launch.ranks}
    return {"kind": "silent", "suspects": suspects, "steps": steps, "held": held}


def diverged(steps: dict[int, list[Line]]) -> Line:
    """Where a loss is no number any more, from which step on."""
    at = [one["step"] for told in steps.values() for one in told if not math.isfinite(one["loss"])]
    if not at:
        return {}
    return {"failed": f"it diverged: the loss of step {min(at)} is no finite number"}


def ill(line: Line) -> Line:
    """What one line says of it. A limit that was met is told as that."""
    full = line.get("error") == "OutOfMemoryError" or "out of memory" in line.get("text", "")
    if line["kind"] == "failed" and full:
        text = f"out of memory: {line['text'].splitlines()[0][:200]}"
        return {"limit": text, "met": True}
    if line["kind"] == "failed":
        return {"failed": f"rank {line['rank']}: {line['error']}: {line['text'][:300]}"}
    if line["kind"] == "died" and line.get("oom_kills"):
        return {"limit": f"out of memory: the kernel ended rank {line['rank']}", "met": True}
    if line["kind"] == "died":
        return {"failed": f"rank {line['rank']} {_ended(line['status'])}"}
    if line["kind"] == "silent":
        return {"failed": _silent(line)}
    return {}


def _follows(line: Line) -> int:
    if "limit" in ill(line):
        return 0
    if line["kind"] == "failed":
        return 4 if _OF_ANOTHER.search(line["text"]) else 1
    return 2 if line["kind"] == "silent" else 3


def _ended(status: int) -> str:
    if status >= 0:
        return f"ended with {status}, and has not said why"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else "a signal"
    return f"ended with {status} ({name}{_HINTS.get(name, '')})"


def _silent(line: Line) -> str:
    """Whom it is known of that it holds the others up."""
    suspects, steps = line["suspects"], line["steps"]
    for_s = f" for {line['after_s']:g} s" if "after_s" in line else ""
    held = {each["rank"]: each for each in reversed(line.get("held", []))}
    if len(suspects) == len(steps) > 1 and not held:
        return f"all ranks said nothing{for_s}, and which one holds the others up is not known"
    named = "; ".join(
        f"rank {rank} said nothing{for_s} {_after(steps.get(str(rank), -1))}"
        f"{_held(held[rank]) if rank in held else ', behind the others' * (len(steps) > 1)}"
        for rank in suspects
    )
    waited = sorted(int(one) for one in steps if int(one) not in suspects)
    ranks = f"rank{'' if len(waited) == 1 else 's'} {', '.join(map(str, waited))} waited for it"
    return f"{named}; {ranks}" if waited else named


def _after(step: int) -> str:
    return "before its first step" if step < 0 else f"after step {step}"


def _held(held: Line) -> str:
    whose = "" if held["what"] == "rank" else f"its {held['what']} "
    state = "is stopped by a signal" if held["state"] == "stopped" else "waits in the kernel"
    return f": {whose or 'it '}{state} (PID {held['pid']})"
