"""A checkpoint that is not there yet, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.expect.checkpoint_bytes import RESTORE_GOAL_S, Projection
from preflight.model import Known, Missing
from preflight.units import format_bytes, format_duration, number

Row = dict[str, Any]

_ALONE = (
    "the speed is to be that of all ranks together; where one host was measured, and several save "
    "to storage that has more to give, they are faster"
)


def projection_table(told: Projection, *, of: str = "", alone: bool = True) -> dict[str, Any]:
    """One entry of a report's `measurements`. `of`: where the speeds come from, in words; `alone`:
    whether they may be those of one host."""
    title = f"checkpoint of {number(told.params / 1e9)}e9 parameters, {told.optimizer}"
    notes = [
        "GB of 1e9 bytes; the position of data, schedule and generators is kilobytes",
        *([f"speeds: {of}"] if of else []),
        *([_ALONE] if alone else []),
    ]
    return {
        "table": title, "rows": [*_parts(told), *_times(told), *_less(told)],
        "notes": notes, "numbers": _numbers(told),
    }  # fmt: skip


def _parts(told: Projection) -> Iterator[Row]:
    for part in told.parts:
        note = f" ({part.note})" if part.note else ""
        size = format_bytes(told.params * part.bytes_per_param, decimal=True)
        yield _row(part.name, f"{size}, {part.bytes_per_param:g} B a parameter{note}")
    yield _row("all", f"{_size(told.total_bytes)}: {told.sum_told} a parameter")
    if told.least_bytes < told.total_bytes:
        least = f"{_size(told.least_bytes)}: the master copy gives {told.parts[0].name} again"
        yield _row("at least", least)
    if told.ranks > 1:
        yield _row("of one rank", f"{_size(told.total_bytes / told.ranks)}, of {told.ranks:,}")


def _times(told: Projection) -> Iterator[Row]:
    yield _row("to save", _time(told.save_s, told.write_gbps))
    yield _row("to load", _time(told.load_s, told.read_gbps))
    yield _row(f"loaded in {RESTORE_GOAL_S:g} s", _restore(told))
    if told.interval_s is not None:
        share = told.share_percent
        at = f"a save after every {format_duration(told.interval_s)} of training"
        text = share.text if isinstance(share, Missing) else f"{number(share)} % of the run: {at}"
        yield _row("share", f"{text}, for which all ranks wait")


def _restore(told: Projection) -> str:
    need = f"needs {number(told.restore_gbps)} GB/s"
    if isinstance(told.read_gbps, Missing):
        return f"{need}; none was measured"
    reached = told.read_gbps / told.restore_gbps
    return f"{need}; {number(told.read_gbps)} were measured: {'yes' if reached >= 1 else 'no'}"


def _less(told: Projection) -> Iterator[Row]:
    """What halves the time of a save, and what takes a part of it."""
    for change in told.changes:
        name = "half of it by" if change.factor <= 0.5 else "less of it by"
        yield _row(name, f"{change.what}: {100 * change.factor:.0f} % of the time")
    size = _size(told.total_bytes / told.ranks)
    text = f"saving beside the steps: they wait while {size} a rank is copied"
    yield _row("hidden by", text)


def _time(time_s: Known[float], rate_gbps: Known[float]) -> str:
    if isinstance(time_s, Missing) or isinstance(rate_gbps, Missing):
        return f"not known: {time_s.text}" if isinstance(time_s, Missing) else str(rate_gbps)
    return f"{format_duration(time_s)} at {number(rate_gbps)} GB/s"


def _size(count: float) -> str:
    return format_bytes(count, decimal=True)


def _row(measure: str, value: str) -> Row:
    return {"measure": measure, "value": value}


def _numbers(told: Projection) -> dict[str, float]:
    """For programs: the unit stands in the key."""
    each = {
        "params": told.params, "ranks": told.ranks, "total_bytes": told.total_bytes,
        "least_bytes": told.least_bytes, "rank_bytes": told.total_bytes / told.ranks,
        "write_gbps": told.write_gbps, "read_gbps": told.read_gbps, "save_s": told.save_s,
        "load_s": told.load_s, "restore_gbps": told.restore_gbps,
        "share_percent": told.share_percent,
    }  # fmt: skip
    return {name: value for name, value in each.items() if not isinstance(value, Missing)}
