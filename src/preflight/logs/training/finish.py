"""Which of the series of a log are told, and what is made good in them at the end."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.facts.series import Series
from preflight.logs.training.rows import Rows

#: What tells of steps, the best first: bars count only where nothing else does.
KINDS = ("steps", "learned", "tqdm")


def finished(rows: Mapping[tuple[str, int | None], Rows]) -> tuple[Series, ...]:
    """One series; one for each rank where they told different things."""
    done = {key: one.done() for key, one in rows.items()}
    for kind in KINDS:
        mine = [one for (which, _), one in done.items() if which == kind and one.lines]
        if mine:
            return _bars(mine) if kind == "tqdm" else _ranks(mine)
    return ()


def _bars(found: list[Series]) -> tuple[Series, ...]:
    """The bar of the training is the longest: those of evaluations, of files, are others."""
    best = max(found, key=lambda one: (one.lines > 1, one.total_steps or 0, one.lines))
    best.rank = None
    _timed(best)
    return (best,)


def _ranks(found: list[Series]) -> tuple[Series, ...]:
    for one in found:
        _timed(one)
    if all(same(found[0], one) for one in found[1:]):
        found = found[:1]
        found[0].rank = None
    return tuple(found)


def _timed(one: Series) -> None:
    """The time of a step, of a forward and a backward, where only a bar or micro-steps told it."""
    columns = one.columns
    if "bar_s" in columns:
        rate = columns.pop("bar_s")
        columns.setdefault("step_s", rate)
    for name in ("forward", "backward"):
        micro = columns.get(f"timer/{name[0]}wd_microstep")
        if micro is not None:
            columns.setdefault(f"{name}_s", micro)


def same(one: Series, two: Series) -> bool:
    """Whether two ranks told the same, but for when."""
    if one.columns.keys() != two.columns.keys() or len(one.line) != len(two.line):
        return False
    return all(
        a == b or (a != a and b != b)
        for name, column in one.columns.items() if name != "time_s"
        for a, b in zip(column.mean, two.columns[name].mean, strict=True)
    )  # fmt: skip
