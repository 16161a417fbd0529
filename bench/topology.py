"""How long the topology of a large host takes beyond the start of preflight itself.

    python -m bench.topology

Five outputs of a host with 16 GPUs and 16 adapters are read, joined, judged, drawn and advised on.
`preflight --version` runs in turn with it, in alternating order; judged is the median of the
differences of 11 such pairs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

from bench import topology_inputs
from bench.programs import installed
from bench.startup import PAIRS, Measured, pairs
from bench.table import Row, show

TARGET_S = 0.3


def row(what: str, found: list[Measured]) -> Row:
    """The time beyond start-up: median, and in brackets lowest and highest."""
    beyond = sorted(1000 * (pair.preflight_s - pair.bare_s) for pair in found)
    middle = median(beyond)
    reached = f"{middle:.0f} ms [{beyond[0]:.0f}, {beyond[-1]:.0f}]"
    return Row(what, reached, f"{1000 * TARGET_S:.0f} ms", middle <= 1000 * TARGET_S)


def main() -> int:
    program = str(installed())
    with tempfile.TemporaryDirectory() as folder:
        options = []
        for name, text in topology_inputs.files().items():
            path = Path(folder, name)
            path.write_text(text, encoding="utf-8")
            options += ["--from", f"node={path}"]
        bare, topo = [program, "--version"], [program, "topo", *options]
        rows = [row("preflight topo, 16 GPUs and 16 adapters", pairs(bare, topo))]
    return show(f"Time beyond start-up, medians of {PAIRS} pairs [lowest, highest]", rows)


if __name__ == "__main__":
    sys.exit(main())
