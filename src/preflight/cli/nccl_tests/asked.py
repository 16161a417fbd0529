"""What runs nccl-tests: its questions, with what only the hosts can tell left open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from preflight.bench.nccl_tests import (
    BINARIES,
    GPUS,
    arguments,
    collectives_of,
    environment,
    probe_of,
    with_environment,
)
from preflight.cli.options import Options, are_many
from preflight.errors import UsageError
from preflight.model import Command, Raw
from preflight.ship import TESTS, program_command

#: Options that are of the bundled engine alone.
_NOT_OF_IT = {
    "pairwise": "--pairwise", "repeats": "--repeats", "threads": "--threads",
    "no_locate": "--no-locate", "settings": "--sweep", "lasting": "--duration", "wire": "--wire",
}  # fmt: skip


def tests_of(options: Options) -> dict[str, Any]:
    """What of the plan is of this engine; empty where it was not asked for."""
    if options.nccl_tests is None:
        return {}
    if wrong := is_of_the_other(options):
        raise UsageError(
            f"{wrong} is of the bundled engine, and --nccl-tests names another",
            f"leave one of them out: preflight nccl-bench {wrong} ... looks for slow hosts itself",
        )
    if options.from_:
        raise UsageError("--nccl-tests runs binaries, --from reads what was recorded",
                         "leave one of them out")  # fmt: skip
    if not options.nccl_tests.strip():
        raise UsageError("--nccl-tests '' is no folder", "--nccl-tests ~/nccl-tests/build")
    folder = str(Path(os.path.expanduser(options.nccl_tests)).absolute())  # noqa: PTH111
    names = [BINARIES[one] for one in options.collective or BINARIES]
    return {"folder": folder, "names": names}


def hold_folder(options: Options) -> None:
    """Refuse a folder of this machine that is not there, or holds no such binary: before anything
    is done. UsageError."""
    if options.nccl_tests is None or are_many(options):
        return
    told = tests_of(options)
    folder, names = Path(told["folder"]), told["names"]
    if not folder.is_dir():
        near = f"ls -d {folder.parent / '*'}"
        near = f"--nccl-tests {folder.parent}" if folder.is_file() else near
        raise UsageError(f"--nccl-tests {options.nccl_tests}: there is no folder {folder}", near)
    if not any((folder / part / name).is_file() for part in ("", "build") for name in names):
        raise UsageError(
            f"--nccl-tests {options.nccl_tests}: there is no {names[0]} in {folder} nor in "
            f"{folder / 'build'}",
            "`make` in nccl-tests builds them: --nccl-tests ~/nccl-tests/build",
        )


def is_of_the_other(options: Options) -> str:
    """The option that only the bundled engine has; "" where none is given."""
    return next((flag for name, flag in _NOT_OF_IT.items() if getattr(options, name)), "")


def found_here() -> str:
    """The folder of nccl-tests in PATH or in ./build; "" where there is none."""
    first = BINARIES["all_reduce"]
    there = shutil.which(first) or shutil.which(first, path=str(Path("build").absolute()))
    return str(Path(there).parent) if there else ""


def is_of_tests(command: Command | Raw) -> bool:
    """Whether it runs one of the binaries, or is what one said."""
    return command.probe.partition("#")[0] == TESTS


def questions(plan: Mapping[str, Any], python: tuple[str, ...]) -> Iterator[Command]:
    """One for each collective, before it is known how many GPUs there are."""
    for at, name in enumerate(collectives_of(plan)):
        path = likely_path(plan, name)
        yield question(plan, python, at, arguments(path, plan, plan.get("ranks", GPUS)), os.environ)


def question(
    plan: Mapping[str, Any], python: tuple[str, ...], at: int, argv: Sequence[str],
    nccl: Mapping[str, str],
) -> Command:  # fmt: skip
    """The one of a collective, on one host. `nccl`: variables of NCCL that are set there."""
    return program_command(
        probe_of(at),
        with_environment(environment(nccl, plan), argv),
        python,
        plan.get("job", ""),
        even_if_busy=bool(plan.get("even_if_busy")),
    )


def likely_path(plan: Mapping[str, Any], collective: str) -> str:
    """Where its binary lies, as far as this machine can tell."""
    folder, name = Path(plan["tests"]["folder"]), BINARIES[collective]
    built = folder / "build" / name
    return str(built if built.exists() else folder / name)
