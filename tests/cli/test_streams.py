"""Closed streams, large pipes and interruptions are told in words, never as a bug."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.command import PREFLIGHT

X79 = "[  100.000001] NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=python, GPU has fallen off\n"


def shell(line: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "x.log").write_text(X79)
    return subprocess.run(
        ["sh", "-c", line.replace("preflight", str(PREFLIGHT), 1)], cwd=tmp_path, text=True,
        capture_output=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "rc", "told"),
    [
        ("preflight gpu-health --from - <&-", 2, "standard input: is closed"),
        ("preflight explain - <&-", 2, "standard input is closed"),
        ("preflight gpu-health --from x.log >&-", 2, "standard output is closed"),
        ("preflight gpu-health --from x.log >&- 2>&-", 2, ""),
        ("preflight gpu-health --from x.log 2>&-", 1, ""),
        ("preflight gpu-health --from x.log <&-", 1, ""),
        ("preflight gpu-health --from nowhere.log 2>&-", 2, ""),
    ],
)
def test_a_closed_stream(line: str, rc: int, told: str, tmp_path: Path) -> None:
    done = shell(line, tmp_path)
    assert done.returncode == rc
    assert told in done.stderr
    assert "bug" not in done.stderr


def test_a_large_log_in_a_pipe_is_sieved_and_leaves_no_file(tmp_path: Path) -> None:
    line = "Nov 29 10:00:00 h sshd[3]: Accepted publickey for a from 10.0.0.1 port 22 ssh2: RSA\n"
    begin = "Nov 29 10:00:00 h kernel: usb 1-2: new device\n"
    (tmp_path / "big.log").write_text(begin + line * 450_000 + "Nov 29 10:00:00 h kernel: " + X79)
    (tmp_path / "tmp").mkdir()
    done = shell("TMPDIR=tmp preflight gpu-health --from - --only gpu.xid.79 < big.log", tmp_path)
    assert done.returncode == 1
    assert "kernel log of 450,002 lines" in done.stdout
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_it_reads_it_says_so(tmp_path: Path, number: int) -> None:
    running = subprocess.Popen(
        [PREFLIGHT, "gpu-health", "--from", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(2)
    running.send_signal(number)
    out, err = running.communicate(timeout=10)
    assert (running.returncode, out, err) == (130, "", "interrupted; there is no report\n")
