"""What the settings of a sweep measured, as a table for each axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from preflight.expect.sweeps import Recommended, pareto, recommended, unfit
from preflight.facts.sweeps import Setting, Sweep, options_of
from preflight.facts.training import Training
from preflight.model import Missing
from preflight.units import format_bytes

Row = dict[str, Any]
Cell = Callable[[Setting], str]


def sweep_tables(run: Training, host: str) -> tuple[dict[str, Any], ...]:
    """One for each axis: the settings, and below them what to type."""
    if isinstance(run.sweeps, Missing):
        return ()
    chosen = [(one, _choice(run, one)) for one in run.sweeps if one.settings]
    return tuple(
        {"table": f"sweep: {one.name}", "host": host, "rows": list(_rows(one, choice)),
         **_said(one, choice), "numbers": _numbers(one)}
        for one, choice in chosen
    )  # fmt: skip


def _said(sweep: Sweep, choice: Recommended) -> dict[str, list[str]]:
    """Beside the rows: what to type, or above them that they tell nothing; and why settings have no
    numbers, which is longer than a cell."""
    why = [f"{one.name}: {one.failed or one.limit}" for one in sweep.settings if _ended(one)]
    why += [sweep.left_out] if sweep.left_out else []
    advice = [_advice(sweep, choice)]
    return {"above": advice, "notes": why} if choice.untold else {"notes": [*why, *advice]}


def _ended(one: Setting) -> str:
    """In a word why there are no numbers of all rounds; "" where there are."""
    return "failed" if one.failed else "limit" if one.limit else ""


def _choice(run: Training, sweep: Sweep) -> Recommended:
    """What to take; of ranks that share processors nothing is said."""
    if sweep.name == "scaling" and isinstance(run.scaling, Missing):
        return Recommended("", run.scaling.text)
    return recommended(sweep)


def _rows(sweep: Sweep, choice: Recommended) -> Iterator[Row]:
    columns = [(name, cell) for name, cell in _COLUMNS.get(sweep.name, ())
               if name not in _SOME or any(map(cell, sweep.settings))]  # fmt: skip
    # A way between memory and speed, of which no other is better in both.
    marks = dict.fromkeys(pareto(sweep), "on the Pareto front") if sweep.name == "recompute" else (
        unfit(sweep)
    )  # fmt: skip
    for one in sweep.settings:
        yield {
            "setting": one.name, "n": _count(one), "tokens/s": _rate(one),
            **{name: cell(one) for name, cell in columns},
            "": _mark(one, choice, marks),
        }  # fmt: skip


def _count(one: Setting) -> str:
    return "" if isinstance(one.tokens_per_s, Missing) else str(one.tokens_per_s.n)


def _rate(one: Setting) -> str:
    """The median of the rounds and between which they lie; or in a word why there are none."""
    told = one.tokens_per_s
    if isinstance(told, Missing):
        return _ended(one)
    return f"{told.median:,.0f} [{told.low:,.0f} to {told.high:,.0f}]"


def _mark(one: Setting, choice: Recommended, marks: dict[str, str]) -> str:
    told = ["now"] if one.base else []
    told += [marks[one.name]] if one.name in marks else []
    told += ["take this"] if one.name == choice.name else []
    return ", ".join(told)


def _percent(name: str) -> Cell:
    return lambda one: "" if isinstance(told := getattr(one, name), Missing) else f"{told:.1f} %"


def _bytes(name: str) -> Cell:
    return lambda one: "" if isinstance(told := getattr(one, name), Missing) else format_bytes(told)


def _number(name: str, form: str) -> Cell:
    return lambda one: "" if isinstance(told := getattr(one, name), Missing) else format(told, form)


_WAIT = ("data wait", _percent("data_percent"))
_PEAK = ("peak memory", _bytes("peak_bytes"))
#: What a step asks of its device: of GPUs the first two, of processors the third.
_ASKED = (("launches", _number("launches", ",")),
          ("launch-bound", _percent("launch_bound_percent")),
          ("operators", _number("operators", ",")))  # fmt: skip
_SOME = {name for name, _ in _ASKED}
_CACHE = ("KV cache", _bytes("kv_cache_bytes"))
_LOSS = ("loss", _number("loss", ".3f"))
#: What each axis is about.
_COLUMNS: dict[str, tuple[tuple[str, Cell], ...]] = {
    "loader": (_WAIT, ("host memory", _bytes("host_bytes")), ("shared", _bytes("shm_bytes"))),
    "length": (_CACHE, _PEAK, *_ASKED),
    "batch": (_PEAK, _WAIT),
    "scaling": (_WAIT, ("communication", lambda one: _share(one, "communication"))),
    "recompute": (_PEAK,),
    "clip": (_LOSS, ("norm", _number("norm", ".3g")), ("noise", _number("loss_noise", ".4f")),
             ("clipped", _percent("clipped_percent"))),
    "kv-heads": (_CACHE, _PEAK, *_ASKED),
    "comm-hook": (("sent by a rank", _bytes("sent_bytes")),
                  ("communication", lambda one: _share(one, "communication")), _LOSS),
}  # fmt: skip


def _share(one: Setting, part: str) -> str:
    return f"{one.shares[part]:.1f} %" if part in one.shares else ""


def _advice(sweep: Sweep, choice: Recommended) -> str:
    taken = next((one for one in sweep.settings if one.name == choice.name), None)
    if taken is None:
        return choice.why
    return f"{_typed(sweep.name, taken)}: {choice.why}"


def _typed(axis: str, setting: Setting) -> str:
    """What to type here, and what it is called in torch."""
    options, values = options_of(axis, setting.values), setting.values
    if axis == "loader":
        torch = f"num_workers={values['workers']}"
        torch += f", prefetch_factor={values['prefetch']}" if values["workers"] else ""
        return f"{options} (DataLoader: {torch}, pin_memory={values['pin']})"
    if "operators" in values:
        return ("checkpoint all blocks, products and attention kept "
                "(torch.utils.checkpoint.create_selective_checkpoint_contexts)")  # fmt: skip
    if axis == "recompute" and not options:
        blocks = f"{values['blocks']} of the {values['of']} blocks"
        return f"checkpoint {blocks} (torch.utils.checkpoint)"
    return options or setting.name


def _numbers(sweep: Sweep) -> dict[str, Any]:
    """The medians for programs."""
    return {
        f"{one.name}: tokens_per_s": one.tokens_per_s.median
        for one in sweep.settings
        if not isinstance(one.tokens_per_s, Missing)
    }
