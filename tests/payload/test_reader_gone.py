"""A training run whose reader is gone ends: over SSH nothing else tells it so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from preflight import ship

#: Long enough to be cut off in the middle.
PLAN = {
    "device": "cpu", "resume": False, "workers": 1,
    "changes": {"layers": 1, "width": 32, "hidden": 64, "batch": 1, "length": 8, "steps": 20000},
}  # fmt: skip


def test_all_its_processes_are_gone_and_so_is_its_folder(tmp_path: Path) -> None:
    payload, folder = tmp_path / "preflight.pyz", tmp_path / "folder"
    payload.write_bytes(ship.pyz("group", "training", "stress"))
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-I", payload, "train", "--plan", json.dumps(PLAN)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PREFLIGHT_LOCK": str(tmp_path / "lock"), "TMPDIR": str(folder)},
    ) as run:  # fmt: skip
        assert run.stdout
        for line in run.stdout:
            if json.loads(line)["kind"] == "step":
                break
        ranks = psutil.Process(run.pid).children(recursive=True)
        assert len(ranks) >= 2
        run.stdout.close()
        began = time.monotonic()
        assert run.wait(timeout=10) == 130
        _, alive = psutil.wait_procs(ranks, timeout=5)
    assert alive == []
    assert time.monotonic() - began < 10
    assert list(folder.iterdir()) == []
