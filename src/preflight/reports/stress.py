"""What a stress run measured, as tables: a row for each device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.expect.stress import stress_best
from preflight.facts.host import Host
from preflight.facts.stress import Gemm, Pair, Rate, Stress
from preflight.facts.training import Spread
from preflight.model import Known, Missing

Row = dict[str, Any]


def stress_tables(host: Host) -> tuple[dict[str, Any], ...]:
    """The tables of one host's run; none where it has no run."""
    run = host.stress
    if isinstance(run, Missing) or isinstance(run.devices, Missing):
        return ()
    tables = {
        "stress": list(_run(run)),
        "stress: products, TFLOP/s median [10 to 90 %]": list(_gemms(run.gemms)),
        "stress: products, of the best measured on the model": list(_shares(host, run.gemms)),
        "stress: memory and copies, GB/s": list(_rates(run)),
        "stress: memory patterns, attention, heat": list(_others(run)),
        "stress: copies from GPU (row) to GPU, GB/s": list(_pairs(run.pairs)),
    }
    return tuple(
        {"table": name, "host": host.name, "rows": rows} for name, rows in tables.items() if rows
    )


def _run(run: Stress) -> Iterator[Row]:
    count = len(run.devices) if isinstance(run.devices, tuple) else 0
    on = "GPU" if run.device == "cuda" else "part of the processors"
    told = [f"{count} x {on}" if run.device == "cuda" or count > 1 else "all processors"]
    told += [f"{run.seconds:.0f} s"] if isinstance(run.seconds, float) else []
    told += [f"torch {run.torch}"] if isinstance(run.torch, str) else []
    told += [f"injected: {', '.join(run.injected)}"] if run.injected else []
    yield {"measure": "under load", "value": ", ".join(told)}
    if run.device == "cpu":
        yield {"measure": "rates", "value": "shared with the rest of the host: shown, not judged"}


def _gemms(gemms: Known[tuple[Gemm, ...]]) -> Iterator[Row]:
    rows: dict[str, Row] = {}
    for one in () if isinstance(gemms, Missing) else gemms:
        if not isinstance(one.tflops, Missing):
            row = rows.setdefault(one.device, {"device": one.device, "n": one.tflops.n})
            row["n"] = min(row["n"], one.tflops.n)
            row[one.precision] = _spread(one.tflops)
    yield from rows.values()


def _shares(host: Host, gemms: Known[tuple[Gemm, ...]]) -> Iterator[Row]:
    """Of what was measured best on the model, where that is known."""
    rows: dict[str, Row] = {}
    for one in () if isinstance(gemms, Missing) else gemms:
        best = stress_best(host, one)
        if not isinstance(best, Missing) and not isinstance(one.tflops, Missing):
            share = f"{one.tflops.median / best.value:.0%}"
            rows.setdefault(one.device, {"device": one.device})[one.precision] = share
    yield from rows.values()


def _rates(run: Stress) -> Iterator[Row]:
    """All that a device moves in one row."""
    rows: dict[str, Row] = {}
    for found in (run.memory, run.copies):
        for one in () if isinstance(found, Missing) else found:
            if not isinstance(one.gbps, Missing):
                rows.setdefault(one.device, {"device": one.device})[_short(one)] = _rate(one)
    yield from rows.values()


def _short(one: Rate) -> str:
    return one.what.replace("pageable", "paged").replace("both pinned", "both ways")


def _rate(one: Rate) -> str:
    return "" if isinstance(one.gbps, Missing) else f"{one.gbps.median:.4g}"


def _others(run: Stress) -> Iterator[Row]:
    attention = () if isinstance(run.attention, Missing) else run.attention
    patterns = () if isinstance(run.patterns, Missing) else run.patterns
    for device in run.devices if isinstance(run.devices, tuple) else ():
        tested = [one.tested_bytes for one in patterns if one.device == device.name]
        most = max((one for one in tested if isinstance(one, int)), default=0)
        mine = next((one for one in attention if one.name == device.name), None)
        row = {
            "device": device.name,
            "memory tested": f"{most / 1e9:.3g} GB" if most else "",
            "attention": mine.kernel if mine and isinstance(mine.kernel, str) else "",
            "shape": mine.shape if mine else "",
            "TFLOP/s": _spread(mine.tflops) if mine else "",
            "C": _degrees(device.gpu_c),
            "C above inlet": _degrees(device.above_inlet_c),
            "fading %": _degrees(device.fading_percent),
        }
        yield {name: value for name, value in row.items() if value or name == "device"}


def _degrees(value: Known[float]) -> str:
    return "" if isinstance(value, Missing) else f"{value:.0f}"


def _pairs(pairs: Known[tuple[Pair, ...]]) -> Iterator[Row]:
    rows: dict[str, Row] = {}
    for one in () if isinstance(pairs, Missing) else pairs:
        source, of_two, target = one.name.partition(" to ")
        if not of_two:  # those that were not copied
            continue
        row = rows.setdefault(source, {"from": source})
        by_host = "" if one.reaches is not False else " *"
        rate = "?" if isinstance(one.gbps, Missing) else f"{one.gbps.median:.0f}"
        row[target] = f"{rate}{by_host}"
    order = list(rows)
    for source, row in rows.items():
        yield {"from": source, **{name: row.get(name, "-") for name in order}}


def _spread(told: Known[Spread]) -> str:
    if isinstance(told, Missing):
        return ""
    low, half, high = map(_digits, (told.low, told.median, told.high))
    return f"{half} [{low}-{high}]"


def _digits(value: float) -> str:
    """Three digits, and of a thousand all."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
