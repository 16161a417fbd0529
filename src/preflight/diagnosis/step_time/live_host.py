"""What the counters of a host's processes and GPUs tell, without a stack."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from preflight.diagnosis.reading import Sign
from preflight.diagnosis.step_time.live_stacks import At
from preflight.facts.process import GpuLook, HostLook, ProcessLook
from preflight.model import Evidence, Known, Missing

#: Clocks event bits (nvml.h): slowed by hardware, by heat, by the power brake; by the driver, hot.
_BAD, _WARM = 0x8 | 0x40 | 0x80, 0x20
_NAMES = {0x8: "the hardware", 0x40: "the hardware, by heat", 0x80: "the power brake",
          0x20: "the driver, by heat"}  # fmt: skip
_CORE, _IDLE = 95.0, 50.0  # percent
#: Percent of the time that a thread waits for a processor, of periods that its group is held back.
_WAITS, _HELD = 10.0, 20.0


def known(value: Known[float]) -> float | None:
    """The value, or None."""
    return None if isinstance(value, Missing) else value


def host_signs(host: HostLook, seen: list[tuple[ProcessLook, At]], several: bool) -> Iterator[Sign]:
    """Disks, memory, processors, clocks of one host."""
    place = f"{host.host} " if several else ""
    for one in host.processes:
        if one.role != "other" and not one.ended:
            yield from _disk(host, one, place)
    yield from _memory(host)
    yield from _of_all_ranks(host, place)
    if not isinstance(host.gpus, Missing):
        pids = {one.pid for one in host.processes}
        for gpu in host.gpus:
            if pids & set(gpu.pids):
                yield from _throttled(host, gpu, place)
                yield from _launch_bound(host, gpu, seen, place)


def _evidence(host: HostLook, line: int, text: str) -> tuple[Evidence, ...]:
    return (Evidence("look", text=text, line=line or None, source=host.host),)


def _named(one: ProcessLook) -> str:
    what = "a data worker" if one.role == "worker" else "a rank"
    return f"PID {one.pid} ({what})"


def _disk(host: HostLook, one: ProcessLook, place: str) -> Iterator[Sign]:
    waits = known(one.disk_wait_percent) or 0.0
    if waits >= 10 and one.looks >= 10:
        yield Sign(
            "disk", f"{_named(one)} waits in the kernel for storage in {waits:.0f} % of "
            f"{one.looks} looks ({one.wchan or 'unknown place'})", share=waits / 100,
            subject=f"{place}PID {one.pid}", confidence="medium",
            evidence=_evidence(host, one.line, one.wchan),
            against=("what computes or waits for a queue is in another state",),
        )  # fmt: skip


def _memory(host: HostLook) -> Iterator[Sign]:
    if isinstance(host.pressure, Missing):
        return
    stalled = host.pressure.get("memory", 0.0)
    swapped = sum(known(one.swapped_bytes) or 0 for one in host.processes)
    faults = sum(known(one.major_faults_per_s) or 0 for one in host.processes)
    if stalled > 0 and (swapped or faults > 1):
        yield Sign(
            "host-memory", f"processes of {host.host} waited for memory in {stalled:.3g} % of the "
            f"time; {swapped / 1e9:.3g} GB of the job are swapped out, {faults:.0f} "
            "pages a second are read back", share=stalled / 100, subject=host.host,
            confidence="medium", evidence=_evidence(host, 0, "/proc/pressure/memory"),
        )  # fmt: skip


def _of_all_ranks(host: HostLook, place: str) -> Iterator[Sign]:
    """What all ranks of a host suffer is the host's, and told once."""
    ranks = [one for one in host.processes if one.role == "rank" and not one.ended]
    signs = [sign for one in ranks for sign in _processors(host, one, place)]
    alike = len({sign.fix for sign in signs}) == 1 and len(signs) == len(ranks)
    if len(signs) > 1 and alike:
        worst = max(signs, key=lambda sign: sign.share or 0)
        text = f"all {len(ranks)} ranks of {host.host}, the worst: {worst.text}"
        yield replace(worst, text=text, subject=host.host)
    else:
        yield from signs


def _processors(host: HostLook, one: ProcessLook, place: str) -> Iterator[Sign]:
    """Its group is held back, or others have the processors: what it waits for is the same to the
    kernel. A group is held back from time to time by a burst that costs nothing."""
    held, waits = known(one.throttled_percent) or 0.0, known(one.run_wait_percent) or 0.0
    limit = known(one.processor_limit)
    if held >= _HELD and waits >= _WAITS:
        text = (
            f"the job's group is held back by its limit of {limit or 0:.3g} processors in "
            f"{held:.0f} % of its periods; {_named(one)} is ready and may not run for "
            f"{waits:.0f} % of the time"
        )
        fix = "a larger limit: --cpus-per-task in Slurm, resources.limits.cpu in Kubernetes"
    elif waits >= _WAITS:
        text = (f"{_named(one)} is ready and has no processor for {waits:.0f} % of the time "
                f"({one.cores_allowed} may be used)")  # fmt: skip
        fix = "fewer workers and threads (OMP_NUM_THREADS), or more cores for the job"
    else:
        return
    yield Sign(
        "host", text, share=min(waits / 100, 1), subject=f"{place}PID {one.pid}",
        confidence="medium", evidence=_evidence(host, one.line, "cpu.stat, schedstat"), fix=(fix,),
    )  # fmt: skip


def _throttled(host: HostLook, gpu: GpuLook, place: str) -> Iterator[Sign]:
    if isinstance(gpu.reasons, Missing) or not gpu.reasons & (_BAD | _WARM):
        return
    why = ", ".join(name for bit, name in _NAMES.items() if gpu.reasons & bit)
    clock, top = known(gpu.sm_clock_mhz), known(gpu.sm_clock_max_mhz)
    lost = 1 - clock / top if clock and top else None
    told = f" at {clock:.0f} of {top:.0f} MHz" if clock and top else ""
    yield Sign(
        "throttled", f"gpu{gpu.index} of {host.host} is slowed by {why}{told}", share=lost,
        subject=f"{place}gpu{gpu.index}", confidence="high" if gpu.reasons & _BAD else "low",
        evidence=_evidence(host, 0, f"clocks event reasons {gpu.reasons:#x}"),
    )  # fmt: skip


def _launch_bound(
    host: HostLook, gpu: GpuLook, seen: list[tuple[ProcessLook, At]], place: str
) -> Iterator[Sign]:
    busy = known(gpu.sm_percent)
    for one in host.processes:
        main = next((each for each in one.threads if each.tid == one.pid), None)
        if one.role != "rank" or one.pid not in gpu.pids or main is None or busy is None:
            continue
        at = next((at for rank, at in seen if rank is one), None)
        loads = at is not None and at.shares.get("data", 0) + at.waits >= 0.3
        if main.cpu_percent >= _CORE and busy < _IDLE and not loads:
            yield Sign(
                "host", f"the first thread of PID {one.pid} takes {main.cpu_percent:.0f} % of a "
                f"core, gpu{gpu.index} has work in {busy:.0f} % of the time", share=1 - busy / 100,
                subject=f"{place}gpu{gpu.index}", confidence="medium" if at else "low",
                evidence=_evidence(host, one.line, at.frame if at else ""),
            )  # fmt: skip
