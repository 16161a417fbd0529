"""The payload as a file: how it is made, put somewhere, started, ended, and away again."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pytest

from preflight import ship
from preflight.errors import PreflightError
from tests.lab.nvml_library import nvml_library

PAYLOAD = Path(ship.__file__).parent / "payload"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return nvml_library(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def pyz(tmp_path: Path) -> Path:
    path = tmp_path / "preflight.pyz"
    path.write_bytes(ship.pyz("group", "training", "stress"))
    return path


def environment(library: str, script: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "LD_LIBRARY_PATH": library, "NVML_STAND_IN": script}


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_same_bytes_for_the_same_sources() -> None:
    first = ship.pyz("group", "training")
    ship.pyz.cache_clear()
    assert ship.pyz("group", "training") == first
    assert len(first) < 155_000
    assert len(ship.pyz()) < 100_000  # many hosts are watched at once


def test_what_is_in_it(pyz: Path) -> None:
    with zipfile.ZipFile(pyz) as archive:
        names = archive.namelist()
        assert {"__main__.py", "pynvml.py", "payload/main.py"} <= set(names)
        assert names == sorted(names)
        assert b"NVIDIA" in archive.read("pynvml.py")[:500]  # its licence travels with it


#: What trains may import, where a command needs it.
_OF_TRAINING = {"torch", "pyarrow", "numpy"}


@pytest.mark.parametrize("path", sorted(PAYLOAD.rglob("*.py")), ids=lambda path: path.name)
def test_it_needs_no_more_than_python_3_9_and_its_library(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            top = name.split(".")[0]
            more = set() if path.parent == PAYLOAD else _OF_TRAINING
            assert top in {*sys.stdlib_module_names, "pynvml", *more}, name


def test_a_machine_without_nvidia_ml_py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ship, "find_spec", lambda _: None)
    ship.pyz.cache_clear()
    with pytest.raises(PreflightError, match="nvidia-ml-py"):
        ship.pyz()
    ship.pyz.cache_clear()


def test_few_samples_of_a_long_watch_and_enough_of_a_short_one() -> None:
    asked = {seconds: ship.watch_command(seconds).argv[-1] for seconds in (1, 5, 60, 3600, 86400)}
    assert asked == {1: "0.2", 5: "1", 60: "1", 3600: "1", 86400: "24"}


@pytest.mark.lab
def test_by_hand(pyz: Path, library: str) -> None:
    argv = [sys.executable, str(pyz), "watch", "--seconds", "1", "--interval", "0.25"]
    done = subprocess.run(
        argv, env=environment(library, "2"), capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0
    told = lines(done.stdout)
    assert told[0] == {"preflight": "watch/1", "seconds": 1.0, "interval_s": 0.25,
                       "python": told[0]["python"]}  # fmt: skip
    assert told[1]["gpus"] == 2
    assert len([line for line in told if "sm_mhz" in line]) == 10 == told[-1]["samples"]
    assert told[-1]["end"] == "done"
    assert "a line that a library prints" in done.stderr
    assert pyz.exists()  # it is the user's


@pytest.mark.lab
def test_without_the_library(pyz: Path, tmp_path: Path) -> None:
    argv = [sys.executable, str(pyz), "watch", "--seconds", "1"]
    done = subprocess.run(
        argv, env=environment(str(tmp_path), ""), capture_output=True, text=True, timeout=30
    )
    told = lines(done.stdout)
    assert (done.returncode, told[-1]["error"]) == (3, "NVML_ERROR_LIBRARY_NOT_FOUND")


def started(pyz: Path, library: str, script: str = "4") -> subprocess.Popen[str]:
    argv = [sys.executable, str(pyz), "watch", "--seconds", "60", "--interval", "0.2"]
    process = subprocess.Popen(
        argv, env=environment(library, script), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout
    for line in process.stdout:
        if "sm_mhz" in line:
            break
    return process


def gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=5)
    return not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.lab
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_says_so_and_ends_all(pyz: Path, library: str, number: int) -> None:
    process = started(pyz, library)
    children = psutil.Process(process.pid).children()
    assert len(children) == 4
    process.send_signal(number)
    out, _ = process.communicate(timeout=10)
    assert lines(out)[-1]["end"] == "interrupted"
    assert process.returncode == 130
    assert gone(children)


@pytest.mark.lab
def test_killed_it_takes_its_workers_along(pyz: Path, library: str) -> None:
    process = started(pyz, library)
    children = psutil.Process(process.pid).children()
    process.kill()
    process.communicate(timeout=10)
    assert len(children) == 4
    assert gone(children)


@pytest.mark.lab
def test_nobody_reads_any_more(pyz: Path, library: str) -> None:
    process = started(pyz, library)
    assert process.stdout
    children = psutil.Process(process.pid).children()
    process.stdout.close()
    assert process.wait(timeout=10) == 130
    assert gone(children)


@pytest.mark.lab
def test_its_launcher_is_killed(pyz: Path, library: str) -> None:
    run = f"{sys.executable} {pyz} watch --seconds 60 --interval 0.2; true"
    shell = subprocess.Popen(
        ["sh", "-c", run], env=environment(library, "2"), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    family: list[psutil.Process] = []
    until = time.monotonic() + 10
    while len(family) < 3 and time.monotonic() < until:
        family = psutil.Process(shell.pid).children(recursive=True)
        time.sleep(0.05)
    assert len(family) == 3
    shell.kill()
    shell.wait(timeout=10)
    assert gone(family)


def launch(folders: str, tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """What the launcher does, with a payload that tells where it lies, how, and its names."""
    archive = tmp_path / "probe.zip"
    tell = (
        "import os, sys\n"
        "there = os.stat(sys.argv[0])\n"
        "print(os.readlink(sys.argv[0]), sys.argv[1:], oct(there.st_mode), there.st_nlink)\n"
    )
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("__main__.py", tell)
    data = archive.read_bytes()
    program = ship._LAUNCH.format(
        data=base64.b64encode(data).decode(), digest=hashlib.sha256(data).hexdigest(),
        folders=folders,
    )  # fmt: skip
    return subprocess.run(
        [sys.executable, "-I", "-", "a", "b"], input=program, env={**os.environ, **env},
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip


def test_the_first_folder_that_takes_it_has_it_without_a_name(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    done = launch('("$NOWHERE", "/proc", "$TAKEN")', tmp_path, TAKEN=str(taken))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{taken}/")
    assert done.stdout.rstrip().endswith("(deleted) ['a', 'b'] 0o100600 0")
    assert list(taken.iterdir()) == []


def test_no_folder_takes_it(tmp_path: Path) -> None:
    done = launch('("/proc", "/nowhere")', tmp_path)
    assert done.returncode == 4
    assert done.stderr.startswith("no folder takes the payload: /proc: ")


def test_an_older_python_is_told_so() -> None:
    old = ship._LAUNCH.replace("(3, 9)", "(99, 0)")
    done = subprocess.run([sys.executable, "-"], input=old, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (4, "")
    assert "name another: --python" in done.stderr
