"""Running preflight as its user does: the installed program, compiled to byte code beforehand."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from pathlib import Path

import preflight

#: The repository, whose samples the inputs are made from.
ROOT = Path(__file__).resolve().parents[1]
#: Exit statuses with which a report was given; the others say that nothing was measured.
REPORTED = (0, 1, 3)


def installed() -> Path:
    """The program `preflight` of this environment; ends the benchmark where there is none."""
    program = Path(sys.executable).parent / "preflight"
    if not program.exists():
        sys.exit(f"error: there is no {program}\nhint: run `make bench`, which installs it")
    compileall.compile_dir(Path(preflight.__file__).parent, quiet=1)
    return program


def environment() -> dict[str, str]:
    """This process's environment, but byte code may be kept, as it is for users."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def warm(argv: list[str]) -> None:
    """Run once, so that files are cached and compiled; ends the benchmark if nothing came of it."""
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode not in REPORTED or not done.stdout:
        sys.exit(f"error: {' '.join(argv)} exited with {done.returncode}:\n{done.stderr.rstrip()}")
