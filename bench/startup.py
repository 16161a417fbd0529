"""How long preflight takes to start, as a multiple of the barest program of its kind.

    python -m bench.startup

Both programs run in turn, in alternating order, so that a machine growing slower or faster during
the measurement moves both. What is judged is the median of the ratios of 11 such pairs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import inputs
from bench.programs import environment, installed, warm
from bench.table import Row, show

PAIRS = 11
#: Times the bare program's. The version needs the same libraries and one module more; judging a
#: host's XML also reads rules, parses and judges.
VERSION_TARGET = 1.4
HEALTH_TARGET = 2.5

BARE = """
import typer

app = typer.Typer()


@app.command()
def main() -> None:
    typer.echo("0.1.0")


app()
"""


class Measured(NamedTuple):
    """Seconds of one pair of runs."""

    bare_s: float
    preflight_s: float

    @property
    def ratio(self) -> float:
        return self.preflight_s / self.bare_s


def seconds(argv: list[str]) -> float:
    """Wall-clock time of one run."""
    begun = time.perf_counter()
    subprocess.run(argv, env=environment(), stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - begun


def pairs(bare: list[str], program: list[str]) -> list[Measured]:
    """PAIRS runs of both, either first in turn."""
    warm(bare)
    warm(program)
    found = []
    for number in range(PAIRS):
        if number % 2:
            found.append(Measured(seconds(bare), seconds(program)))
        else:
            second = seconds(program)
            found.append(Measured(seconds(bare), second))
    return found


def row(what: str, found: list[Measured], target: float) -> Row:
    ratios = sorted(pair.ratio for pair in found)
    middle = median(ratios)
    taken = f"{1000 * median(pair.preflight_s for pair in found):.0f} ms"
    reached = f"{middle:.2f} x [{ratios[0]:.2f}, {ratios[-1]:.2f}], {taken}"
    return Row(what, reached, f"{target} x", middle <= target)


def main() -> int:
    program = str(installed())
    with tempfile.TemporaryDirectory() as folder:
        script, xml = Path(folder, "bare.py"), Path(folder, "eight_gpus.xml")
        script.write_text(BARE, encoding="utf-8")
        xml.write_text(inputs.small_xml(), encoding="utf-8")
        bare = [sys.executable, str(script)]
        health = [program, "gpu-health", "--from", str(xml)]
        rows = [
            row("preflight --version", pairs(bare, [program, "--version"]), VERSION_TARGET),
            row("preflight gpu-health, 8 GPUs", pairs(bare, health), HEALTH_TARGET),
        ]
    title = f"Start-up against a bare typer program, medians of {PAIRS} pairs [lowest, highest]"
    return show(title, rows)


if __name__ == "__main__":
    sys.exit(main())
