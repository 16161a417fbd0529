"""What --stress and the like ask of a stress run, as the plan that travels to it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from math import prod
from typing import Any

from preflight.cli.drills import has_no_gpu
from preflight.cli.options import OPTIONS, STRESS, Options
from preflight.errors import UsageError
from preflight.model import Command
from preflight.units import parse_duration

#: What `run --level full` adds: long enough for a heat sink to be as hot as it gets.
SOAK: dict[str, Any] = {"soak_s": 120.0}
#: The form of its lines.
FORM = "stress/1"
#: Those of payload/stress/inject.py; a test holds them together.
FAULTS = ("wedge", "zero-work", "corrupt", "memory", "slow", "lost")
#: Seconds of a run without soak, by what payload/stress/work.py gives its tests and what starting
#: takes besides; a test holds them together.
SECONDS = {"processors": 12, "GPUs": 60}
#: A device that a drill wedges is given up after so long.
_DRILL_SILENT_S = 20.0
_DEFAULTS = Options()
_SHAPE = re.compile(r"[1-9]\d{0,6}(?:x[1-9]\d{0,6}){4}")
#: More than this no device holds, nor can torch count the bytes of more.
_MOST_ELEMENTS = 1 << 44


def plan_of(options: Options) -> dict[str, Any]:
    """The plan: what was asked for, and nothing that was left open. Raises UsageError."""
    _hold(options)
    plan: dict[str, Any] = {
        name: value
        for name in ("devices", "attention", "even_if_busy")
        if (value := getattr(options, name))
    }
    plan |= {"soak_s": parse_duration(options.duration)} if options.duration else {}
    inject = dict(_faults(options))
    # A drill does not wait for a minute.
    plan |= {"silent_s": _DRILL_SILENT_S} if "wedge" in inject else {}
    return plan | ({"inject": inject} if inject else {})


def level_of(options: Options) -> str:
    """A soak is what the level full adds; less than standard puts nothing under load."""
    if options.duration:
        return "full"
    return "standard" if options.level == "quick" else options.level


def _hold(options: Options) -> None:
    """Refuse what cannot be, before anything is done."""
    if not options.stress:
        name = next(name for name in STRESS if getattr(options, name) != getattr(_DEFAULTS, name))
        flag = OPTIONS[name].flags[0]
        raise UsageError(f"{flag} is of a stress run", f"preflight gpu-health --stress {flag} ...")
    if options.from_:
        raise UsageError("--stress loads what is here, --from reads what was recorded",
                         "leave one of them out")  # fmt: skip
    if options.devices is not None and options.devices < 1:
        raise UsageError(f"--devices {options.devices} is too small", "--devices 1 or more")
    cores = len(os.sched_getaffinity(0))
    if has_no_gpu(options) and (options.devices or 1) > cores:
        raise UsageError(f"--devices {options.devices}: there are {cores} cores, and no GPU",
                         f"--devices {cores} or less")  # fmt: skip
    if options.attention is not None:
        _hold_shape(options.attention)


def _hold_shape(text: str) -> None:
    hint = "--attention 2x32x8x4096x128: batch, heads, heads of keys, length, size of a head"
    if not _SHAPE.fullmatch(text):
        raise UsageError(f"--attention {text!r} is no shape", hint)
    batch, heads, kv_heads, length, size = map(int, text.split("x"))
    if heads % kv_heads:
        what = f"{heads} heads are no multiple of {kv_heads} heads of keys"
        raise UsageError(f"--attention {text}: {what}", hint)
    if prod((batch, heads, length, size)) > _MOST_ELEMENTS:
        raise UsageError(f"--attention {text} fits on no device", hint)


def _faults(options: Options) -> Iterator[tuple[str, int]]:
    for one in options.drill:
        name, _, argument = one.partition(":")
        if name not in FAULTS:
            raise UsageError(f"--inject {name!r} is no fault", f"one of {', '.join(FAULTS)}")
        if not re.fullmatch(r"\d{0,4}", argument):
            raise UsageError(f"--inject {one}: {argument!r} is no device", f"{name}:1")
        count = options.devices or (1 if has_no_gpu(options) else None)
        if count is not None and int(argument or 0) >= count:
            raise UsageError(f"--inject {one}: there is no device {argument}",
                             f"the last is {name}:{count - 1}; --devices N makes more")  # fmt: skip
        if name == "slow" and has_no_gpu(options):
            why = "rates of processors are shown and not judged, and this machine has no GPU"
            raise UsageError(f"--inject {one} would not be seen: {why}",
                             "--hosts names machines that have some")  # fmt: skip
        yield name, int(argument or 0)


def stress_question(plan: dict[str, Any], python: tuple[str, ...]) -> Command:
    """The question, with what it takes."""
    from preflight.ship import stress_command

    soak_s = float(plan.get("soak_s", 0.0))
    return stress_command(plan, soak_s + max(SECONDS.values()), python, estimate(plan))


def estimate(plan: dict[str, Any]) -> str:
    """What it takes, for --dry-run."""
    soak = plan.get("soak_s", 0.0)
    told = ", ".join(f"{soak + seconds:g} s on {where}" for where, seconds in SECONDS.items())
    return f"about {told}, every device under load"


_NEWS = {
    "begin": "the devices start", "gemm": "products in {precision}", "memory": "memory: {name}",
    "attention": "attention: {kernel}", "answers": "a short training, twice",
    "pattern": "memory: {name}", "soak": "soak", "copy": "copies: {name}",
    "pair": "copies: {from} to {to}", "wedged": "wedged in {doing}, the others go on",
    "died": "ended in {doing}, the others go on",
}  # fmt: skip


def told_of(line: dict[str, Any]) -> str:
    """A line of the payload in words for a terminal; "" for one that is no news."""
    news = _NEWS.get(str(line.get("kind", "")), "")
    if line.get("preflight", FORM) != FORM:  # of other work that the run does
        return ""
    device = line.get("device")
    try:
        told = news.format(**line)
    except (KeyError, ValueError, IndexError):
        return ""
    return f"device {device}: {told}" if told and isinstance(device, int) and device >= 0 else told
