"""What a probe is: a command and the pure function that reads its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from preflight.model import Command

F = TypeVar("F", bound=Callable[[str], Any])


class Probe(Struct, frozen=True):
    """One read-only question. `parse` gets the answer's standard output, raises ParseError."""

    command: Command
    parse: Callable[[str], Any]
    #: Some tools say on standard error what belongs to their answer.
    with_stderr: bool = False
    #: (answer, first line of the record, field path in it) -> the line that shows the field.
    locate: Callable[[str, int, str], int] | None = None


def probe(
    name: str,
    argv: list[str],
    *,
    timeout_s: int = 30,
    needs_root: bool = False,
    waits_for: str = "",
    with_stderr: bool = False,
    locate: Callable[[str, int, str], int] | None = None,
) -> Callable[[F], F]:
    """Attach the question to the function that reads its answer, and nothing more."""

    def attach(parse: F) -> F:
        command = Command(
            name, tuple(argv), timeout_s=timeout_s, needs_root=needs_root, waits_for=waits_for
        )
        parse.probe = Probe(command, parse, with_stderr, locate)  # type: ignore[attr-defined]
        return parse

    return attach
