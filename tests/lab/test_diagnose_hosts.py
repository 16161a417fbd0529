"""What trains on other hosts is found over a real sshd, and the one that is stopped is named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.ssh_hosts import LabHost
from tests.lab.sshd import lab

pytestmark = pytest.mark.lab


def test_the_training_of_other_hosts_is_found(tmp_path: Path) -> None:
    python = f'exec {sys.executable} "$@"'
    host = LabHost(user="root", tools={"python3": python})
    with lab(tmp_path, {"node-1": host, "bare": LabHost(tools={"python3": "exit 127"})}) as made:
        words = ("diagnose-step-time", "--hosts", "node-1,bare", "--duration", "2s")
        none = made.preflight(*words)
        assert none.returncode == 3
        assert "node-1: no training is seen here" in " ".join(none.stdout.split())
        assert "bare: " in none.stdout


def test_a_stopped_rank_is_named_without_its_pid() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"],
                          env={**os.environ, "RANK": "5"}) as one:  # fmt: skip
        one.send_signal(signal.SIGSTOP)
        done = subprocess.run(
            [sys.executable, "-m", "preflight.payload", "look", "--plan",
             '{"pids":[],"seconds":2}'], capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        one.kill()
    assert f'"pid":{one.pid},' in done.stdout and '"rank":5' in done.stdout
