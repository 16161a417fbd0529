"""Runs of the training harness, one after the other from one process that has torch loaded.

    python -m bench.fault_runs FOLDER < plans.json

The input is an object: name -> plan. What a run told becomes FOLDER/NAME.jsonl.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any, TextIO

Plans = dict[str, dict[str, Any]]


def told(plans: Plans, folder: Path, *, timeout_s: float) -> dict[str, str]:
    """The lines of each plan's run, by name; the runs are in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.fault_runs", str(folder)],
        input=json.dumps(plans), capture_output=True, text=True, check=False, timeout=timeout_s,
        cwd=Path(__file__).resolve().parents[1],
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return {name: (folder / f"{name}.jsonl").read_text(encoding="utf-8") for name in plans}


def _write(file: TextIO, line: dict[str, Any]) -> None:
    print(json.dumps(line), file=file)


def main() -> int:
    warnings.filterwarnings("ignore")  # of torch, about itself
    from preflight.payload.training.harness import harness
    from preflight.payload.training.plan import Plan

    folder, plans = Path(sys.argv[1]), json.load(sys.stdin)
    for name, plan in plans.items():
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            harness(Plan(**plan), partial(_write, file))
    return 0


if __name__ == "__main__":
    sys.exit(main())
