"""What typer reads of a command: its options as the parameters of a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from preflight.cli.options import (
    checkpoint,
    estimate,
    everywhere,
    fixing,
    network,
    rescue,
    storage,
    stress,
    training,
)
from preflight.cli.options.asked import Options
from preflight.cli.options.option import Option
from preflight.cli.options.words import ARGUMENTS

#: The files of options, each for what they are of.
ROOMS = (everywhere, fixing, training, stress, network, storage, estimate, checkpoint, rescue)
OPTIONS: dict[str, Option] = {
    name: option for room in ROOMS for name, option in room.OPTIONS.items()
}
_DEFAULTS = Options()


def command(
    action: Callable[[Options], int], names: tuple[str, ...], doc: str
) -> Callable[..., int]:
    """A function with the signature that typer reads; it fills Options and calls `action`."""

    def call(**values: Any) -> int:
        return action(
            Options(**{name: value for name, value in values.items() if value is not None})
        )

    parameters = [_parameter(name) for name in names]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    call.__doc__ = doc
    return call


def _parameter(name: str) -> inspect.Parameter:
    default = getattr(_DEFAULTS, name) or None
    if isinstance(getattr(_DEFAULTS, name), bool):
        default = False
    if name in ARGUMENTS:
        option = ARGUMENTS[name]
        info: Any = typer.Argument(help=option.help, metavar=option.metavar, show_default=False)
    else:
        option = OPTIONS[name]
        info = typer.Option(
            *option.flags, help=option.help, metavar=option.metavar, count=option.count,
            show_default=isinstance(default, str),
        )  # fmt: skip
    kind = option.kind if default is not None or option.count else option.kind | None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=0 if option.count else default,
        annotation=Annotated[kind, info],
    )
