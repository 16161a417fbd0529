"""Running processes over some seconds, from the JSON lines of payload/look/look.py."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

from preflight.errors import ParseError
from preflight.facts.hangs import Stack
from preflight.facts.process import GpuLook, HostLook, ProcessLook, ThreadLoad
from preflight.model import Known, Missing
from preflight.probes.told import Line, lines_of

_FORM = "look/1"
#: Samples of one stack that count.
_MOST = 1000
_UNTOLD = Missing("denied", "the kernel does not tell it to this user")


def look(text: str, host: str) -> HostLook:
    """ParseError where it is no look, or a value is of another kind."""
    lines = lines_of(text, _FORM)
    by_kind: dict[str, list[Line]] = defaultdict(list)
    for one in lines:
        by_kind[one["kind"]].append(one)
    try:
        return _look(by_kind, host)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(f"a value of another kind in the look: {error}") from error


def _look(by_kind: dict[str, list[Line]], host: str) -> HostLook:
    spy = _first(by_kind, "spy")
    stacks = _stacks(by_kind["stack"], by_kind["process"], host)
    gpus = tuple(_gpu(one, host) for one in by_kind["gpu"])
    holders = {pid for one in gpus for pid in one.pids}
    machine, none = _first(by_kind, "machine"), _first(by_kind, "no-gpus")
    ended = bool(by_kind["end"])
    return HostLook(
        host, tuple(_process(one, host, stacks, spy, holders) for one in by_kind["process"]),
        gpus=Missing("no-tool", f"NVML says {none['text']}") if none else gpus,
        pressure=machine.get("pressure") or Missing("no-tool", "this kernel has no /proc/pressure"),
        disk_busy_percent=machine.get("disks") or Missing("unreadable", "no /proc/diskstats"),
        network_mbps=machine.get("network") or Missing("unreadable", "no /proc/net/dev"),
        ras=machine.get("ras") or Missing("not-applicable", "NCCL's service does not answer"),
        troubles=(*(str(one["text"]) for one in by_kind["trouble"]),
                  *(() if ended else ("the look was cut short",))),
        spy=spy.get("program") or Missing("no-tool", str(spy.get("why") or "py-spy is not there")),
        seconds=float(by_kind["head"][0]["seconds"]),
    )  # fmt: skip


def _first(by_kind: dict[str, list[Line]], kind: str) -> Line:
    return by_kind[kind][0] if by_kind[kind] else {}


def _process(
    one: Line, host: str, stacks: dict[int, list[Stack]], spy: Line, holders: set[int]
) -> ProcessLook:
    grown, last = one.get("grown") or {}, one.get("last") or {}
    seconds = float(one.get("seconds") or 0)
    states, looks = one["states"], int(one["looks"])
    pid = int(one["pid"])

    def rate(name: str, times: float = 1.0) -> Known[float]:
        return grown[name] / seconds * times if name in grown and seconds else _UNTOLD

    why = (spy.get("failed") or {}).get(str(pid)) or spy.get("why") or "it was not asked"
    seen: Known[tuple[Stack, ...]] = Missing("no-tool" if spy.get("why") else "denied", str(why))
    return ProcessLook(
        host, pid, str(one["command"]), one["parent"], str(one["role"]),
        rank=_known(one["rank"]), local_rank=_known(one["local_rank"]), seconds=seconds,
        looks=looks, cpu_percent=rate("cpu_s", 100), cores_allowed=_known(one.get("cores")),
        disk_wait_percent=100 * states.get("D", 0) / looks if looks else _UNTOLD,
        asleep_percent=100 * states.get("S", 0) / looks if looks else _UNTOLD,
        waits_per_s=rate("waits"), read_bytes_per_s=rate("rchar"), write_bytes_per_s=rate("wchar"),
        rss_bytes=_known(last.get("rss_bytes")), rss_growth_bytes=_known(grown.get("rss_bytes")),
        major_faults_per_s=rate("major_faults"), swapped_bytes=_known(last.get("swapped_bytes")),
        run_wait_percent=rate("run_wait_s", 100), throttled_percent=_held(grown),
        processor_limit=_UNTOLD if last.get("limit") is None else float(last["limit"]),
        stopped=looks > 0 and states.get("T", 0) + states.get("t", 0) == looks,
        trains=bool(one["trains"]) or pid in holders or one["rank"] is not None,
        wchan=str(one["wchan"]), line=int(one["line"]), threads=_threads(one),
        stacks=tuple(stacks[pid]) if stacks.get(pid) else seen, ended=str(one["ended"]),
    )  # fmt: skip


def _held(grown: Line) -> Known[float]:
    if "held_periods" not in grown:
        return _UNTOLD
    return 100 * float(grown["held_periods"]) / max(float(grown["periods"]), 1)


def _known(value: Any) -> Known[int]:
    return _UNTOLD if value is None else int(value)


def _threads(one: Line) -> tuple[ThreadLoad, ...]:
    return tuple(
        ThreadLoad(int(each["tid"]), str(each["name"]), float(each["cpu_percent"]))
        for each in one.get("threads") or ()
    )


def _stacks(lines: list[Line], processes: list[Line], host: str) -> dict[int, list[Stack]]:
    """By PID, each as often as it was seen. Of a container the kernel knows other numbers than its
    threads do: the first thread is then the one that Python calls so."""
    ranks = {one["pid"]: one["rank"] for one in processes}
    numbered = {one["pid"] for one in lines if one["tid"] == one["pid"]}
    found: dict[int, list[Stack]] = defaultdict(list)
    for one in lines:
        pid, thread = int(one["pid"]), str(one["thread"])
        main = one["tid"] == pid if pid in numbered else thread == "MainThread"
        stack = Stack(
            host, int(one["line"]), ranks.get(pid), host, pid, thread, str(one["state"]),
            tuple(map(str, one["frames"])), main, str(one.get("code") or ""),
        )  # fmt: skip
        found[pid] += [stack] * min(max(int(one.get("count", 1)), 1), _MOST)
    return found


def _gpu(one: Line, host: str) -> GpuLook:
    def middle(name: str, times: float = 1.0) -> Known[float]:
        values = [each[name] for each in one["samples"] if each.get(name) is not None]
        return median(values) * times if values else Missing("not-applicable", "NVML has no value")

    reasons = 0
    for each in one["samples"]:
        reasons |= int(each.get("reasons") or 0)
    top = one.get("sm_max_mhz")
    return GpuLook(
        host, int(one["index"]), tuple(one["pids"]), str(one.get("name") or ""),
        sm_percent=middle("utilization_percent"),
        memory_percent=middle("memory_utilization_percent"),
        power_w=middle("power_w"), power_limit_w=middle("power_limit_w"),
        sm_clock_mhz=middle("sm_mhz"),
        sm_clock_max_mhz=float(top) if top else Missing("not-applicable", "NVML has no value"),
        temperature_c=middle("gpu_c"),
        reasons=reasons if one["samples"] else Missing("unreadable", "no sample"),
        pcie_rx_mbps=middle("pcie_rx_kbps", 1e-3), pcie_tx_mbps=middle("pcie_tx_kbps", 1e-3),
    )  # fmt: skip
