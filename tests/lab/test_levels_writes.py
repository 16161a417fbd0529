"""Where nothing can be written the level quick is whole, and what would write says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import PREFLIGHT
from tests.conftest import require

pytestmark = pytest.mark.lab
_SEALED = """\
mount -o remount,ro,bind / && mount -t tmpfs -o ro none "$HOME" && mount -t tmpfs -o ro none /dev/shm
touch /tmp/x 2>/dev/null && echo "it is not sealed"
cd "$HOME" && exec "$@"
"""  # noqa: E501


def _sealed(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    require("root and unshare", os.geteuid() == 0 and bool(shutil.which("unshare")))
    (tmp_path / "home").mkdir()
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", _SEALED, "sh", str(PREFLIGHT), *words], capture_output=True,
        text=True, timeout=60, env={**os.environ, "HOME": str(tmp_path / "home")},
    )  # fmt: skip


def test_quick_writes_nothing(tmp_path: Path) -> None:
    done = _sealed(tmp_path, "run", "--format", "json")
    assert done.returncode in (0, 1, 3), done.stderr
    report = json.loads(done.stdout)
    told = [one["text"] for host in report["hosts"] for one in host["missing"]]
    assert not [one for one in told if "Read-only file system" in one]
    assert "Read-only file system" not in done.stderr
    found = {one["check"]: one["status"] for host in report["hosts"] for one in host["results"]}
    assert [name for name in found if name.startswith("storage.")]
    assert not [name for name, status in found.items() if status == "ERROR"]


def test_what_would_write_says_where_it_cannot(tmp_path: Path) -> None:
    done = _sealed(tmp_path, "io-bench", "--dir", "/tmp", "--only", "io.*")
    assert done.returncode == 3, done.stderr
    told = " ".join(done.stdout.split())
    assert "no folder takes the payload: $TMPDIR: " in told
    assert "/tmp: Read-only file system" in told
    assert "df -h /tmp /dev/shm" in told
