"""Hosts and their answers -> their reports: asking, deadlines, and all the cores for many hosts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from preflight.assemble.host import assemble
from preflight.facts.host import Host
from preflight.faults import CONNECTION
from preflight.judge.causes import attribute
from preflight.judge.evaluate import judge
from preflight.judge.evidence import attach
from preflight.model import Check, Command, HostReport, Missing, MissingProbe, Raw
from preflight.units import format_bytes, format_duration
from preflight.verdict import host_verdict

#: Fewer hosts than this are judged in one process: starting others costs about 50 ms.
POOL_FROM_HOSTS = 24

#: Of a command's own limit: what the two timeout(1) and the shell need to end it.
GRACE_S = 8


class Transport(Protocol):
    """A way to put commands to one host."""

    @property
    def host(self) -> str:
        """The host's name."""

    def run(self, commands: Sequence[Command]) -> Iterator[Raw]:
        """One Raw for each command, in order."""


def trimmed(commands: Iterable[Command], host_timeout_s: float) -> list[Command]:
    """The commands with their own limits inside the host's."""
    most = max(int(host_timeout_s) - GRACE_S, int(host_timeout_s * 0.6), 1)
    return [replace(command, timeout_s=min(command.timeout_s, most)) for command in commands]


def ask(
    transport: Transport,
    commands: Sequence[Command],
    kept: list[Raw],
    progress: Callable[[str], None] = lambda _: None,
) -> list[Raw]:
    """All answers of one host. `kept` has what came so far, for whoever interrupts."""
    if commands:
        progress(f"{transport.host}: {commands[0].probe}")
    for number, raw in enumerate(transport.run(commands), 1):
        kept.append(raw)
        if number < len(commands):
            progress(f"{transport.host}: {commands[number].probe}")
    return kept


def examine(
    name: str, raws: Sequence[Raw], checks: Sequence[Check], *, facts: bool = False
) -> HostReport:
    """Facts of one host, judged, with the evidence of what did not pass. A host that gave no answer
    has no results: why stands in `missing`."""
    faults = tuple(_faults(raws))
    if faults and all(raw.missing for raw in raws):
        return HostReport(name, host_verdict((), faults), faults)
    assembled = assemble(name, raws)
    results = judge(assembled.host, checks)
    attribute(results)
    attach(results, raws)
    return HostReport(
        host=name,
        verdict=host_verdict(results, (*faults, *assembled.missing)),
        missing=(*faults, *assembled.missing),
        summary=summary(assembled.host),
        reach="; ".join(filter(None, (_kernel_log(assembled.host), _watch(assembled.host)))),
        facts=_facts(assembled.host) if facts else None,
        results=tuple(results),
    )


def _faults(raws: Sequence[Raw]) -> Iterator[MissingProbe]:
    """Why the asking of this host failed, or broke off."""
    for raw in raws:
        if raw.probe == CONNECTION and raw.missing:
            yield MissingProbe(CONNECTION, raw.missing.kind, raw.missing.text, raw.missing.fault)


def examine_all(
    hosts: Iterable[tuple[str, list[Raw]]],
    checks: Sequence[Check],
    *,
    all_facts: bool = False,
    one_hosts_facts: bool = False,
) -> Iterator[HostReport]:
    """Every host's report in the order given; many hosts on all cores, few at a time in memory.
    Facts are kept of all hosts, or of one where there is only one."""
    waiting = iter(hosts)
    first = [host for _, host in zip(range(POOL_FROM_HOSTS), waiting, strict=False)]
    if len(first) < POOL_FROM_HOSTS:
        keep = all_facts or (one_hosts_facts and len(first) == 1)
        yield from (examine(name, raws, checks, facts=keep) for name, raws in first)
        return
    yield from _examine_in_pool(first, waiting, checks, all_facts)


def _examine_in_pool(
    first: list[tuple[str, list[Raw]]],
    rest: Iterator[tuple[str, list[Raw]]],
    checks: Sequence[Check],
    facts: bool,
) -> Iterator[HostReport]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    workers = min(len(os.sched_getaffinity(0)), 16)
    # fork: the checks are there already; nothing here has started a thread yet.
    with ProcessPoolExecutor(
        workers, get_context("fork"), initializer=_start_worker, initargs=(checks, facts)
    ) as pool:
        pending = [pool.submit(_examine_packed, *host) for host in first]
        while pending:
            yield _unpack(pending.pop(0).result())
            for name, raws in rest:
                pending.append(pool.submit(_examine_packed, name, raws))
                break


_checks: Sequence[Check] = ()
_keep_facts = False
_pack = msgspec.msgpack.Encoder()
_unpack = msgspec.msgpack.Decoder(HostReport).decode


def _start_worker(checks: Sequence[Check], facts: bool) -> None:
    """Each worker of the pool gets these once, not with every host."""
    global _checks, _keep_facts
    _checks, _keep_facts = checks, facts


def _examine_packed(name: str, raws: list[Raw]) -> bytes:
    return _pack.encode(examine(name, raws, _checks, facts=_keep_facts))


def _facts(host: Host) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(host)
    return facts


def summary(host: Host) -> str:
    """One line: GPUs and driver, processors, memory, system. Alike for hosts that are alike."""
    parts = [_gpus(host), _machine(host)]
    return "; ".join(part for part in parts if part)


def _gpus(host: Host) -> str:
    if isinstance(host.gpus, Missing):
        on_pci = host.gpu_inventory.on_pci
        there = f"{on_pci} x NVIDIA GPU on PCI" if isinstance(on_pci, int) and on_pci else ""
        return host.gpus.text if host.gpus.kind == "not-applicable" else there
    counts: dict[str, int] = {}
    for gpu in host.gpus:
        product = "GPU" if isinstance(gpu.product, Missing) else gpu.product
        counts[product] = counts.get(product, 0) + 1
    told = ", ".join(f"{count} x {product}" for product, count in counts.items())
    version = "" if isinstance(host.driver, Missing) else host.driver.version
    version = "" if isinstance(version, Missing) else version
    return ", ".join(part for part in (told, f"driver {version}" if version else "") if part)


def _kernel_log(host: Host) -> str:
    """How far the log reaches: "no Xid in it" says little of a short one."""
    log = host.kernel_log
    if isinstance(log, Missing):
        return ""
    told = f"kernel log of {log.lines:,} {'line' if log.lines == 1 else 'lines'}"
    if log.first_at_s is not None and (log.last_at_s or 0.0) > log.first_at_s:
        told += f" over {format_duration((log.last_at_s or 0.0) - log.first_at_s)}"
    told += ", its end is missing" if log.cut else ""
    if log.messages_left_out:
        line = log.messages_left_out[0].line
        told += f", messages are missing from it (line {line} says so)"
    return told


def _watch(host: Host) -> str:
    """For how long the GPUs were watched, by how many looks at each."""
    if isinstance(host.watch, Missing) or isinstance(host.watch.gpus, Missing):
        return ""
    gpus = host.watch.gpus
    times: list[float] = [gpu.watched_s for gpu in gpus if not isinstance(gpu.watched_s, Missing)]
    looks = sorted({gpu.samples for gpu in gpus}) or [0]
    told = f"{len(gpus)} {'GPU' if len(gpus) == 1 else 'GPUs'} watched"
    longest_s = max(times, default=0.0)
    span = f" over {format_duration(longest_s)}" if longest_s else ""
    least = f"{looks[0]:,} to " if len(looks) > 1 else ""
    told += f"{span}, {least}{looks[-1]:,} {'sample' if looks[-1] == 1 else 'samples'} each"
    return (
        f"{told}; columns not judged: {', '.join(unread)}"
        if (unread := host.watch.unread)
        else told
    )


def _machine(host: Host) -> str:
    parts = []
    if not isinstance(host.cpu, Missing) and isinstance(host.cpu.cpus, int):
        parts.append(f"{host.cpu.cpus} CPUs")
    if not isinstance(host.memory, Missing) and isinstance(host.memory.total_bytes, int):
        parts.append(format_bytes(host.memory.total_bytes))
    if isinstance(host.os, str):
        parts.append(host.os)
    if host.virtualization == "vm":
        parts.append("virtual machine")
    if isinstance(host.container, str) and host.container != "none":
        parts.append(f"in a container ({host.container})")
    return ", ".join(parts)
