"""What --dry-run prints of nccl-tests: each command line as it would be typed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from preflight.bench.nccl_tests import (
    GPUS,
    arguments,
    collectives_of,
    environment,
    with_environment,
)
from preflight.cli.asking import shown_commands
from preflight.cli.nccl_tests.asked import is_of_tests, likely_path
from preflight.cli.one_job import first_questions
from preflight.cli.options import Options
from preflight.model import Command

if TYPE_CHECKING:
    from preflight.cli.hosts import Asking


def lines(
    plan: Mapping[str, Any], commands: Sequence[Command], options: Options, many: Asking | None,
    python: tuple[str, ...],
) -> Iterator[str]:  # fmt: skip
    """All that is asked and run. How many GPUs there are only the hosts can tell."""
    where = many.told() if many else ""
    others = [one for one in commands if not is_of_tests(one)]
    limit_s = max(one.timeout_s for one in commands if is_of_tests(one))
    yield f"first, which {GPUS} and binaries there are:\n"
    yield from shown_commands(first_questions(others, dict(plan), python), options, where)
    yield "then:\n"
    yield from shown_commands(others, options, where)
    together = many is not None and len(many.hosts) != 1
    over = "here, over all hosts that can take part" if together else "there, on its GPUs"
    yield f"then {over}, one after another, at most {limit_s} s each:\n"
    for name in collectives_of(plan):
        yield f"  {shlex.join(_typed(plan, name, options, many if together else None))}\n"


def _typed(
    plan: Mapping[str, Any], name: str, options: Options, many: Asking | None
) -> tuple[str, ...]:
    """The command line; of one host alone that of the binary itself."""
    path, gpus = likely_path(plan, name), plan.get("ranks", GPUS)
    if many is None:
        own = environment(os.environ, plan)
        return with_environment(own, arguments(path, plan, gpus))
    from preflight.cli.engines import launcher_for

    slots = dict.fromkeys(many.hosts or ("NODES",), gpus)
    typed = launcher_for(options).argv(slots, arguments(path, plan, 1), plan)
    # Which nodes and how many is Slurm's choice.
    return typed if many.hosts else tuple(one.replace("--nodes=1", "--nodes=N") for one in typed)
