"""A host that answers from a table: for tests of checks, a site's own included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from preflight.model import Command, Raw


class Fake(Struct, frozen=True):
    """Answers each command by its probe's name; what is not in the table is not installed."""

    host: str
    answers: Mapping[str, Raw | str]

    def run(self, commands: Sequence[Command]) -> Iterator[Raw]:
        """Yield one Raw for each command, in order."""
        for command in commands:
            answer = self.answers.get(command.probe)
            if isinstance(answer, Raw):
                yield answer
            elif answer is None:
                yield Raw(self.host, command.probe, command.argv, rc=127)
            else:
                yield Raw(self.host, command.probe, command.argv, 0, answer)
