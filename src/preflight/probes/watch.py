"""GPUs over time, from the JSON lines of preflight's own payload (payload/watch.py)."""

from __future__ import annotations

from typing import Any

import msgspec

from preflight.errors import ParseError
from preflight.facts.watch import Watch
from preflight.model import NOT_IN_INPUT, Known, Missing, MissingKind
from preflight.probes.spec import probe
from preflight.probes.watch_lost import lost_in_time
from preflight.probes.watch_series import COUNTERS, Series, watched

_FORM = "watch/1"
_PROBE = "watch"
#: NVML's errors as kinds of missing (nvmlReturn_t in nvml.h); the rest is unreadable.
_KINDS: dict[str, MissingKind] = {
    "NVML_ERROR_NOT_SUPPORTED": "not-applicable",
    "NVML_ERROR_NOT_FOUND": "not-applicable",
    "NVML_ERROR_FUNCTION_NOT_FOUND": "not-applicable",
    "NVML_ERROR_DEPRECATED": "not-applicable",
    "NVML_ERROR_ARGUMENT_VERSION_MISMATCH": "not-applicable",
    "NVML_ERROR_NO_PERMISSION": "denied",
    "NVML_ERROR_TIMEOUT": "timeout",
    "NVML_ERROR_LIBRARY_NOT_FOUND": "no-tool",
}
_NO_LIBRARY = (
    "libnvidia-ml.so.1 is not there; it comes with the driver, into a container with "
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
)
#: Seconds without a sample of one GPU beside others that may be chance: the payload itself gives a
#: silent GPU 10 (payload/watch.py).
_SLOW_S = 10.0
_CUT = Missing("unreadable", "the recording is cut short: it lacks the counters at its end")
_KIB_PER_GB, _KB_PER_GB = 1e9 / 1024, 1e6
#: A margin is least where the temperature is highest.
_HOTTEST = {"margin_c": "gpu_c", "memory_margin_c": "memory_c"}
_ONLY_DMON = Missing("not-applicable", "only nvidia-smi dmon tells it")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Reading:
    """The lines so far."""

    def __init__(self) -> None:
        self.head: dict[str, Any] = {}
        self.gpus: Known[int] = NOT_IN_INPUT
        self.end: dict[str, Any] = {}
        self.series: dict[int, Series] = {}

    def take(self, line: dict[str, Any], number: int) -> None:
        """One line; what it is about stands in its keys."""
        if "preflight" in line:
            self.head = line
        elif "end" in line:
            self.end = line
        elif "gpus" in line:
            self.gpus = int(line["gpus"])
        elif isinstance(line.get("gpu"), int):
            self._of_gpu(line, number)

    def _of_gpu(self, line: dict[str, Any], number: int) -> None:
        one = self.series.setdefault(line["gpu"], Series(line["gpu"], number))
        for name, error in (line.get("errors") or {}).items():
            where = f"last {name}" if line.get("last") else name
            one.missing[where] = _why(error)
        if "card" in line:
            _card(one, line)
        elif line.get("last"):
            one.last = _numbers(line.get("counters"))
            one.watched_s = float(line["t"])
        elif "lost" in line or "failed" in line:
            one.line, one.trouble = number, _trouble(line)
            one.answers = False if "lost" in line else Missing("exited", one.trouble)
        elif "silent_s" in line:
            one.line, one.hangs, one.trouble = number, True, _silence(line)
            one.answers = Missing("not-applicable", "it hangs")
        else:
            _sample(one, line, number)


def _card(one: Series, line: dict[str, Any]) -> None:
    one.bus_id = str(line.get("bus_id") or "").lower()
    name = (line["card"] or {}).get("name")
    one.product = name if isinstance(name, str) else one.why("name")
    one.card = _numbers(line["card"])
    one.first = _numbers(line.get("counters"))


def _sample(one: Series, line: dict[str, Any], number: int) -> None:
    if not one.samples and not one.trouble:
        one.line = number
    values = _numbers(line)
    one.watched_s = values.pop("t", 0.0)
    for way in ("tx", "rx"):
        if f"pcie_{way}_kbps" in values:
            values[f"pcie_{way}_gbps"] = values[f"pcie_{way}_kbps"] / _KB_PER_GB
    one.samples.append(values)


#: No counter or mask of NVML is larger (64 bits).
_MOST = 2.0**65


def _numbers(values: Any) -> dict[str, float]:
    """What is a number; whole for counters and masks, which a float would round."""
    return {
        name: value
        for name, value in (values or {}).items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _MOST
    }


def _why(error: Any) -> Missing:
    return Missing(_KINDS.get(str(error), "unreadable"), f"NVML says {error}")


def _trouble(line: dict[str, Any]) -> str:
    at = f"after {line.get('t', 0):g} s"
    if "failed" in line:
        return f"{at}: {line['failed']}"
    return f"{at}: {line['lost']} in the call for {line.get('call')}"


def _silence(line: dict[str, Any]) -> str:
    state = ", in uninterruptible sleep" if line.get("state") == "D" else ""
    return f"no answer for {line['silent_s']:g} s in the call for {line.get('call')}{state}"


def _locate(text: str, line: int, field: str) -> int:
    """The line of the same GPU that shows the field best; `line` where none is better."""
    gpu = _object(text.split("\n")[line - 1]).get("gpu")
    head, _, leaf = field.partition(".")
    mine = [
        (number, told)
        for number, told in enumerate(map(_object, text.split("\n")), 1)
        if gpu is not None and told.get("gpu") == gpu
    ]
    if head == "growth":
        return next((number for number, told in mine if told.get("last")), line)
    if head == "throttle":
        reason = leaf.removesuffix("_percent").replace("hw_unnamed", "hw_slowdown")
        return next((number for number, told in mine if reason in told.get("throttle", ())), line)
    if head in _HOTTEST:
        hot = [(told[_HOTTEST[head]], -number) for number, told in mine if told.get(_HOTTEST[head])]
        return -max(hot)[1] if hot else line
    return line


def _object(line: str) -> dict[str, Any]:
    try:
        return _decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return {}


@probe(_PROBE, ["python3", "-I", "-", "watch"], timeout_s=3600, locate=_locate)
def watch(text: str) -> Watch:
    """JSON lines as preflight's payload writes them; a cut recording is read to its last line.

    Raises ParseError where the first line is not the head of this form, or a later one is no JSON.
    """
    reading = _Reading()
    whole, newline, rest = text.rpartition("\n")
    lines = whole.split("\n") if newline else []
    for number, line in enumerate(lines, 1):
        if line.strip():
            _take(reading, line, number)
    if reading.head.get("preflight") != _FORM:
        raise ParseError(f'expected a first line {{"preflight":"{_FORM}", ...}}', 1)
    return _watch(reading, cut=bool(rest.strip()) or not reading.end)


def _take(reading: _Reading, line: str, number: int) -> None:
    try:
        reading.take(_decode(line), number)
    except (msgspec.MsgspecError, RecursionError, ValueError, TypeError, KeyError) as error:
        raise ParseError(
            f"expected a JSON object of the watch, got {line[:60]!r}", number
        ) from error
    except (AttributeError, OverflowError) as error:
        raise ParseError(f"a value of another kind in {line[:60]!r}", number) from error


def _watch(reading: _Reading, *, cut: bool) -> Watch:
    ended = "cut" if cut else str(reading.end["end"])
    interval_s = reading.head.get("interval_s", NOT_IN_INPUT)
    if ended == "no-answer":
        return Watch(_no_answer(reading.end), interval_s, ended=ended, probe=_PROBE)
    if isinstance(reading.gpus, Missing):
        return Watch(_CUT, interval_s, ended=ended, probe=_PROBE)
    if reading.gpus == 0:
        none = Missing("not-applicable", "NVML lists no GPU")
        return Watch(none, interval_s, ended=ended, probe=_PROBE)
    lost_in_time(reading.series.values(), _patience_s(interval_s))
    for one in reading.series.values():
        _finish(one, ended)
    gpus = watched(list(reading.series.values()), _PROBE)
    return Watch(gpus or _CUT, interval_s, "measured", ended, probe=_PROBE)


def _patience_s(interval_s: Known[float]) -> float:
    """Silence of a GPU beside others that may be chance: one that is slow to answer."""
    known = isinstance(interval_s, (int, float)) and not isinstance(interval_s, bool)
    return _SLOW_S + (2 * interval_s if known else 0)  # type: ignore[operator]


def _finish(one: Series, ended: str) -> None:
    """Why a GPU has no counters at its end, and NVLink's rate over the whole time."""
    one.missing.update(thermal_violation=_ONLY_DMON, power_violation_percent=_ONLY_DMON)
    _nvlink_rates(one)
    if one.last:
        return
    why = Missing("exited", f"interrupted, so there is no second look{_at(one)}")
    if one.trouble:
        why = Missing("not-applicable", "the GPU gave no second look")
    elif ended == "cut":
        why = _CUT
    one.missing.update({f"last {name}": why for name in COUNTERS})


def _at(one: Series) -> str:
    return "" if isinstance(one.watched_s, Missing) else f" ({one.watched_s:g} s watched)"


def _nvlink_rates(one: Series) -> None:
    if isinstance(one.watched_s, Missing) or not one.watched_s:
        return
    for way in ("tx", "rx"):
        name = f"nvlink_{way}_kib"
        if name in one.first and name in one.last and one.samples:
            grown = max(one.last[name] - one.first[name], 0)
            one.samples[-1][f"nvlink_{way}_gbps"] = grown / _KIB_PER_GB / one.watched_s
        elif name in one.missing:
            one.missing[f"nvlink_{way}_gbps"] = one.missing[name]


def _no_answer(end: dict[str, Any]) -> Missing:
    """Why NVML told nothing at all."""
    error = str(end.get("error") or "")
    if error == "NVML_ERROR_LIBRARY_NOT_FOUND":
        return Missing("no-tool", _NO_LIBRARY)
    if not error:
        return Missing("timeout", f"NVML: {end.get('text')}")
    kind = _KINDS.get(error, "exited")
    return Missing(
        kind if kind != "not-applicable" else "exited", f"NVML: {end.get('text')} ({error})"
    )
