"""One host and its answers -> its report: asking, deadlines, facts, judging."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from preflight.assemble.host import assemble
from preflight.enclosed import with_log
from preflight.facts.host import Host
from preflight.faults import CONNECTION
from preflight.judge.causes import attribute
from preflight.judge.evaluate import judge
from preflight.judge.evidence import Lines, attach
from preflight.judge.of_all import name_all
from preflight.judge.readings import Reading, Readings, readings
from preflight.model import Check, Command, HostReport, Missing, MissingProbe, Raw, Result
from preflight.units import format_bytes, format_duration
from preflight.verdict import host_verdict

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


class Examined(Struct, frozen=True):
    """One host's report, and what it contributes to the judging of the fleet."""

    report: HostReport
    readings: Readings | None = None  # of what is no host there are none
    measured: tuple[dict[str, Any], ...] = ()  # tables


def examine(
    name: str, raws: Sequence[Raw], checks: Sequence[Check], *, facts: bool = False,
    nics: str = "",
) -> HostReport:  # fmt: skip
    """The report of one host by itself; `checks` over the fleet have no results in it."""
    alone = [check for check in checks if check.across != "fleet"]
    return examine_one_of_many(name, raws, alone, facts=facts, nics=nics).report


def examine_one_of_many(
    name: str, raws: Sequence[Raw], checks: Sequence[Check], *, facts: bool = False,
    drawn: bool = False, told: set[Reading] | None = None, nics: str = "",
) -> Examined:  # fmt: skip
    """Facts of one host, judged, with the evidence of what did not pass, and its readings for the
    checks over the fleet (`told`: those of the hosts before it); `drawn`: with its map and the
    advice; `nics`: the adapters that the user named for training. A host that gave no answer has
    neither: why stands in `missing`."""
    faults = tuple(_faults(raws))
    if faults and all(raw.missing for raw in raws):
        return Examined(HostReport(name, host_verdict((), faults), faults), Readings(name))
    raws = with_log(raws)
    assembled = assemble(name, raws, nics)
    results = judge(assembled.host, checks)
    attribute(results)
    lines = Lines(raws)
    attach(results, lines)
    report = HostReport(
        host=name,
        verdict=host_verdict(results, (*faults, *assembled.missing)),
        missing=(*faults, *assembled.missing),
        summary=summary(assembled.host),
        reach="; ".join(filter(None, (tell(assembled.host) for tell in _REACHES))),
        facts=_facts(assembled.host) if facts else None,
        results=tuple(results),
    )
    if drawn:
        _draw(report, assembled.host)
    found = readings(assembled.host, checks, lines, told)
    measured = _measured(assembled.host, results)
    name_all(results, assembled.host, checks)
    return Examined(report, found, measured)


def _faults(raws: Sequence[Raw]) -> Iterator[MissingProbe]:
    """Why the asking of this host failed, or broke off."""
    for raw in raws:
        if raw.probe == CONNECTION and raw.missing:
            yield MissingProbe(CONNECTION, raw.missing.kind, raw.missing.text, raw.missing.fault)


def _draw(report: HostReport, host: Host) -> None:
    from preflight.placement.advice import advise
    from preflight.placement.map import map_of

    report.map, report.advice = map_of(host), advise(host)


def _measured(host: Host, results: Sequence[Result]) -> tuple[dict[str, Any], ...]:
    """What active work and recorded benchmarks measured, in words that fit the results."""
    tables: tuple[dict[str, Any], ...] = ()
    if not isinstance(host.stress, Missing):
        from preflight.reports.stress import stress_tables

        tables += stress_tables(host)
    if not isinstance(host.training, Missing):
        from preflight.reports.sweeps import sweep_tables
        from preflight.reports.training import training_tables

        tables += (*training_tables(host), *sweep_tables(host.training, host.name))
    if not isinstance(host.localisation, Missing):
        from preflight.reports.heat import heat_tables

        tables += heat_tables(host)
    if not (isinstance(host.collectives, Missing) and isinstance(host.rdma_tests, Missing)):
        from preflight.reports.bench_lasting import lasting_tables
        from preflight.reports.bench_settings import setting_tables
        from preflight.reports.collectives import collective_tables, rdma_tables

        tables += (*collective_tables(host, results), *rdma_tables(host, results))
        tables += (*setting_tables(host), *lasting_tables(host))
    if not isinstance(host.fio_runs, Missing):
        from preflight.reports.io import io_tables

        tables += io_tables(host)
    if not isinstance(host.object_stores, Missing):
        from preflight.reports.objects import object_tables

        tables += object_tables(host)
    if not isinstance(host.patterns, Missing):
        from preflight.reports.patterns import pattern_tables

        tables += pattern_tables(host)
    if not isinstance(host.shards, Missing):
        from preflight.reports.shard import shard_tables

        tables += shard_tables(host)
    if not isinstance(host.wire, Missing):
        from preflight.reports.wire import wire_tables

        tables += wire_tables(host)
    if not isinstance(host.network_growth, Missing):
        from preflight.reports.bench_growth import growth_tables

        tables += growth_tables(host)
    if not isinstance(host.inside, Missing):
        from preflight.reports.inside import inside_tables

        tables += inside_tables(host)
    return tables


def _facts(host: Host) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(host)
    return facts


def summary(host: Host) -> str:
    """One line: GPUs and driver, processors, memory, system. Alike for hosts that are alike."""
    parts = [_gpus(host), _reported(host), _machine(host)]
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


def _reported(host: Host) -> str:
    """GPUs and torch, where a report or a list of packages tells them; else how many variables a
    recorded `env` has."""
    reports = () if isinstance(host.env_reports, Missing) else host.env_reports
    gpus = next((one.gpus for one in reports if isinstance(one.gpus, tuple) and one.gpus), ())
    told = [f"{gpus.count(each)} x {each}" for each in dict.fromkeys(gpus)]
    told = told if isinstance(host.gpus, Missing) else []
    torch = next((one.torch for one in reports if isinstance(one.torch, str)), "")
    told += [f"torch {torch}"] if torch else []
    listed = sum(len(one.packages) for one in reports)
    told += [f"{listed} packages"] if listed and not told else []
    variables = () if isinstance(host.environment, Missing) else host.environment
    if not told and any(one.probe == "env" for one in variables):
        told = [f"{len(variables)} variables"]
    return ", ".join(told)


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


def _nccl(host: Host) -> str:
    """What NCCL's log is of, and how long it is."""
    log = host.nccl
    if isinstance(log, Missing):
        return ""
    versions = () if isinstance(log.versions, Missing) else log.versions
    told = " ".join(["NCCL", *sorted({one.version for one in versions})])
    told += f" log of {log.lines:,} {'line' if log.lines == 1 else 'lines'}"
    hosts = 0 if isinstance(log.hosts, Missing) else len(log.hosts)
    told += f" of {hosts} {'host' if hosts == 1 else 'hosts'}" if hosts else ""
    told += f", {log.left_out:,} more were left out" if log.left_out else ""
    return told if log.info_lines else f"{told}, without INFO"


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


#: How much there was to look at, by kinds.
_REACHES = (_kernel_log, _watch, _nccl)


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
