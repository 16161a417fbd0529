"""What tables of GPUs and disks beside a run tell. Utilisation alone proves nothing: a collective
that spins is 100 % of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.diagnosis.asked import Asked
from preflight.diagnosis.reading import Lack, Number, Reading, Sign
from preflight.facts.samples import DiskLoad, DiskSamples, GpuSamples
from preflight.facts.watch import WatchedGpu
from preflight.model import Evidence, Missing
from preflight.units import number

#: Of the time. DRAM active peaks near 80 % (DCGM's notes on field 1005); tensor cores of a run that
#: multiplies matrices are active a third of it and more.
_DRAM_BUSY, _TENSOR_LOW, _SM_BUSY = 60.0, 20.0, 80.0
#: Below this a GPU has nothing to do for much of the time.
_IDLE = 65.0
_MANY = 3  # reports of iostat that are a series

_TRACE = (
    "preflight diagnose-step-time PID on the host, or torch.profiler with CPU and CUDA activities"
)


def reading(facts: dict[str, list[Any]], asked: Asked) -> Reading | None:
    """GPUs and disks together: what held the run up is often in the other table."""
    gpus: list[GpuSamples] = facts.get("gpu-samples", [])
    disks: list[DiskSamples] = facts.get("iostat", [])
    signs = [*_gpu_signs(gpus), *_disk_signs(disks)]
    covers = _covered(gpus, disks)
    told = [f"{len(gpus)} table(s) of GPUs"] if gpus else []
    told += [f"{len(disks)} table(s) of disks"] if disks else []
    return Reading(
        " and ".join(told), signs=tuple(signs), covers=covers,
        lacks=tuple(_lacks(gpus, disks, covers)), numbers=tuple(_numbers(gpus)),
        notes=tuple(_notes(disks)),
    )  # fmt: skip


def _each(gpus: list[GpuSamples]) -> Iterator[tuple[GpuSamples, WatchedGpu]]:
    for one in gpus:
        if not isinstance(one.watch.gpus, Missing):
            yield from ((one, gpu) for gpu in one.watch.gpus)


def _evidence(one: GpuSamples, gpu: WatchedGpu) -> tuple[Evidence, ...]:
    return (Evidence("gpu-samples", source=one.source, line=gpu.line or None),)


def _gpu_signs(gpus: list[GpuSamples]) -> Iterator[Sign]:
    for one, gpu in _each(gpus):
        yield from _throttled(one, gpu)
        yield from _memory_bound(one, gpu)
        if gpu.answers is False or gpu.hangs is True:
            yield Sign("hang", f"{gpu.name} was lost while it was watched: {gpu.trouble}",
                       subject=gpu.name, evidence=_evidence(one, gpu),
                       fix=("preflight gpu-health on its host",))  # fmt: skip


def _throttled(one: GpuSamples, gpu: WatchedGpu) -> Iterator[Sign]:
    """Heat and the power brake; a power cap at full load is what a limit is for."""
    reasons = {
        "hardware, by heat": gpu.throttle.hw_thermal_percent,
        "the power brake": gpu.throttle.hw_power_brake_percent,
        "hardware": gpu.throttle.hw_unnamed_percent,
        "the driver, by heat": gpu.throttle.sw_thermal_percent,
        "heat": gpu.throttle.thermal_violation_percent,
    }
    known = {name: value for name, value in reasons.items() if not isinstance(value, Missing)}
    if not known or max(known.values()) <= 0:
        return
    name, percent = max(known.items(), key=lambda item: item[1])
    yield Sign(
        "throttled", f"{gpu.name} was slowed by {name} in {number(percent)} % of {gpu.samples} "
        "samples", share=percent / 100, subject=gpu.name,
        confidence="high" if gpu.samples >= 10 else "low", evidence=_evidence(one, gpu),
    )  # fmt: skip


def _memory_bound(one: GpuSamples, gpu: WatchedGpu) -> Iterator[Sign]:
    spans = (gpu.dram_active_percent, gpu.tensor_active_percent, gpu.sm_active_percent)
    if any(isinstance(span, Missing) for span in spans):
        return
    dram, tensor, active = (span.median for span in spans if not isinstance(span, Missing))
    if dram >= _DRAM_BUSY and tensor < _TENSOR_LOW and active >= _SM_BUSY:
        yield Sign(
            "memory-bandwidth", f"{gpu.name}: memory active {number(dram)} %, tensor cores "
            f"{number(tensor)} %, SMs {number(active)} % of the time (medians of {gpu.samples})",
            share=dram / 100, subject=gpu.name, evidence=_evidence(one, gpu),
            against=("tensor cores would be active if matrices were multiplied",),
        )  # fmt: skip


def _disk_signs(disks: list[DiskSamples]) -> Iterator[Sign]:
    for one in disks:
        for device in one.devices:
            if device.held_up and not one.since_boot:
                yield _held_up(one, device)


def _held_up(one: DiskSamples, device: DiskLoad) -> Sign:
    waits = [
        f"{word} {number(value)} ms" for word, value in
        (("reads wait", device.read_await_ms), ("writes wait", device.write_await_ms))
        if not isinstance(value, Missing)
    ]  # fmt: skip
    text = (
        f"{device.name} was held up in {device.held_up} of {device.reports} reports: "
        f"{', '.join(waits)}, {_known(device.queue)} in the queue, {_known(device.util_percent)} % "
        "busy (medians)"
    )
    return Sign(
        "disk", text, share=device.held_up / device.reports, subject=device.name,
        confidence="medium" if device.reports >= _MANY else "low",
        evidence=(Evidence("iostat", source=one.source, line=device.line or None),),
        against=("busy all the time with short waits would be a device that serves many at once",),
    )  # fmt: skip


def _known(value: object) -> str:
    return number(value) if isinstance(value, float) else "?"


def _covered(gpus: list[GpuSamples], disks: list[DiskSamples]) -> frozenset[str]:
    """What the columns that are there can rule out."""
    found = set()
    pairs = list(_each(gpus))
    if pairs and all(_tells_heat(gpu) for _, gpu in pairs):
        found.add("throttled")
    if pairs and all(not isinstance(gpu.dram_active_percent, Missing) for _, gpu in pairs):
        found.add("memory-bandwidth")
    if disks and all(one.reports >= _MANY and not one.since_boot for one in disks):
        found.add("disk")
    return frozenset(found)


def _tells_heat(gpu: WatchedGpu) -> bool:
    shares = gpu.throttle
    return not all(
        isinstance(value, Missing)
        for value in (shares.hw_thermal_percent, shares.thermal_violation_percent)
    )


def _lacks(
    gpus: list[GpuSamples], disks: list[DiskSamples], covers: frozenset[str]
) -> Iterator[Lack]:
    busy = [value for _, gpu in _each(gpus) if (value := _busy(gpu)) is not None]
    if gpus:
        low = bool(busy) and min(busy) < _IDLE
        text = (
            f"GPUs are without work for some of the time (the least busy {number(min(busy))} %), "
            "and tables of GPUs do not tell for what they wait"
            if low else "tables of GPUs do not tell where the step goes"
        )  # fmt: skip
        yield Lack(("data-wait", "host", "exposed-communication", "straggler"), text, _TRACE)
        if "throttled" not in covers:
            yield Lack(("throttled",), "the reasons for lower clocks are not among the columns",
                       "nvidia-smi dmon -s pucvmet -o DT")  # fmt: skip
    if disks and "disk" not in covers:
        yield Lack(("disk",), "iostat's only report is the mean since the machine began, or a "
                   "series is too short", "iostat -xty 1 20 while the job runs")  # fmt: skip
    if disks and not gpus:
        yield Lack(("data-wait",), "whether the step waits for these disks is not known", _TRACE)


def _busy(gpu: WatchedGpu) -> float | None:
    return None if isinstance(gpu.busy_percent, Missing) else gpu.busy_percent


def _numbers(gpus: list[GpuSamples]) -> Iterator[Number]:
    for one, gpu in _each(gpus):
        busy = _busy(gpu)
        if busy is not None:
            yield Number(f"{gpu.name} busy", busy, "%", n=gpu.samples, source=one.source)


def _notes(disks: list[DiskSamples]) -> Iterator[str]:
    for one in disks:
        if one.truncated:
            yield f"{one.source} was read in part"
