"""Active work is alone on its host: who holds the lock or a GPU is told, and nothing begins."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from preflight import ship

PLAN = {"job": "", "interface": "lo", "even_if_busy": False}


@pytest.fixture(scope="module")
def payload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("payload") / "preflight.pyz"
    path.write_bytes(ship.pyz("group", "training", "stress"))
    return path


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Path]:
    """A lock that this process holds."""
    path = tmp_path / "lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield path


def told(payload: Path, lock: Path, *words: str, **more: str) -> dict[str, Any]:
    """The first line that the payload tells."""
    done = subprocess.run(
        [sys.executable, "-I", str(payload), *words], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PREFLIGHT_LOCK": str(lock), **more},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return first


def test_who_holds_the_lock_is_named_and_nothing_begins(payload: Path, lock: Path) -> None:
    line = told(payload, lock, "train", "--plan", "{}")
    assert line["kind"] == "busy"
    assert f"holds {lock}: process {os.getpid()} (" in line["text"]
    assert line["text"] in told(payload, lock, "site", "--plan", json.dumps(PLAN))["busy"]


def test_a_lock_that_nobody_holds_is_no_hindrance(payload: Path, tmp_path: Path) -> None:
    free = told(payload, tmp_path / "lock", "site", "--plan", json.dumps(PLAN))
    assert (free["busy"], (tmp_path / "lock").stat().st_mode & 0o777) == ("", 0o644)
    nowhere = tmp_path / "no" / "such" / "folder"
    assert told(payload, nowhere, "site", "--plan", json.dumps(PLAN))["busy"] == ""


def test_processes_of_one_job_do_not_stand_in_each_others_way(
    payload: Path, tmp_path: Path
) -> None:
    lock, job = tmp_path / "lock", "0123456789abcdef"
    hold = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, 2); print(1); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-uc", hold, str(lock), f'{{"job":"{job}"}}'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdout and other.stdout.readline()
        ours = told(payload, lock, "site", "--plan", json.dumps({**PLAN, "job": job}))
        theirs = told(payload, lock, "site", "--plan", json.dumps({**PLAN, "job": "another"}))
        other.communicate(b"\n")
    assert ours["busy"] == ""
    assert f"process {other.pid}" in theirs["busy"]


def test_a_site_tells_what_a_job_over_several_hosts_needs(payload: Path, tmp_path: Path) -> None:
    found = told(payload, tmp_path / "lock", "site", "--plan", json.dumps(PLAN))
    assert found["preflight"] == "micro-train-site/1"
    assert (found["address"], found["interface"], found["cannot"]) == ("127.0.0.1", "lo", "")
    for port in range(found["port"], found["port"] + 3):
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))
    assert found["torch"] and found["cores"] >= 1


def test_an_interface_without_an_address_is_told_with_those_that_are_there(
    payload: Path, tmp_path: Path
) -> None:
    plan = json.dumps({**PLAN, "interface": "ib7"})
    found = told(payload, tmp_path / "lock", "site", "--plan", plan)
    assert found["cannot"].startswith("there is no interface ib7; there are: ")
    assert "lo (" not in found["cannot"]  # it leads to nobody else


def test_without_torch_the_python_that_has_it_is_named(payload: Path, tmp_path: Path) -> None:
    other = tmp_path / "home" / "venv"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "python3").symlink_to(sys.executable)
    torch = other / "lib" / "python3.11" / "site-packages" / "torch"
    torch.mkdir(parents=True)
    (torch / "version.py").touch()
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True, timeout=60)
    done = subprocess.run(
        [bare / "bin" / "python3", "-I", payload, "train"], capture_output=True, text=True,
        timeout=60, env={"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    line = json.loads(done.stdout)
    assert (line["kind"], line["why"]) == ("cannot", "no-torch")
    assert f"has no torch; --python {other}/bin/python3" in line["text"]
