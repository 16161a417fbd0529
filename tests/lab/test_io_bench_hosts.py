"""preflight io-bench on several hosts at once, by a real sshd."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import require
from tests.lab.ssh_hosts import LabHost
from tests.lab.sshd import lab

pytestmark = pytest.mark.lab
_PYTHON = 'exec env PREFLIGHT_LOCK={lock} {python} "$@"'
_BARE = 'echo "python3: not found" >&2; exit 127'
JOB = "[a]\nrw=write\nbs=1m\nsize=16m\ndirect=0\nend_fsync=1\n"


def test_each_in_a_directory_of_its_own_and_the_one_that_cannot_is_told(tmp_path: Path) -> None:
    require("fio", shutil.which("fio") is not None)
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "lab").mkdir()
    (tmp_path / "my.fio").write_text(JOB)
    hosts = {
        name: LabHost(user="root", tools={
            "python3": _PYTHON.format(lock=tmp_path / f"{name}.lock", python=sys.executable)
        })
        for name in ("node-1", "node-2")
    }  # fmt: skip
    with lab(tmp_path / "lab", {**hosts, "bare": LabHost(tools={"python3": _BARE})}) as made:
        done = made.preflight(
            "io-bench", "--hosts", "node-1,node-2,bare", "--dir", str(data),
            "--job", str(tmp_path / "my.fio"), "--only", "io.*", "--format", "json",
        )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "on each of 3 hosts" in done.stderr
    report = json.loads(done.stdout)
    assert {one["host"]: one["verdict"] for one in report["hosts"]} == {
        "node-1": "PASS", "node-2": "PASS", "bare": "ERROR",
    }  # fmt: skip
    assert [one["host"] for one in report["measurements"]] == ["node-1", "node-2"]
    assert list(data.iterdir()) == []


def test_objects_of_each_host_are_its_own(tmp_path: Path) -> None:
    require("fsspec", find_spec("fsspec") is not None)
    data = tmp_path / "data"
    data.mkdir()
    (data / "theirs").write_text("x")
    (tmp_path / "lab").mkdir()
    hosts = {
        name: LabHost(user="root", tools={
            "python3": _PYTHON.format(lock=tmp_path / f"{name}.lock", python=sys.executable)
        })
        for name in ("node-1", "node-2")
    }  # fmt: skip
    with lab(tmp_path / "lab", hosts) as made:
        done = made.preflight(
            "io-bench", "--hosts", "node-1,node-2", "--url", f"file://{data}", "--size", "64M",
            "--runtime", "2s", "--format", "json",
        )  # fmt: skip
    assert "on each of 2 hosts" in done.stderr
    report = json.loads(done.stdout)
    reached = [one for host in report["hosts"] for one in host["results"]
               if one["check"] == "objects.reached"]  # fmt: skip
    assert [one["status"] for one in reached] == ["PASS", "PASS"]
    assert [one["host"] for one in report["measurements"]] == ["node-1", "node-2"]
    assert [one.name for one in data.iterdir()] == ["theirs"]
