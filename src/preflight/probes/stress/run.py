"""A stress run, from the JSON lines that it tells."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.stress import Stress
from preflight.facts.watch import Watch
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe
from preflight.probes.stress.devices import devices
from preflight.probes.stress.lines import PROBE, Told, count_of, read
from preflight.probes.stress.measured import attention, gemms, pairs, patterns, rates
from preflight.probes.training.lines import number_of, text_of
from preflight.probes.watch import watch

#: A field of a device -> the line that shows it.
_ANSWERS, _SOAK = '"kind": ?"answers"', '"kind": ?"soak"'
_PINNED = '"kind": ?"copy", ?"name": ?"[hd]2[dh] pinned"'
_SHOWS = {
    "digest": _ANSWERS, "peer_digest": _ANSWERS, "repeats": _ANSWERS, "soak_differing": _SOAK,
    "fading_percent": _SOAK, "soak_least_tflops": _SOAK, "soak_behind_percent": _SOAK,
    "pinned_behind_percent": _PINNED, "pinned_gbps": _PINNED,
    "memory_gbps": '"kind": ?"memory", ?"name": ?"copy"',
}  # fmt: skip
_DEVICE = re.compile(r'"device": ?(-?\d+)')


def _locate(text: str, line: int, field: str) -> int:
    """The line of the same device that shows the field; of a GPU that was watched beside the tests
    the one that shows it best."""
    lines = text.split("\n")
    if not 0 < line <= len(lines):
        return line
    if '"kind"' in lines[line - 1]:
        return _shown(lines, line, _SHOWS.get(field, ""))
    locate = watch.probe.locate  # type: ignore[attr-defined]
    found: int = locate(text, line, field)
    return found


def _shown(lines: list[str], line: int, pattern: str) -> int:
    """The last line like this about the device that `line` is about."""
    mine = _DEVICE.search(lines[line - 1])
    found = [
        number
        for number, told in enumerate(lines, 1)
        if pattern and mine and re.search(pattern, told) and _DEVICE.findall(told)[-1] == mine[1]
    ]
    return found[-1] if found else line


@probe(PROBE, ["python3", "-I", "-", "stress"], timeout_s=7200, locate=_locate)
def stress(text: str) -> Stress:
    """One run. Raises ParseError where a line is no JSON of ours, or none is there."""
    try:
        return _facts(read(text))
    except (
        KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError,
    ) as error:  # fmt: skip
        raise ParseError(f"expected values as a stress run tells them: {error}", 1) from error


def _facts(told: Told) -> Stress:
    began = Stress(
        cannot=told.text("cannot"),
        lacks_torch=any(one.get("why") == "no-torch" for one in told.of["cannot"]),
        busy=told.text("busy"),
        interrupted=bool(told.of["interrupted"]),
        probe=PROBE,
    )
    return replace(began, **_measured(told)) if told.begin else began


def _measured(told: Told) -> dict[str, Any]:
    inject = told.plan.get("inject")
    end = next(iter(told.of["end"]), {})
    return {
        "device": text_of(told.plan, "device"),
        "torch": text_of(told.begin, "torch"),
        "devices_asked": count_of(told.begin, "asked"),
        "visible": str(told.begin.get("visible") or ""),
        "seconds": number_of(end, "elapsed_s") if end else told.unfinished(-1),
        "injected": tuple(f"{name}:{at}" for name, at in sorted(inject.items())) if inject else (),
        "devices": devices(told),
        "gemms": gemms(told),
        "memory": rates(told, "memory"),
        "copies": rates(told, "copy"),
        "patterns": patterns(told),
        "attention": attention(told),
        "pairs": pairs(told),
        "watch": _watched(told),
    }


def _watched(told: Told) -> Known[Watch]:
    """What NVML told beside the tests, with the lines where it stands here."""
    if not told.gpu:
        return Missing("not-applicable", "no GPU was under load to be watched")
    try:
        found = watch(told.watch)
    except ParseError:
        return NOT_IN_INPUT
    if isinstance(found.gpus, Missing):
        return replace(found, probe=PROBE)
    gpus = tuple(replace(one, probe=PROBE) for one in found.gpus)
    return replace(found, gpus=gpus, probe=PROBE)
