"""A process that hangs in the kernel is seen in two looks, with its name."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from preflight.probes.state.processes import processes
from tests.lab.frozen import frozen_directory


@pytest.mark.lab
def test_a_write_to_a_frozen_file_system_hangs(tmp_path: Path) -> None:
    with frozen_directory(tmp_path) as frozen:
        hanging = subprocess.Popen(["touch", frozen / "x"])
        time.sleep(0.5)
        argv = processes.probe.command.argv  # type: ignore[attr-defined]
        done = subprocess.run(argv, capture_output=True, text=True)
        found = processes(done.stdout).stuck
    hanging.wait(timeout=10)
    assert not isinstance(found, str)
    assert any(str(one).startswith(f"touch ({hanging.pid})") for one in tuple(found))  # type: ignore[arg-type]
