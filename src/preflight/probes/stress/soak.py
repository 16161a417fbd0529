"""Of the soak of one device: how fast, how long, and whether its products stayed the same."""

from __future__ import annotations

from typing import Any

from preflight.model import Known, Missing
from preflight.probes.stress.lines import Line, Told, count_of
from preflight.probes.training.lines import finite

_NO_SOAK = Missing("not-asked", "needs a soak: --duration 10m, or --level full")
_SHORT = Missing("not-applicable", "too short to tell whether it fades")
_SHARED = Missing("not-applicable", "processors are shared with the rest of the host: shown only")
_UNTOLD = Missing("unreadable", "its lines do not tell it")
#: Seconds of a soak that show whether a device fades.
_LEAST_SOAK_S = 20.0
#: Of the time that was asked for; what is between two lines counts for none.
_LEAST_PART = 0.9
_FIELDS = ("fading_percent", "soak_s", "soak_differing", "soak_tflops", "soak_least_tflops")


def soaked(told: Told, number: int) -> dict[str, Any]:
    """The fields of a device that are of its soak."""
    asked_s, lines = told.plan.get("soak_s"), told.where("soak", number)
    if not asked_s:
        return dict.fromkeys(_FIELDS, _NO_SOAK)
    if not lines:
        return dict.fromkeys(_FIELDS, told.unfinished(number))
    numbers = [one.get(name) for one in lines for name in ("for_s", "flops_per_s")]
    if not finite(asked_s) or not all(finite(one) and one >= 0 for one in numbers):
        return dict.fromkeys(_FIELDS, _UNTOLD)
    soak_s = sum(float(one["for_s"]) for one in lines)
    least = min(float(one["flops_per_s"]) for one in lines) / 1e12
    differing, fading = _differing(lines), _fading(told, lines, soak_s)
    if soak_s < _LEAST_PART * asked_s:  # what is wrong stays wrong, and nothing else is known
        why = _too_short(told, number, soak_s, asked_s)
        differing = differing if isinstance(differing, int) and differing else why
        return {"soak_s": soak_s, "soak_differing": differing, "fading_percent": why,
                "soak_tflops": why, "soak_least_tflops": why if least else least}  # fmt: skip
    return {"soak_s": soak_s, "soak_differing": differing, "fading_percent": fading,
            "soak_tflops": _rate(lines) / 1e12, "soak_least_tflops": least}  # fmt: skip


def _too_short(told: Told, number: int, soak_s: float, asked_s: float) -> Missing:
    why = told.unfinished(number)
    ended = why.text if not told.where("done", number) else "and its line says that it ended"
    return Missing(why.kind, f"{soak_s:.0f} of {asked_s:g} s were soaked: {ended}")


def _differing(lines: list[Line]) -> Known[int]:
    counts = [count_of(one, "differing") for one in lines]
    unknown = next((one for one in counts if isinstance(one, Missing)), None)
    known = sum(one for one in counts if not isinstance(one, Missing))
    return known if known or unknown is None else unknown


def _fading(told: Told, lines: list[Line], soak_s: float) -> Known[float]:
    """The last tenth against the first."""
    if not told.gpu:
        return _SHARED
    if soak_s < _LEAST_SOAK_S:
        return _SHORT
    tenth = max(1, len(lines) // 10)
    first, last = (_rate(part) for part in (lines[:tenth], lines[-tenth:]))
    return 100.0 * (1.0 - last / first) if first > 0 else _UNTOLD


def _rate(lines: list[Line]) -> float:
    """Operations by second over some lines."""
    done = sum(float(one["flops_per_s"]) * float(one["for_s"]) for one in lines)
    return done / max(sum(float(one["for_s"]) for one in lines), 1e-9)
