"""What happened to a loss, as entries of a report's `measurements`: every event with its suspects,
and the series with them marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from preflight.diagnosis.checkpoint.verdicts import Judged as Checkpoint
from preflight.diagnosis.divergence.conclude import Judged, status_of
from preflight.reports.pictures.told import Marked, Panel, Picture, as_told
from preflight.reports.step_time import drawn_line

_POINTS = 2000
#: Columns that are drawn, and whether by powers of ten.
_DRAWN = (("loss", False), ("grad_norm", True), ("loss_scale", True), ("lr", False))
_MOST = 50


def tables_of(one: Judged, checkpoints: Sequence[Checkpoint] = ()) -> Iterator[dict[str, Any]]:
    """Every event with its suspects, and the picture of the series with them, and with the
    checkpoints, marked."""
    if one.events:
        yield {"table": f"events, {one.log.source}", "rows": [
            {"step": f"{event.step:,.0f}", "line": event.line, "event": event.kind,
             "status": status_of(event).value,
             "suspects": ", ".join(other.cause for other in one.causes[at][:3]) or "-"}
            for at, event in enumerate(one.events[:_MOST])
        ]}  # fmt: skip
    panels = tuple(_panels(one, tuple(_saved(checkpoints))))
    if panels:
        yield {"table": f"the run, {one.log.source}", "rows": [
            _row(panel.name, one.course.series.values(panel.name)) for panel in panels
        ], "picture": as_told(Picture(panels=panels))}  # fmt: skip


def _row(name: str, values: Sequence[float]) -> dict[str, Any]:
    low, high, line = drawn_line(values)
    return {"series": name, "low": low, "high": high, "largest of each piece": line}


def _saved(checkpoints: Sequence[Checkpoint]) -> Iterator[Marked]:
    """Each with what became of it, where it cannot be resumed from."""
    for one in checkpoints:
        if one.found.step is not None:
            verdict = "" if one.can_resume else f" {one.finding.finding.partition('.')[2]}"
            yield Marked(float(one.found.step), f"checkpoint{verdict}")


def _panels(one: Judged, saved: tuple[Marked, ...]) -> Iterator[Panel]:
    """Columns that are there, thinned so that the largest and the smallest stay."""
    marks = (*(Marked(event.step, event.kind) for event in one.events[:200]), *saved[:200])
    steps = one.course.steps
    size = max(1, -(-len(steps) // (_POINTS // 2)))
    for name, log in _DRAWN:
        column = one.course.series.columns.get(name)
        if column is None or len(steps) < 2:
            continue
        ends = [_ends(column.mean, at, min(at + size, len(steps)))
                for at in range(0, len(steps), size)]  # fmt: skip
        picked = sorted(set().union(*ends))
        values = tuple(v if (v := column.mean[at]) == v else None for at in picked)
        if len(picked) > 1 and any(value is not None for value in values):
            yield Panel(name, "", tuple(steps[at] for at in picked), values, marks, log=log)


def _ends(values: Sequence[float], begin: int, end: int) -> set[int]:
    known = [at for at in range(begin, end) if values[at] == values[at]]
    if not known:
        return {begin}
    found = {min(known, key=lambda at: values[at]), max(known, key=lambda at: values[at])}
    return found | {at for at in range(begin, end) if values[at] != values[at] and end - begin == 1}
