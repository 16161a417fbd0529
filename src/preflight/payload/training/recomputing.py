"""The axis of a sweep over recomputing: how many blocks keep only their inputs. They are alike:
which of them is no matter. Or all of them keep what is dear too: selective by operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from .model import selects
from .plan import Plan
from .presets import Preset
from .work import shape_of

Values = dict[str, Any]
_OPERATORS = "operators"
_NO_OPERATORS = f"torch has selective checkpointing from 2.4 on, and this is {torch.__version__}"


def own(plan: Plan, shape: Preset, cores: int) -> list[Values]:
    """None, a quarter, half and all of the blocks; and by operator."""
    found = dict.fromkeys(round(share * shape.layers) for share in (0.0, 0.25, 0.5, 1.0))
    by_operator = [_by_operator(shape)] if selects() else []
    return [*(_blocks(one, shape) for one in found), *by_operator]


def without(plan: Plan, cores: int) -> str:
    """What is not tried, and why."""
    return "" if selects() else f"not tried: {_OPERATORS}, {_NO_OPERATORS}"


def read(text: str, plan: Plan) -> list[Values]:
    """`0.25`, or `1/4`, or `operators`."""
    if text == _OPERATORS:
        if not selects():
            raise ValueError(_NO_OPERATORS)
        return [_by_operator(shape_of(plan))]
    above, _, below = text.partition("/")
    try:
        share = float(above) / float(below or "1")
    except (ValueError, ZeroDivisionError):
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{text!r} is no share of the blocks: 0 to 1, or {_OPERATORS}")
    shape = shape_of(plan)
    return [_blocks(round(share * shape.layers), shape)]


def of(plan: Plan, values: Values) -> Plan:
    """The plan with one of them."""
    share = values["blocks"] / values["of"]
    return replace(plan, recompute=share, operators=_OPERATORS in values)


def base(plan: Plan, shape: Preset) -> Values:
    """Those that the plan has already."""
    return _blocks(round(plan.recompute * shape.layers), shape)


def name(values: Values) -> str:
    """As its row is called."""
    if _OPERATORS in values:
        return _OPERATORS
    return f"{values['blocks']} of {values['of']} blocks"


def _blocks(count: int, shape: Preset) -> Values:
    return {"blocks": count, "of": shape.layers}


def _by_operator(shape: Preset) -> Values:
    return {**_blocks(shape.layers, shape), _OPERATORS: True}
