"""What the settings of a sweep measured, as a table for each axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from preflight.expect.sweeps import Recommended, recommended
from preflight.facts.sweeps import Setting, Sweep
from preflight.facts.training import Training
from preflight.model import Missing
from preflight.units import format_bytes

Row = dict[str, Any]
Cell = Callable[[Setting], str]


def sweep_tables(run: Training, host: str) -> tuple[dict[str, Any], ...]:
    """One for each axis: the settings, and below them what to type."""
    if isinstance(run.sweeps, Missing):
        return ()
    return tuple(
        {"table": f"sweep: {one.name}", "host": host, "rows": list(_rows(one)),
         "notes": [_advice(one, recommended(one))], "numbers": _numbers(one)}
        for one in run.sweeps
        if one.settings
    )  # fmt: skip


def _rows(sweep: Sweep) -> Iterator[Row]:
    choice = recommended(sweep)
    columns = _COLUMNS.get(sweep.name, ())
    for one in sweep.settings:
        yield {
            "setting": one.name, "n": _count(one), "tokens/s": _rate(one),
            **{name: cell(one) for name, cell in columns},
            "": _mark(one, choice),
        }  # fmt: skip


def _count(one: Setting) -> str:
    return "" if isinstance(one.tokens_per_s, Missing) else str(one.tokens_per_s.n)


def _rate(one: Setting) -> str:
    """The median of the rounds and between which they lie; or why there are none."""
    told = one.tokens_per_s
    if isinstance(told, Missing):
        return one.limit or one.failed
    return f"{told.median:,.0f} [{told.low:,.0f} to {told.high:,.0f}]"


def _mark(one: Setting, choice: Recommended) -> str:
    marks = ["now"] if one.base else []
    marks += ["take this"] if one.name == choice.name else []
    return ", ".join(marks)


def _percent(name: str) -> Cell:
    return lambda one: "" if isinstance(told := getattr(one, name), Missing) else f"{told:.1f} %"


def _bytes(name: str) -> Cell:
    return lambda one: "" if isinstance(told := getattr(one, name), Missing) else format_bytes(told)


_COLUMNS: dict[str, tuple[tuple[str, Cell], ...]] = {
    "loader": (
        ("data wait", _percent("data_percent")),
        ("host memory", _bytes("host_bytes")),
        ("shared", _bytes("shm_bytes")),
    ),
}


def _advice(sweep: Sweep, choice: Recommended) -> str:
    taken = next((one for one in sweep.settings if one.name == choice.name), None)
    if taken is None:
        return choice.why
    return f"{_typed(sweep.name, taken)}: {choice.why}"


def _typed(axis: str, setting: Setting) -> str:
    """What to type here, and what it is called in torch."""
    say = _TYPED.get(axis)
    return say(setting.values) if say else setting.name


def _loader(values: dict[str, Any]) -> str:
    ahead = f" --prefetch {values['prefetch']}" if values["workers"] else ""
    torch = f"num_workers={values['workers']}"
    torch += f", prefetch_factor={values['prefetch']}" if values["workers"] else ""
    return f"--workers {values['workers']}{ahead} (DataLoader: {torch}, pin_memory={values['pin']})"


_TYPED: dict[str, Callable[[dict[str, Any]], str]] = {"loader": _loader}


def _numbers(sweep: Sweep) -> dict[str, Any]:
    """The medians for programs."""
    return {
        f"{one.name}: tokens_per_s": one.tokens_per_s.median
        for one in sweep.settings
        if not isinstance(one.tokens_per_s, Missing)
    }
