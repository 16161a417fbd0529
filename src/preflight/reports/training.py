"""What a training run measured, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.expect.advised import clipping, warmup
from preflight.expect.mfu import Mfu, mfu
from preflight.facts.host import Host
from preflight.facts.training import Resume, TrainData, Training, TrainRank
from preflight.model import Known, Missing
from preflight.units import format_bytes

Row = dict[str, Any]
_OF_MEMORY = "training: memory of the rank that needs most"
_OF_TIME = "training: where a step's time goes"
_PARTS = {
    "data": "waits for the loader", "copy": "to the device", "forward": "", "backward": "",
    "communication": "with other ranks, and waiting for slower ones", "optimizer": "",
    "checkpoint": "the state is copied", "rest": "none of these: Python, pauses, waits of its own",
}  # fmt: skip
_MEMORY = {
    "weights_bytes": "weights", "gradients_bytes": "gradients", "optimizer_bytes": "optimizer",
    "activations_bytes": "activations", "peak_bytes": "peak", "reserved_peak_bytes": "reserved",
    "device_used_bytes": "all of the GPU that is used", "host_peak_bytes": "peak on the host",
}  # fmt: skip


def training_tables(host: Host) -> tuple[dict[str, Any], ...]:
    """The tables of one host's run; none where it has no run, or none that came to a step."""
    run = host.training
    job = () if isinstance(run, Missing) else tuple(_job(run))
    together = ({"table": "one job", "host": host.name, "rows": list(job)},) if job else ()
    if isinstance(run, Missing) or isinstance(run.step_s, Missing):
        return together
    rate = mfu(run)
    tables = {
        "training": list(_run(run, rate)),
        _OF_TIME: _shares(run),
        "training: from peak to MFU": [] if isinstance(rate, Missing) else _ledger(rate),
        _OF_MEMORY: list(_memory(run)),
    }
    numbers = {
        "training": _numbers(run, rate), _OF_MEMORY: _bytes(run),
        _OF_TIME: {f"{part}_percent": round(share, 1) for part, share in run.shares.items()},
    }  # fmt: skip
    return together + tuple(
        {"table": name, "host": host.name, "rows": rows}
        | ({"numbers": numbers[name]} if numbers.get(name) else {})
        for name, rows in tables.items()
        if rows
    )


def _job(run: Training) -> Iterator[Row]:
    """What was trained together, told by the first of its hosts alone."""
    job = run.job
    if isinstance(job, Missing) or job.host != job.hosts[0]:
        return
    if len(job.hosts) > 1:
        ranks = f"{job.ranks} rank{'' if job.ranks == 1 else 's'}"
        over = f" over {job.interface}" if job.interface else ""
        told = f"{len(job.hosts)} hosts x {ranks}{over}, rendezvous {job.host} ({job.meets})"
    else:
        told = f"no: {job.host} trained by itself"
    stepped = not isinstance(run.step_s, Missing)
    yield {"measure": f"{'trained' if stepped else 'planned'} as one job", "value": told}
    came, all_ways = job.ways or (0, 0)
    if came and came < all_ways:
        value = f"{came} of {all_ways}: each host and its neighbours, all and the first"
        yield {"measure": "ways tried", "value": value}
    yield from ({"measure": "trained without", "value": one} for one in job.without)
    yield from ({"measure": "ended because of", "value": one} for one in job.causes)


def _numbers(run: Training, rate: Known[Mfu]) -> dict[str, float]:
    """What the rows say in words, for programs: the unit stands in the key."""
    step = run.step_s
    told: dict[str, Any] = {
        "ranks": run.world, "parameters": run.parameters, "flops_per_token": run.flops_per_token,
        "tokens_per_s": run.tokens_per_s,
        **({} if isinstance(step, Missing) else {
            "steps": step.n, "step_median_s": step.median, "step_low_s": step.low,
            "step_high_s": step.high,
        }),
        "mfu_percent": rate if isinstance(rate, Missing) else rate.percent,
        "loss_first_nats": run.first_loss, "loss_last_nats": run.last_loss,
        "loss_floor_nats": run.floor_loss, "norm_first": run.norm_first,
        "resume_step": run.resume.step, "resume_s": run.resume.elapsed_s,
        "resume_loss_difference_nats": run.resume.loss_difference,
    }  # fmt: skip
    return {name: value for name, value in told.items() if isinstance(value, (int, float))}


def _run(run: Training, rate: Known[Mfu]) -> Iterator[Row]:
    for name, told in (
        ("trained", _what(run)),
        ("data", _data(run.data)),
        ("tokens/s", _number(run.tokens_per_s, ",.0f")),
        ("step", _step(run)),
        ("MFU", rate.text if isinstance(rate, Missing) else f"{rate.percent:.1f} %"),
        ("", "" if isinstance(rate, Missing) else rate.formula),
        ("peak", "" if isinstance(rate, Missing) else rate.source),
        ("loss", _loss(run)),
        ("loss scale", _scale(run)),
        ("gradients", _layers(run)),
        ("warm-up", warmup(run)),
        ("clipping", clipping(run)),
        ("resume", _resume(run.resume)),
        ("GPU", _load(run)),
    ):
        if told:
            yield {"measure": name, "value": told}


def _what(run: Training) -> str:
    """Preset, precision, sharding, ranks, devices: what decides the rest."""
    products = run.products if isinstance(run.products, tuple) and run.products else ()
    on = ", ".join(products) or ("processors" if run.device == "cpu" else str(run.device))
    ranks = f"{run.world} rank" if run.world == 1 else f"{run.world} ranks"
    mesh = f" {run.mesh}" if run.mesh else ""
    alone = f" (one rank has nobody to share with: no {run.sharding_asked})"
    how = f"{run.sharding}{mesh}{alone if run.sharding_asked else ''}"
    told = [run.preset, run.precision, how, f"{ranks} on {on}"]
    if isinstance(run.accumulation, int) and run.accumulation > 1:
        told.append(f"{run.accumulation} micro-batches a step")
    told += [f"gradients averaged in {run.comm_hook}"] if run.comm_hook != "none" else []
    told += ["activations computed twice"] if run.recompute else []
    if run.device == "cpu" and isinstance(run.threads, int):
        told.append(f"{run.threads} thread{'' if run.threads == 1 else 's'} each")
    told += ["compiled"] if run.compiled is True else []
    told += [f"injected: {', '.join(run.injected)}"] if run.injected else []
    return ", ".join(str(one) for one in told if not isinstance(one, Missing))


def _data(told: Known[TrainData]) -> str:
    """Of the user's own shards."""
    if isinstance(told, Missing) or not told.own:
        return ""
    shards = f"{told.shards} shard{'' if told.shards == 1 else 's'}"
    few = f", {told.looked_at} of them looked at" if told.looked_at < told.shards else ""
    ids = f"{told.distinct} id{'' if told.distinct == 1 else 's'} in {told.sampled:,} of them"
    most = f"most often {told.most_id} ({told.most_percent:.3g} %)"
    one = f", {told.stretch_percent:.0f} % of {told.stretch_in} is one id in a row"
    row = one if told.stretch_percent >= 1 else ""
    return f"{shards}{few}, {told.tokens:,} tokens, {ids}, {most}{row}"


def _step(run: Training) -> str:
    step = run.step_s
    if isinstance(step, Missing):
        return ""
    low, half, high = (1000.0 * one for one in (step.low, step.median, step.high))
    if step.n == 1:
        return f"{half:.1f} ms, one step"
    return f"{half:.1f} ms [{low:.1f} to {high:.1f}: 10 to 90 %] of {step.n} steps"


def _loss(run: Training) -> str:
    if isinstance(run.first_loss, Missing) or isinstance(run.last_loss, Missing):
        return ""
    floor = "" if isinstance(run.floor_loss, Missing) else f" (floor {run.floor_loss:.2f})"
    return f"{run.first_loss:.2f} -> {run.last_loss:.2f}{floor}"


def _scale(run: Training) -> str:
    """What the scaler of fp16 did; nothing in other precisions."""
    if isinstance(run.scale_low, Missing):
        return ""
    skipped = _number(run.skipped_percent, ".3g")
    changes = f"{run.scale_changes} change{'' if run.scale_changes == 1 else 's'}"
    return f"lowest {run.scale_low:g}, {changes}, {skipped} % of steps left out"


def _layers(run: Training) -> str:
    """The norm of the first step, and the layers whose mean norm is lowest and highest."""
    told = [f"norm {run.norm_first:.2g} at first"] if isinstance(run.norm_first, float) else []
    if len(run.layers) > 1:
        low, *_, high = sorted(run.layers, key=lambda one: one.mean)
        told.append(f"by layer {low.mean:.2g} ({low.name}) to {high.mean:.2g} ({high.name})")
    return ", ".join(told)


def _resume(told: Resume) -> str:
    if isinstance(told.step, Missing):
        return told.step.text if isinstance(told.trouble, Missing) else str(told.trouble)
    apart = _number(told.loss_difference, ".2g")
    after = f", losses {apart} nats apart" if apart else ""
    read = _number(told.elapsed_s, ".1f")
    return f"killed; resumed at step {told.step} in {read} s{after}"


def _load(run: Training) -> str:
    """Shown beside the steps, never judged."""
    ranks = () if isinstance(run.ranks, Missing) else run.ranks
    told = [one.load for one in ranks if not isinstance(one.load, Missing)]
    parts = []
    for name, unit in (("power_w", "W"), ("sm_clock_mhz", "MHz"), ("sm_percent", "% busy")):
        found = [value for one in told if isinstance(value := getattr(one, name), float)]
        if found:
            low, high = min(found), max(found)
            span = f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"
            parts.append(f"{span} {unit}")
    return ", ".join(parts)


def _shares(run: Training) -> list[Row]:
    """Of the rank that is busy for the shortest time and of the one that is for the longest: where
    one is slow, it is the rest or the work of that one and communication of the others."""
    timed = () if isinstance(run.ranks, Missing) else run.ranks
    timed = tuple(one for one in timed if one.shares and isinstance(one.busy_s, float))
    ends = {pick(timed, key=_busy).name: None for pick in (min, max)} if timed else {}
    shown = {f"{one.name} (%)": one.shares for one in timed if one.name in ends}
    shown = shown or {"percent": run.shares}
    return [
        {"part": part}
        | {name: round(shares.get(part, 0.0), 1) for name, shares in shown.items()}
        | {"what it is": _PARTS.get(part, "")}
        for part in run.shares
    ]


def _busy(rank: TrainRank) -> float:
    return rank.busy_s if isinstance(rank.busy_s, float) else 0.0


def _ledger(rate: Mfu) -> list[Row]:
    return [
        {"part": one.name, "tflops": round(one.tflops, 1), "percent": round(one.percent, 1)}
        for one in rate.ledger
    ]


def _memory(run: Training) -> Iterator[Row]:
    for name, value in _bytes(run).items():
        yield {"kind": _MEMORY[name], "size": format_bytes(value)}


def _bytes(run: Training) -> dict[str, int]:
    """Where the memory is, of the rank that needs most."""
    ranks = () if isinstance(run.ranks, Missing) else run.ranks
    most = max(ranks, key=_peak, default=None)
    told = {name: getattr(most.memory, name) for name in _MEMORY} if most else {}
    return {name: value for name, value in told.items() if isinstance(value, int)}


def _peak(rank: TrainRank) -> int:
    for value in (rank.memory.peak_bytes, rank.memory.host_peak_bytes):
        if not isinstance(value, Missing):
            return value
    return 0


def _number(value: Known[float], form: str) -> str:
    return "" if isinstance(value, Missing) else format(value, form)
