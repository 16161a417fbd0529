"""The processors at work: on or off, the frequencies they may take, idle states, heat, load."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from preflight.errors import ParseError
from preflight.facts.system import CpuState
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "cpu-state"

# Sources: Documentation/admin-guide/pm/cpufreq.rst, cpuidle.rst, ABI/testing/sysfs-devices-system-
# cpu of the kernel. Of the idle states those of the first processor stand for all.
_ASK = """\
cd /sys/devices/system/cpu || exit 2
grep -s -H '' present online smt/control cpu0/cpuidle/state*/name cpu0/cpuidle/state*/latency \
  cpu0/cpuidle/state*/disable \
  cpu[0-9]*/cpufreq/scaling_max_freq cpu[0-9]*/cpufreq/cpuinfo_max_freq \
  cpu[0-9]*/thermal_throttle/core_throttle_count \
  cpu[0-9]*/thermal_throttle/core_throttle_total_time_ms
grep -s -H '' /proc/loadavg /proc/uptime
grep -s -H '^cpu ' /proc/stat
echo end"""

_LINE = re.compile(r"([\w/.-]+):(.*)")
_NO_FREQUENCY = Missing(
    "not-applicable", "the kernel sets no frequencies here: the hypervisor or the firmware does"
)
_NO_HEAT = Missing("not-applicable", "this processor does not count throttling by heat")
_SMT_OFF = frozenset({"off", "forceoff"})
#: A limit within so much of what the processor can do is none: drivers round.
_CAPPED = 0.95

_SHOWN = {
    "capped": "scaling_max_freq:", "throttled_percent": "core_throttle_total_time_ms:",
    "load_per_cpu": "/proc/loadavg:", "steal_percent": "/proc/stat:", "offline": "online:",
}  # fmt: skip


def locate(text: str, start: int, field: str) -> int:
    """The first line of the file that shows a field."""
    lines = enumerate(text.split("\n"), 1)
    name = _SHOWN.get(field, "\0")
    return next((at for at, line in lines if name in line), start)


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10, locate=locate)
def cpu_state(text: str) -> CpuState:
    """`file:line` of each file; those that are absent are left out."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the state of the processors is cut short: no closing `end`", len(lines))
    told = {match[1]: match[2].strip() for line in lines if (match := _LINE.fullmatch(line))}
    present, online = _cpus(told.get("present", "")), _cpus(told.get("online", ""))
    if isinstance(online, Missing):
        raise ParseError("expected a line `online:0-7`", 1)
    smt = told.get("smt/control", "")
    deepest = _deepest(told)
    limit, can, capped = _frequencies(told)
    events, throttled = _heat(told)
    load = _load(told)
    return CpuState(
        present=present,
        online=online,
        offline=_offline(present, online, smt),
        smt=smt or Missing("not-applicable", "the kernel does not tell whether it has SMT"),
        frequency_limit_mhz=limit,
        frequency_can_mhz=can,
        capped=capped,
        deepest_idle=deepest if isinstance(deepest, Missing) else deepest[1],
        deepest_idle_us=deepest if isinstance(deepest, Missing) else deepest[0],
        throttle_events=events,
        throttled_percent=throttled,
        load_5min=load,
        load_per_cpu=load if isinstance(load, Missing) else load / online,
        steal_percent=_steal(told),
        probe=_PROBE,
    )


def _cpus(text: str) -> Known[int]:
    spans = re.findall(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", text)
    count = sum(int(last or first) - int(first) + 1 for first, last in spans)
    return count or Missing("unreadable", "the kernel does not list its processors")


def _offline(present: Known[int], online: int, smt: str) -> Known[int]:
    """With SMT switched off the siblings are off, as they should be."""
    if isinstance(present, Missing):
        return present
    if smt in _SMT_OFF and present >= 2 * online:
        return max(present - 2 * online, 0)
    return present - online


def _deepest(told: dict[str, str]) -> Known[tuple[int, str]]:
    """(microseconds to wake up, name) of the deepest idle state that is not disabled."""
    found = []
    for key, name in told.items():
        state, _, last = key.rpartition("/")
        latency = told.get(f"{state}/latency", "")
        if last == "name" and told.get(f"{state}/disable", "0") == "0" and latency.isdecimal():
            found.append((int(latency), name[:40]))
    return max(found, default=Missing("not-applicable", "the kernel chooses no idle states here"))


def _numbers(told: dict[str, str], last: str) -> Iterator[tuple[str, int]]:
    """(cpu17, value) of a file that every processor has."""
    for key, value in told.items():
        if key.endswith(last) and re.fullmatch(r"[0-9]{1,15}", value):
            yield key.partition("/")[0], int(value)


def _frequencies(told: dict[str, str]) -> tuple[Known[int], Known[int], Known[int]]:
    """The lowest limit, what that processor can do, and how many are limited; files in kHz."""
    can = dict(_numbers(told, "/cpufreq/cpuinfo_max_freq"))
    pairs = [
        (limit, can[cpu])
        for cpu, limit in _numbers(told, "/cpufreq/scaling_max_freq")
        if can.get(cpu)
    ]
    if not pairs:
        return _NO_FREQUENCY, _NO_FREQUENCY, _NO_FREQUENCY
    lowest = min(pairs, key=lambda pair: pair[0] / pair[1])
    capped = sum(limit < _CAPPED * most for limit, most in pairs)
    return lowest[0] // 1000, lowest[1] // 1000, capped


def _heat(told: dict[str, str]) -> tuple[Known[int], Known[float]]:
    """Times that a core was slowed down by heat, and the share of the time since boot."""
    events = [count for _, count in _numbers(told, "/thermal_throttle/core_throttle_count")]
    spent = [ms for _, ms in _numbers(told, "/thermal_throttle/core_throttle_total_time_ms")]
    uptime = _float(told.get("/proc/uptime", "").split())
    share: Known[float] = _NO_HEAT
    if spent:
        share = uptime if isinstance(uptime, Missing) else _percent(max(spent) / 1000, uptime)
    return max(events) if events else _NO_HEAT, share


def _load(told: dict[str, str]) -> Known[float]:
    return _float(told.get("/proc/loadavg", "").split()[1:])


def _float(words: Sequence[str]) -> Known[float]:
    if words and re.fullmatch(r"[0-9]{1,12}(?:\.[0-9]{1,6})?", words[0]):
        return float(words[0])
    return Missing("unreadable", "/proc/loadavg or /proc/uptime cannot be read")


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def _steal(told: dict[str, str]) -> Known[float]:
    """The eighth of the times of /proc/stat, of all before it: guest times are in user's."""
    words = told.get("/proc/stat", "").split()[1:9]
    if len(words) < 8 or not all(re.fullmatch(r"[0-9]{1,20}", word) for word in words):
        return Missing("unreadable", "/proc/stat does not tell the time taken by a hypervisor")
    times = [int(word) for word in words]
    return _percent(times[7], sum(times))
