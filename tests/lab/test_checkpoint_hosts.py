"""preflight checkpoint verify of hosts with disks of their own, by a real sshd."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.checkpoint_files import save_trainer
from tests.lab.ssh_hosts import LabHost
from tests.lab.sshd import lab

pytestmark = pytest.mark.lab


def test_each_host_has_a_part_and_together_they_are_whole(tmp_path: Path) -> None:
    """The same path is another folder on each: that of the host's own disk."""
    (tmp_path / "lab").mkdir()
    shown = tmp_path / "nvme"
    shown.mkdir()
    hosts = {}
    for at, name in enumerate(("node-1", "node-2")):
        save_trainer(tmp_path / name / "checkpoint-100", 100)
        (tmp_path / name / "checkpoint-100" / f"rng_state_{at}.pth").unlink()
        hosts[name] = LabHost(user="root", mounts=f"mount --bind {tmp_path / name} {shown}")
    with lab(tmp_path / "lab", hosts) as made:
        done = made.preflight(
            "checkpoint", "verify", str(shown), "--hosts", made.names, "--python", sys.executable,
            "--format", "json",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [one["finding"] for one in json.loads(done.stdout)["findings"]]
    assert found == ["checkpoint.resumable", "checkpoint.apart"]
