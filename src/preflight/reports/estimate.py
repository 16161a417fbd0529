"""An estimate as tables: time, bill, memory, checkpoint, what it rests on, what it lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from preflight.estimate.bill import bill
from preflight.estimate.compute import attention_flops, dense_flops, exchanges, flops_per_token
from preflight.estimate.figures import Figure
from preflight.estimate.unused import unused
from preflight.estimate.whole import Estimate
from preflight.model import Known, Missing
from preflight.reports.estimate_memory import memory_table
from preflight.reports.projection import projection_table
from preflight.units import format_duration, number

Row = dict[str, Any]
Table = dict[str, Any]


_BILL_NOTES = (
    "prices are those that were stated; lines without one are not added",
    "most stores take nothing for what is sent into them, and something for what is read out or "
    "crosses regions: that is transfer",
)


def estimate_tables(told: Estimate) -> tuple[Table, ...]:
    """All of them, in the order in which they are read."""
    lacking = _lacking(told)
    tables: list[Table] = [
        {"table": "estimate: time", "rows": list(_time(told)), "notes": list(_time_notes(told)),
         "numbers": _numbers(told)},
        {"table": "estimate: bill", "rows": list(_bill(told)), "notes": list(_BILL_NOTES),
         "numbers": _bill_numbers(told)},
        memory_table(told),
        projection_table(told.checkpoint, of="below, what it rests on"),
        {"table": "estimate: what it rests on", "rows": list(_basis(told)),
         "notes": list(told.notes)},
        {"table": "estimate: not in it", "rows": lacking},
    ]  # fmt: skip
    return tuple(table for table in tables if table["rows"])


def _time(told: Estimate) -> Iterator[Row]:
    for name, figure, how in (
        ("computing", told.compute_s, _flops_told(told)),
        ("exposed communication", told.exposed_s, _exposed_told(told)),
        ("saving", told.saving_s, "time x stall / interval"),
        ("waiting", told.waiting_s, f"--wait {told.run.wait_percent or 0:g} % of the steps"),
        ("failures", told.lost_s, _failing_told(told)),
        ("wall clock", told.wall_s, "all of these"),
    ):
        if isinstance(figure, Figure):
            yield _row(name, figure, format_duration, how)
    amounts: tuple[tuple[str, Known[Figure], Callable[[float], str], str], ...] = (
        ("GPU-hours", told.gpu_hours, number, f"{told.run.gpus:,} GPUs x the wall clock"),
        ("of which idle", told.idle_gpu_hours, number, ", ".join(told.beside_steps(known=True))),
        ("energy, kWh", told.energy_kwh, number, _energy_told(told)),
        ("failures, number", told.failures, number, "wall clock / MTBF"),
        ("saves", told.saves, number, "the steps / interval"),
        ("interval of saves", told.interval_s, format_duration, _interval_told(told)),
        ("tokens of a GPU, t*", told.balance_tokens, number, _balance_told(told)),
    )
    for name, amount, shown, how in amounts:
        if isinstance(amount, Figure):
            yield _row(name, amount, shown, how)


def _row(name: str, figure: Figure, shown: Callable[[float], str], how: str) -> Row:
    """Low and high stay empty where nothing tells how far it may be off."""
    low, likely, high = (
        shown(float(one)) if math.isfinite(one) else "no end"
        for one in (figure.low, figure.likely, figure.high)
    )
    if figure.low == figure.high:
        low = high = ""
    return {"part": name, "low": low, "likely": likely, "high": high, "how": how}


def _energy_told(told: Estimate) -> str:
    power = told.speeds.power_w
    most = "at most, " if isinstance(power, Figure) and power.origin == "datasheet" else ""
    return f"{most}GPUs alone: hosts, network, cooling come on top"


def _flops_told(told: Estimate) -> str:
    return f"{flops_per_token(told.run):.3g} FLOP a token x {told.run.tokens:.3g} tokens"


def _exposed_told(told: Estimate) -> str:
    if told.run.tokens_per_gpu is None or isinstance(told.speeds.busbw_gbps, Missing):
        return "its share of the step as it was measured"
    return "of what is sent: beyond computing; half; all of it"


def _interval_told(told: Estimate) -> str:
    return "as stated" if told.run.interval_s is not None else "sqrt(2 x stall x MTBF)"


def _failing_told(told: Estimate) -> str:
    if isinstance(told.restart_s, Missing):
        return "interval / 2 / MTBF of the wall clock, without restarts: they are not known"
    return "(interval / 2 + restart) / MTBF of the wall clock"


def _balance_told(told: Estimate) -> str:
    run, balance = told.run, told.balance_tokens
    per = "each pass" if run.sharding == "fsdp" else "each step"
    text = f"at which {run.sharding} sends as long as it computes, {per}"
    if run.tokens_per_gpu is None or isinstance(balance, Missing):
        return text
    at_once = run.tokens_per_gpu * (1 if run.sharding == "fsdp" else run.accumulation)
    can = "can be" if at_once >= balance.likely else "cannot all be"
    return f"{text}; of {at_once:,.0f} sending {can} hidden"


def _time_notes(told: Estimate) -> Iterator[str]:
    dense, attention = dense_flops(told.run), attention_flops(told.run)
    active = " active" if told.run.active_params else ""
    run = told.run
    params = number(run.computing_params - run.looked_up_params)
    without = ", without the input's embedding" if run.looked_up_params else ""
    yield f"6 N = {dense:.3g} FLOP a token of {params}{active} parameters{without}"
    if not isinstance(attention, Missing):
        yield (
            f"12 x layers x width x length = {attention:.3g} FLOP a token: {attention / dense:.0%} "
            "of that; a causal kernel skips half of it, which MFU counts all the same"
        )
    if run.mfu_percent is not None:
        yield "the stated MFU has its run's communication in it, and so has computing"
    if any(isinstance(one, Figure) and one.low == one.high for one in (told.compute_s,)):
        yield "no low and high: what it is made of is stated, or known only once"
    if isinstance(told.interval_s, Figure):
        yield (
            "saves that count are whole: without optimizer, schedule, generators and position of "
            "the data a run goes on with a jump"
        )
    if isinstance(told.waiting_s, Missing):
        yield (
            "restarts by hand, retries and waiting for machines are not in it: in the field these "
            "took up to 38 % more; --wait states them"
        )


def _bill(told: Estimate) -> Iterator[Row]:
    for line in bill(told):
        if isinstance(line.cost, Figure):
            yield _row(line.name, line.cost, _money, line.formula)


def _bill_numbers(told: Estimate) -> dict[str, float]:
    """All digits of each line that has a price."""
    lines = ((line.name, line.cost) for line in bill(told) if isinstance(line.cost, Figure))
    return {
        f"{name}, {at}": getattr(cost, at)
        for name, cost in lines for at in ("low", "likely", "high")
        if math.isfinite(getattr(cost, at))
    }  # fmt: skip


def _money(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.2f}"


def _basis(told: Estimate) -> Iterator[Row]:
    """Every number that went in, with where it comes from."""
    run, rates = told.run, told.speeds
    shown: tuple[tuple[str, Known[Figure], Callable[[float], str]], ...] = (
        ("one GPU", rates.reached_flops_per_s, _teras),
        ("of its step, communication", rates.communication_percent, lambda x: f"{number(x)} %"),
        ("bus bandwidth", rates.busbw_gbps, _gigas),
        ("writing", rates.write_gbps, _gigas),
        ("reading", rates.read_gbps, _gigas),
        ("one GPU's power", rates.power_w, lambda x: f"{number(x)} W"),
        ("stall of a save", told.stall_s, format_duration),
        ("restart", told.restart_s, format_duration),
    )
    for name, figure, text in shown:
        if isinstance(figure, Figure):
            yield _based(name, figure, text)
    said = (
        ("MTBF", "" if run.mtbf_s is None else format_duration(run.mtbf_s), "stated",
         "--mtbf, of the whole job"),
        ("communication", run.sharding, "assumed", "likely half of what is sent is hidden"),
        ("speed of a GPU", "" if run.mfu_percent else "as measured", "assumed",
         "the same in this model, at this number"),
        ("saving", "all ranks wait", "assumed", "for the whole write, unless --stall is given"),
    )  # fmt: skip
    for what, value, origin, source in said:
        if value:
            yield {"what": what, "value": value, "origin": origin, "from": source}


def _teras(value: float) -> str:
    return f"{number(value / 1e12)} TFLOP/s"


def _gigas(value: float) -> str:
    return f"{number(value)} GB/s"


_FROM = {
    "stall of a save": "checkpoint / speed of writing",
    "restart": "checkpoint / speed of reading; starting the processes is not in it",
}


def _based(name: str, figure: Figure, text: Callable[[float], str]) -> Row:
    value = text(figure.likely)
    if figure.low != figure.high:
        value = f"{value} ({text(figure.low)} to {text(figure.high)})"
    once = figure.origin == "measured" and figure.low == figure.high
    return {"what": name, "value": value, "origin": "measured once" if once else figure.origin,
            "from": figure.source or _FROM.get(name, "")}  # fmt: skip


def _lacking(told: Estimate) -> list[Row]:
    """What is not known, by the command or option that supplies it."""
    rates = told.speeds
    parts: tuple[tuple[str, Known[Any]], ...] = (
        ("computing", told.compute_s),
        ("attention", attention_flops(told.run)),
        *_sending_lacks(told),
        ("saving", told.stall_s),
        ("interval of saves", told.interval_s),
        ("failures", told.lost_s),
        ("restart", told.restart_s),
        ("waiting", told.waiting_s),
        ("energy", rates.power_w),
        ("whether the state fits on a GPU", told.room.gpu_bytes),
        *((line.name, line.cost) for line in bill(told) if not line.of_which),
        *unused(told),
    )
    found: dict[str, dict[str, None]] = {}
    for name, part in parts:
        if isinstance(part, Missing):
            found.setdefault(part.text, {})[name] = None
    return [{"for": ", ".join(names), "needs": text} for text, names in found.items()]


def _sending_lacks(told: Estimate) -> Iterator[tuple[str, Known[Any]]]:
    """Of a stated MFU nothing: that holds communication already."""
    if told.run.mfu_percent is None:
        yield "communication of this many GPUs", told.speeds.busbw_gbps
        yield "communication of this many GPUs", exchanges(told.run)


def _numbers(told: Estimate) -> dict[str, float]:
    """For programs: all digits, and the unit in the key."""
    figures = {
        "compute_s": told.compute_s, "exposed_s": told.exposed_s, "saving_s": told.saving_s,
        "waiting_s": told.waiting_s, "lost_s": told.lost_s, "wall_s": told.wall_s,
        "gpu_hours": told.gpu_hours, "idle_gpu_hours": told.idle_gpu_hours,
        "energy_kwh": told.energy_kwh, "failures": told.failures, "interval_s": told.interval_s,
        "saves": told.saves, "stall_s": told.stall_s, "restart_s": told.restart_s,
        "balance_tokens": told.balance_tokens,
    }  # fmt: skip
    numbers: dict[str, float] = {"flops_per_token": flops_per_token(told.run)}
    for name, figure in figures.items():
        for one in ("low", "likely", "high") if isinstance(figure, Figure) else ():
            value = getattr(figure, one)
            if math.isfinite(value):
                numbers[f"{name}_{one}"] = value
    return numbers
