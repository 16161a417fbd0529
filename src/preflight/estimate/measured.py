"""What stored reports measured of what a run needs, from the tables that they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from preflight.estimate.figures import Figure, together
from preflight.estimate.hosts import Room, models_of, room
from preflight.estimate.storage import READS, WRITES, Kind, left_out, positive
from preflight.estimate.storage import numbers_of as _numbers
from preflight.estimate.storage import together as of_all_hosts
from preflight.model import Known, Missing, Report

NO_RATE = Missing(
    "not-in-input", "`preflight micro-train --save train.json` on these GPUs, or --mfu PERCENT"
)
NO_BUSBW = Missing(
    "not-in-input", "`preflight nccl-bench --save bench.json` over these hosts, or --busbw GB/s"
)
NO_WRITE = Missing(
    "not-in-input", "`preflight io-bench --dir DIR --save io.json`, or --write-speed 5GB/s"
)
NO_READ = Missing(
    "not-in-input", "`preflight io-bench --dir DIR --save io.json`, or --read-speed 5GB/s"
)
NO_POWER = Missing(
    "not-in-input",
    "`preflight micro-train --save train.json` on these GPUs, or gpu-health --stress, or --power "
    "WATTS",
)
_STEP_PARTS = "training: where a step's time goes"
#: A GPU that works less than this of the time tells no power of training.
_AT_WORK_PERCENT = 90.0
#: Likely values that are so far apart are not of one thing.
_DISAGREE = 1.25
_PRODUCT = re.compile(r"NVIDIA [^,;]{1,80}")
_COLLECTIVE = re.compile(r"(all_reduce|all_gather|reduce_scatter)\b")


class Measured(Struct, frozen=True):
    """Of one GPU: `flops_per_s` is what it reached with the communication of that run, of which
    `communication_percent` is the share of the step. Rates in 1e9 bytes a second."""

    flops_per_s: Known[Figure] = NO_RATE
    mfu_percent: Known[Figure] = NO_RATE
    communication_percent: Known[Figure] = NO_RATE
    busbw_gbps: Known[Figure] = NO_BUSBW
    write_gbps: Known[Figure] = NO_WRITE
    read_gbps: Known[Figure] = NO_READ
    power_w: Known[Figure] = NO_POWER
    room: Room = Room()
    products: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def measured(reports: Sequence[tuple[str, Report]], sharding: str = "fsdp") -> Measured:
    """All that the reports, each with the name of its file, tell; several of one kind are put
    together, and where they disagree a note says so."""
    tables = [(name, table) for name, report in reports for table in report.measurements]
    found: dict[str, list[Figure]] = {
        "flops_per_s": list(_rates(tables)),
        "mfu_percent": list(_mfus(tables)),
        "communication_percent": list(_communication(tables)),
        "busbw_gbps": list(_busbw(tables, sharding)),
        "write_gbps": list(_storage(reports, WRITES)),
        "read_gbps": list(_storage(reports, READS)),
        "power_w": list(_power(reports)) or list(_watched_power(reports)),
    }
    missing, products = Measured(), tuple(dict.fromkeys(_products(reports)))
    return Measured(
        **{name: together(each, getattr(missing, name)) for name, each in found.items()},
        room=room([report for _, report in reports]),
        products=products,
        notes=(
            *_of_no_use(reports, found),
            *_disagreeing(found),
            *_of_several_models(products),
            *_left_out(tables),
        ),
    )


def _source(name: str, table: dict[str, Any]) -> str:
    host = table.get("host")
    return f"{name}{f', {host}' if host and host != 'input' else ''}"


def _is_of_gpus(table: dict[str, Any]) -> bool:
    """A run on processors tells nothing of GPUs."""
    rows = [row for row in table.get("rows") or () if isinstance(row, dict)]
    return not any("on processors" in str(row.get("value")) for row in rows)


def _trained(tables: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, table in tables:
        if table.get("table") == "training" and _is_of_gpus(table):
            yield name, table


def _spread(value: float, numbers: dict[str, Any], source: str) -> Figure:
    """Of a rate whose steps took from `step_low_s` to `step_high_s`."""
    each = [positive(numbers.get(f"step_{one}_s")) for one in ("low", "median", "high")]
    low, middle, high = each
    if low is None or middle is None or high is None or not low <= middle <= high:
        return Figure(value, value, value, "measured", source)
    return Figure(value * middle / high, value, value * middle / low, "measured", source)


def _rates(tables: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Figure]:
    for name, table in _trained(tables):
        told = _numbers(table)
        parts = [positive(told.get(one)) for one in ("tokens_per_s", "flops_per_token", "ranks")]
        rate, flops, ranks = parts
        if rate and flops and ranks:
            yield _spread(rate * flops / ranks, told, _source(name, table))


def _mfus(tables: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Figure]:
    for name, table in _trained(tables):
        value = positive(_numbers(table).get("mfu_percent"))
        if value is not None:
            yield _spread(value, _numbers(table), _source(name, table))


def _communication(tables: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Figure]:
    of_gpus = {(name, table.get("host")) for name, table in _trained(tables)}
    for name, table in tables:
        share = _numbers(table).get("communication_percent")
        if table.get("table") != _STEP_PARTS or (name, table.get("host")) not in of_gpus:
            continue
        if isinstance(share, (int, float)) and 0 <= share < 100:
            yield Figure(share, share, share, "measured", _source(name, table))


def _busbw(tables: Sequence[tuple[str, dict[str, Any]]], sharding: str) -> Iterator[Figure]:
    """At the largest size of each table: of what this way to shard uses, else of all-reduce."""
    found: dict[bool, list[Figure]] = {True: [], False: []}
    for name, table in tables:
        match = _COLLECTIVE.match(str(table.get("table")))
        rows = [row for row in table.get("rows") or () if isinstance(row, dict)]
        if not match or not rows:
            continue
        value = max(
            (one for key in ("busbw", "busbw in") if (one := positive(rows[-1].get(key)))),
            default=None,
        )
        if value is not None:
            source = f"{_source(name, table)}, {table['table']}, {rows[-1].get('size')}"
            used = (match[1] != "all_reduce") == (sharding == "fsdp")
            found[used].append(Figure(value, value, value, "measured", source))
    alternatives = [one for one in found[False] if ", all_reduce" in one.source]
    yield from found[True] or alternatives


def _storage(reports: Sequence[tuple[str, Report]], kind: Kind) -> Iterator[Figure]:
    """Of all hosts of a report together."""
    for name, report in reports:
        if found := of_all_hosts(report.measurements, kind):
            source = f"{name}, {found.how}"
            yield Figure(found.gbps, found.gbps, found.gbps, "measured", source)


def _left_out(tables: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    for name, table in tables:
        if table.get("table") == "training" and not _is_of_gpus(table):
            yield f"{name}: trained on processors, which tells nothing of GPUs"
        jobs = left_out(table)
        for what in dict.fromkeys(jobs.values()):
            told = ", ".join(job for job, each in jobs.items() if each == what)
            yield f"{name}: {told} measured the {what}; left out"


def _training(report: Report) -> Iterator[dict[str, Any]]:
    for host in report.hosts:
        told = (host.facts or {}).get("training")
        if isinstance(told, dict) and told.get("device") == "cuda":
            yield told


def _power(reports: Sequence[tuple[str, Report]]) -> Iterator[Figure]:
    """Of each GPU while it trained, as NVML told it."""
    for name, report in reports:
        for told in _training(report):
            ranks = told.get("ranks")
            for rank in ranks if isinstance(ranks, (list, tuple)) else ():
                load = rank.get("load") if isinstance(rank, dict) else None
                watts = positive(load.get("power_w")) if isinstance(load, dict) else None
                if watts is not None:
                    yield Figure(watts, watts, watts, "measured", name)


def _watched(report: Report) -> Iterator[dict[str, Any]]:
    """GPUs that NVML was asked about for a while (gpu-health --duration, --stress)."""
    for host in report.hosts:
        watch = (host.facts or {}).get("watch")
        gpus = watch.get("gpus") if isinstance(watch, dict) else ()
        each = gpus if isinstance(gpus, (list, tuple)) else ()
        yield from (one for one in each if isinstance(one, dict))


def _watched_power(reports: Sequence[tuple[str, Report]]) -> Iterator[Figure]:
    """Of each GPU that was at work while it was watched: its mean, and at most its highest."""
    for name, report in reports:
        for gpu in _watched(report):
            busy, span = positive(gpu.get("busy_percent")), gpu.get("power_w")
            if busy is None or busy < _AT_WORK_PERCENT or not isinstance(span, dict):
                continue
            mean, high = positive(span.get("mean")), positive(span.get("max"))
            if mean is not None and high is not None and mean <= high:
                source = f"{name}, GPUs at work while they were watched"
                yield Figure(mean, mean, high, "measured", source)


def _products(reports: Sequence[tuple[str, Report]]) -> Iterator[str]:
    for _, report in reports:
        for told in _training(report):
            products = told.get("products")
            yield from map(str, products if isinstance(products, (list, tuple)) else ())
        yield from models_of(report)
        for gpu in _watched(report):
            if isinstance(product := gpu.get("product"), str):
                yield product
        for table in report.measurements:
            title = str(table.get("table"))
            yield from _PRODUCT.findall(title) if _COLLECTIVE.match(title) else ()


def _of_several_models(products: Sequence[str]) -> Iterator[str]:
    if len(products) > 1:
        yield f"the reports are of several models: {', '.join(products)}; --gpu names the run's"


def _of_no_use(
    reports: Sequence[tuple[str, Report]], found: dict[str, list[Figure]]
) -> Iterator[str]:
    used = [one.source for each in found.values() for one in each]
    for name, report in reports:
        told = any(source == name or source.startswith(f"{name},") for source in used)
        here = [(name, table) for table in report.measurements]
        if not (told or any(_watched(report)) or any(_left_out(here))):
            yield f"{name}: a report of {report.command} that tells nothing which is needed here"


def _disagreeing(found: dict[str, list[Figure]]) -> Iterator[str]:
    for name, each in found.items():
        low = min((one.likely for one in each), default=0.0)
        high = max((one.likely for one in each), default=0.0)
        if low > 0 and high / low > _DISAGREE and name != "communication_percent":
            yield f"the reports disagree on {name}: {low:.4g} to {high:.4g}; the range has both"
