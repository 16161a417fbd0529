"""Whether a device came to the end of its tests; where it did not, whether that is its fault."""

from __future__ import annotations

import re

from preflight.model import Known, Missing
from preflight.probes.stress.lines import Line, Told
from preflight.probes.training.lines import finite

#: What somebody sends, a scheduler among them: no device does.
_SENT = {1: "SIGHUP", 2: "SIGINT", 9: "SIGKILL", 15: "SIGTERM"}
_KILL = 9
#: How Python, the C library and torch say that memory did not suffice.
_WITHOUT_MEMORY = re.compile(r"out of memory|MemoryError|(?i:can(?:no|')t allocate memory)")


def end_of(told: Told, number: int) -> tuple[Known[bool], str, int]:
    """Whether it came to its end, why not, and the line that says so."""
    for kind, say in (("wedged", _wedged), ("failed", _failed), ("died", _died)):
        for one in told.where(kind, number):
            why = _elsewhere(told, one)
            return (Missing("exited", why) if why else False), say(told, one), one["line"]
    done = told.where("done", number)
    if done:
        return True, "", done[0]["line"]
    first = told.by_device.get(number)
    return told.unfinished(number), "", first[0]["line"] if first else 1


def _elsewhere(told: Told, one: Line) -> str:
    """What else may be the reason; "" where it is the device."""
    doing = str(one.get("doing", ""))
    if one["kind"] == "wedged" and one.get("state") in ("T", "t"):
        return (f"somebody stopped its process in {doing} (state T, by a signal or a debugger): "
                "run it again")  # fmt: skip
    if one["kind"] == "failed" and _WITHOUT_MEMORY.search(f"{one['error']} {one['text']}"):
        return (f"{_failed(told, one)}: others may hold the memory, or a limit is too low; free it "
                "and run it again")  # fmt: skip
    if one["kind"] == "died" and -int(one["status"]) in _SENT:
        return _ended(told, one, doing)
    died = told.where("died", one["device"])
    doing = doing or str(died[0]["doing"] if died else "")
    if doing == "attention" and told.plan.get("attention") and one.get("state") != "D":
        say = {"wedged": _wedged, "failed": _failed, "died": _died}[one["kind"]]
        return (f"{say(told, one)}; --attention {told.plan['attention']} may be what it cannot do: "
                "a smaller one, or none, tells whether it is the device")  # fmt: skip
    return ""


def _ended(told: Told, one: Line, doing: str) -> str:
    number = -int(one["status"])
    if number == _KILL and one.get("oom_kills"):
        limit = one.get("limit_bytes")
        mib = f"{limit >> 20} MiB" if isinstance(limit, int) else ""
        whose = f"its control group has {mib}" if mib else "the host has no more"
        return (f"the kernel ended it in {doing} for want of memory ({whose}): give it more, such "
                "as systemd-run -p MemoryMax=8G or the job's --mem, or --devices 1")  # fmt: skip
    how = f"{_SENT[number]} ended it in {doing}: somebody sent that"
    logs = "; or the kernel, for want of memory: sudo dmesg | grep -i -e oom -e 'killed process'"
    return f"{how}{logs if number == _KILL else ''}; run it again"


def _wedged(_told: Told, one: Line) -> str:
    state = ", in uninterruptible sleep within the driver" if one.get("state") == "D" else ""
    return f"wedged in {one['doing']}: it said nothing for {one['after_s']:g} s{state}"


def _failed(told: Told, one: Line) -> str:
    died = told.where("died", one["device"])
    where = f" in {died[0]['doing']}" if died else ""
    return f"failed{where}: {one['error']}: {str(one['text'])[:300]}"


def _died(_told: Told, one: Line) -> str:
    status = int(one["status"]) if finite(one["status"]) else 0
    how = f"signal {-status}" if status < 0 else f"status {status}"
    return f"ended with {how} in {one['doing']}"
