"""One device of a stress run after the other: whether it came to its end, what it answered."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec.structs import replace

from preflight.facts.stress import StressDevice
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.stress.lines import BETWEEN, PROBE, Line, Told, median_of, spread_of

_ALONE = Missing("not-applicable", "no other device of its model told what it computed")
_OTHER_MODEL = Missing("not-applicable", "it is of another model than most of the host's")
_NO_SOAK = Missing("not-asked", "needs a soak: --duration 10m, or --level full")
_SHORT = Missing("not-applicable", "too short to tell whether it fades")
_SHARED = Missing("not-applicable", "processors are shared with the rest of the host: shown only")
#: Seconds of a soak that show whether a device fades.
_LEAST_SOAK_S = 20.0
_DIGITS = 8


def devices(told: Told) -> tuple[StressDevice, ...]:
    """All devices; after them what copied between GPUs, where it did not come to its end."""
    numbers = told.numbers()
    usual = Counter(str(told.product(one)) for one in numbers).most_common(1)
    found = [_device(told, one, alike=str(told.product(one)) == usual[0][0]) for one in numbers]
    if told.lost(BETWEEN):
        found.append(_device(told, BETWEEN, alike=False))
    compared = [one for one in found if not isinstance(one.peer_digest, Missing)]
    if len(compared) == 1:  # it is like itself, which is no proof
        at = found.index(compared[0])
        found[at] = replace(found[at], peer_digest=_ALONE)
    return tuple(found)


def _device(told: Told, number: int, *, alike: bool) -> StressDevice:
    ended, trouble, line = _end(told, number)
    name, digest = told.name(number), _digest(told, number)
    return StressDevice(
        name=name,
        bus_id=name,
        uuid=str(told.about(number).get("uuid", "")).lower().removeprefix("gpu-"),
        product=told.product(number),
        ended=ended,
        trouble=trouble,
        digest=digest,
        peer_digest=digest if alike else _OTHER_MODEL,
        repeats=_repeats(told, number),
        **_moved(told, number),
        **_soaked(told, number),
        line=line,
        probe=PROBE,
    )


def _end(told: Told, number: int) -> tuple[Known[bool], str, int]:
    """Whether it came to its end, why not, and the line that says so."""
    for kind, say in (("wedged", _wedged), ("failed", _failed), ("died", _died)):
        for one in told.where(kind, number):
            return False, say(told, one), one["line"]
    done = told.where("done", number)
    if done:
        return True, "", done[0]["line"]
    first = told.by_device.get(number)
    return told.unfinished(number), "", first[0]["line"] if first else 1


def _wedged(_told: Told, one: Line) -> str:
    state = ", in uninterruptible sleep within the driver" if one.get("state") == "D" else ""
    return f"wedged in {one['doing']}: it said nothing for {one['after_s']:g} s{state}"


def _failed(told: Told, one: Line) -> str:
    died = told.where("died", one["device"])
    where = f" in {died[0]['doing']}" if died else ""
    return f"failed{where}: {one['error']}: {str(one['text'])[:300]}"


def _died(_told: Told, one: Line) -> str:
    status = int(one["status"])
    how = f"signal {-status}" if status < 0 else f"status {status}"
    return f"ended with {how} in {one['doing']}"


def _digest(told: Told, number: int) -> Known[str]:
    """What it computed, each part by some digits of its own."""
    answers = told.where("answers", number)
    if not answers:
        return told.unfinished(number)
    parts = [("training", answers[0]["digests"][0])]
    parts += [("attention", one.get("digest")) for one in told.where("attention", number)]
    parts += [(str(one["precision"]), one.get("digest")) for one in told.where("gemm", number)]
    return ", ".join(f"{name} {str(each)[:_DIGITS]}" for name, each in parts)


def _repeats(told: Told, number: int) -> Known[bool]:
    answers = told.where("answers", number)
    if not answers:
        return told.unfinished(number)
    first, second = answers[0]["digests"][:2]
    return bool(first == second)


def _moved(told: Told, number: int) -> dict[str, Any]:
    """How fast it copies within its memory, and to and from the host's; of processors this is
    shown only."""
    if not told.gpu:
        return {"memory_gbps": _SHARED, "pinned_gbps": _SHARED}
    rates = {
        str(one["name"]): median_of(spread_of(one, "bytes_per_s", 1e9))
        for kind in ("memory", "copy")
        for one in told.where(kind, number)
    }
    pinned = [rates.get(name, told.unfinished(number)) for name in ("h2d pinned", "d2h pinned")]
    unknown = next((one for one in pinned if isinstance(one, Missing)), None)
    known = [one for one in pinned if not isinstance(one, Missing)]
    return {
        "memory_gbps": rates.get("copy", told.unfinished(number)),
        "pinned_gbps": unknown or min(known),
    }


def _soaked(told: Told, number: int) -> dict[str, Any]:
    """Of the soak: the last tenth against the first, and products that changed."""
    lines = told.where("soak", number)
    if not told.plan.get("soak_s"):
        return dict.fromkeys(("fading_percent", "soak_s", "soak_differing"), _NO_SOAK)
    if not lines:
        return dict.fromkeys(("fading_percent", "soak_s", "soak_differing"),
                             told.unfinished(number))  # fmt: skip
    soak_s = sum(float(one["for_s"]) for one in lines)
    return {
        "soak_s": soak_s,
        "soak_differing": sum(int(one["differing"]) for one in lines),
        "fading_percent": _fading(told, lines, soak_s),
    }


def _fading(told: Told, lines: list[Line], soak_s: float) -> Known[float]:
    if not told.gpu:
        return _SHARED
    if soak_s < _LEAST_SOAK_S:
        return _SHORT
    tenth = max(1, len(lines) // 10)
    first, last = (_rate(part) for part in (lines[:tenth], lines[-tenth:]))
    return 100.0 * (1.0 - last / first) if first > 0 else NOT_IN_INPUT


def _rate(lines: list[Line]) -> float:
    """Operations by second over some lines."""
    done = sum(float(one["flops_per_s"]) * float(one["for_s"]) for one in lines)
    return done / max(sum(float(one["for_s"]) for one in lines), 1e-9)
