"""What --model-params and the like ask of a bench of storage: the checkpoint of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from preflight.cli.options import PROJECT, Options
from preflight.errors import UsageError
from preflight.units import parse_count, parse_duration

_DEFAULTS = Options()
_FLAGS = {"optimizer": "--optimizer", "model_ranks": "--ranks", "interval": "--interval"}

Tables = Sequence[dict[str, Any]]


def hold_none(options: Options) -> None:
    """Of an object store no checkpoint is projected: its ways to put are no save of a file. Raises
    UsageError where one is asked for."""
    for name in _given(options):
        flag = _FLAGS.get(name, "--model-params")
        raise UsageError(
            f"{flag} is of a checkpoint in files, and --url measures objects",
            "leave one of them out; `preflight estimate --write-speed RATE` takes what was measured"
        )  # fmt: skip


def _given(options: Options) -> list[str]:
    return [name for name in PROJECT if getattr(options, name) != getattr(_DEFAULTS, name)]


def projection(options: Options) -> Callable[[Tables], Tables] | None:
    """What makes one more table of those that were measured; None where no model is stated. Raises
    UsageError before anything is written."""
    given = _given(options)
    if not given:
        return None
    if options.model_params is None:
        raise UsageError(f"{_FLAGS[given[0]]} is of a model, and none is stated",
                         "--model-params 70e9")  # fmt: skip
    from preflight.reports.projected import Wanted, projected

    interval = None if options.interval is None else parse_duration(options.interval)
    ranks = 1 if options.model_ranks is None else options.model_ranks
    wanted = Wanted(
        parse_count(options.model_params), options.optimizer or "adamw", ranks, interval
    )
    wanted.at()
    return lambda tables: (projected(wanted, tables),)
