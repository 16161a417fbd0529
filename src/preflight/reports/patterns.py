"""What training-shaped patterns measured, as a table. Bandwidth in 1e6 bytes a second."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.facts.host import Host
from preflight.facts.patterns import Pattern
from preflight.model import Known, Missing
from preflight.reports.io import for_programs
from preflight.reports.saves import OF_SAVES, save_tables
from preflight.units import format_bytes

Row = dict[str, Any]
#: So much more than was used is worth a word.
_MUCH = 2


def pattern_tables(host: Host) -> tuple[Row, ...]:
    """One table of all patterns; of saves, and of what several hosts did at once, one more."""
    if isinstance(host.patterns, Missing) or not host.patterns:
        return ()
    rows = tuple(one for one in host.patterns if not one.hosts_mbps) or host.patterns
    return (
        {"table": "as training does it", "host": host.name, "rows": [_row(one) for one in rows],
         "notes": list(_notes(rows)), "numbers": {one.name: _numbers(one) for one in rows},
         **for_programs(rows, rows[0])},
        *save_tables(host),
    )  # fmt: skip


def _row(one: Pattern) -> Row:
    return {
        "pattern": one.name, "MB/s": _figure(one.bandwidth_mbps),
        "slowest": _figure(one.slowest_mbps), "per s": _figure(one.rate),
        "us, 50 %": _figure(one.latency.p50_us), "99 %": _figure(one.latency.p99_us),
        "99.9 %": _figure(one.latency.p999_us),
        "of": "" if isinstance(one.through, Missing) else one.through,
    }  # fmt: skip


def _figure(value: Known[float]) -> float | str:
    """With more digits than are shown: it is rounded once, as what a check tells is."""
    return "" if isinstance(value, Missing) else float(f"{value:.7g}")


def _short(value: Known[float]) -> float | str:
    return "" if isinstance(value, Missing) else float(f"{value:.4g}")


def _numbers(one: Pattern) -> dict[str, float]:
    """All digits, for programs."""
    latency = one.latency
    told = {
        "bandwidth_mbps": one.bandwidth_mbps, "rate": one.rate, "slowest_mbps": one.slowest_mbps,
        "done_bytes": one.done_bytes, "count": one.count, "elapsed_s": one.elapsed_s,
        "mean_us": latency.mean_us, "p50_us": latency.p50_us, "p99_us": latency.p99_us,
        "p999_us": latency.p999_us, "max_us": latency.max_us, "wrong": one.wrong,
        **{name: getattr(one, name) for name in OF_SAVES},
        "brought_times": one.brought_times, "of_read_percent": one.of_read_percent,
        "demand_mbps": one.demand_mbps, "processes": one.processes,
        "block_bytes": one.block_bytes,
    }  # fmt: skip
    return {name: value for name, value in told.items() if not isinstance(value, Missing)}


def _notes(rows: tuple[Pattern, ...]) -> Iterator[str]:
    yield "MB/s of 1e6 bytes, of all processes; slowest: of one; us: of a block, file or call"
    yield f"processes: {', '.join(_processes(rows))}"
    yield from map(_brought, filter(_brings_much, rows))
    if failed := [one.name for one in rows if one.trouble]:
        yield f"failed: {', '.join(failed)}"
    yield from dict.fromkeys(one.note for one in rows if one.note)


def _processes(rows: tuple[Pattern, ...]) -> Iterator[str]:
    """dataloader 8 x 128 KiB."""
    blocks = dict[tuple[str, Known[int]], set[str]]()
    for one in rows:
        size = "" if isinstance(one.block_bytes, Missing) else f" x {format_bytes(one.block_bytes)}"
        blocks.setdefault((one.pattern, one.processes), set()).add(size)
    for (name, count), sizes in blocks.items():
        if not isinstance(count, Missing):
            yield from (f"{name} {count}{size}" for size in sorted(sizes - {""}) or [""])


def _brings_much(one: Pattern) -> bool:
    return not isinstance(one.brought_times, Missing) and one.brought_times >= _MUCH


def _brought(one: Pattern) -> str:
    return (f"{one.name}: {_short(one.brought_times)} bytes come from the device for each one used "
            "(read_ahead_kb): read, or maps with MADV_RANDOM and MADV_WILLNEED")  # fmt: skip
