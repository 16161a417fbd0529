"""`--duration` on a live host whose NVML is ours: what each way of a GPU to go wrong is told as."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.inputs import gpus_like
from tests.cli.command import PREFLIGHT, Ran, preflight, replaying, with_tool
from tests.conftest import sample
from tests.lab.frozen import frozen_directory
from tests.lab.nvml_library import nvml_library
from tests.lab.pci import machine_with_gpus

SOUND = gpus_like(sample("nvidia_smi_xml/rtx3060_570.124.xml"))
ALL_8 = [f"gpu{n}" for n in range(8)]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The library by what it is: as new drivers have it, as old ones, absent."""
    base = tmp_path_factory.mktemp("nvml")
    return {
        "new": nvml_library(base / "new"),
        "old": nvml_library(base / "old", old=True),
        "absent": str(base / "absent"),
    }


def watched(folder: Path, library: str, script: str, *arguments: str, **more: Any) -> Ran:
    """gpu-health of eight GPUs, watched for five seconds."""
    return preflight(
        "gpu-health", "--duration", "5s", "--format", "json", *arguments,
        PATH=replaying(folder, SOUND), LD_LIBRARY_PATH=library, NVML_STAND_IN=script, **more,
    )  # fmt: skip


def results(ran: Ran, *statuses: str) -> dict[str, list[str]]:
    """The subjects by check, of results with one of these statuses, of the watch alone."""
    found: dict[str, list[str]] = {}
    for one in json.loads(ran.out)["hosts"][0]["results"]:
        if one["status"] in statuses and one["check"].startswith("live."):
            found.setdefault(one["check"], []).append(one["subject"])
    return found


def facts(ran: Ran) -> dict[str, Any]:
    watch: dict[str, Any] = json.loads(ran.out)["hosts"][0]["facts"]["watch"]
    return watch


def errors(ran: Ran) -> list[dict[str, Any]]:
    """What could not be determined of the watch; the rest of the machine is not ours."""
    found = json.loads(ran.out)["hosts"][0]["results"]
    return [one for one in found if one["status"] == "ERROR" and one["check"].startswith("live.")]


@pytest.mark.lab
def test_eight_sound_gpus_pass(tmp_path: Path, libraries: dict[str, str]) -> None:
    capture = tmp_path / "x.capture.gz"
    ran = watched(tmp_path, libraries["new"], "8", "--save", str(capture))
    assert (ran.rc, results(ran, "FAIL", "WARN", "ERROR")) == (0, {})
    passed = results(ran, "PASS")
    for name in ("answers", "throttle.power_brake", "ecc.uncorrected", "nvlink.recoveries",
                 "temperature.margin", "pcie.replays"):  # fmt: skip
        assert passed[f"live.{name}"] == ALL_8, name
    gpu = facts(ran)["gpus"][0]
    assert gpu["samples"] == 6
    assert gpu["power_w"]["mean"] == 690
    assert gpu["throttle"]["sw_power_cap_percent"] == 100
    assert facts(ran)["ended"] == "done"
    # Five seconds are too short for a comparison of means.
    assert "live.power.peers" in results(ran, "SKIP")
    again = preflight("gpu-health", "--from", str(capture), "--format", "json")
    assert results(again, "PASS") == passed


@pytest.mark.lab
@pytest.mark.parametrize(
    ("script", "status", "expected"),
    [
        ("8 3:lost@2", "FAIL", {"live.answers": ["gpu3"]}),
        ("8 3:lost", "FAIL", {"live.answers": ["gpu3"]}),
        ("8 1:brake 2:locked 3:hot", "FAIL",
         {"live.throttle.power_brake": ["gpu1"], "live.clock.locked": ["gpu2"],
          "live.throttle.hw_thermal": ["gpu3"]}),
        ("8 6:ecc@2 7:link@2", "FAIL",
         {"live.ecc.uncorrected": ["gpu6"], "live.nvlink.recoveries": ["gpu7"]}),
        ("2 0:replays@2 1:idle", "WARN",
         {"live.pcie.replays": ["gpu0"], "live.load.even": ["gpu1"]}),
        ("8 2:crash@2", "ERROR", {"live.answers": ["gpu2"]}),
    ],
)  # fmt: skip
def test_each_fault_is_told_and_no_other(
    tmp_path: Path, libraries: dict[str, str], script: str, status: str,
    expected: dict[str, list[str]],
) -> None:  # fmt: skip
    began = time.monotonic()
    ran = watched(tmp_path, libraries["new"], script)
    assert time.monotonic() - began < 20
    assert results(ran, status) == expected
    assert ran.rc == {"FAIL": 1, "WARN": 0, "ERROR": 3}[status]
    worse = {"FAIL": (), "ERROR": ("FAIL",), "WARN": ("FAIL", "ERROR")}[status]
    assert results(ran, *worse) == {}
    if status == "FAIL":
        report = json.loads(ran.out)["hosts"][0]["results"]
        failed = [one for one in report if one["status"] == "FAIL"]
        assert all('"gpu":' + one["subject"][3:] in one["evidence"][0]["text"] for one in failed)


@pytest.mark.lab
def test_one_gpu_that_hangs_holds_up_neither_the_others_nor_the_end(
    tmp_path: Path, libraries: dict[str, str]
) -> None:
    began = time.monotonic()
    ran = watched(tmp_path, libraries["new"], "8 5:hang@2")
    assert time.monotonic() - began < 30
    assert (ran.rc, results(ran, "FAIL")) == (1, {"live.hangs": ["gpu5"]})
    assert {gpu["samples"] for gpu in facts(ran)["gpus"] if gpu["index"] != 5} == {6}
    assert "no answer for" in ran.out


@pytest.mark.lab
def test_one_gpu_in_uninterruptible_sleep(tmp_path: Path, libraries: dict[str, str]) -> None:
    with frozen_directory(tmp_path) as frozen:
        began = time.monotonic()
        ran = watched(tmp_path / "bin", libraries["new"], f"8 5:frozen@2={frozen}")
        assert time.monotonic() - began < 30
        assert (ran.rc, results(ran, "FAIL")) == (1, {"live.hangs": ["gpu5"]})
        assert "uninterruptible sleep" in ran.out


@pytest.mark.lab
def test_an_old_driver_lacks_functions(tmp_path: Path, libraries: dict[str, str]) -> None:
    ran = watched(tmp_path, libraries["old"], "8 1:brake")
    assert results(ran, "FAIL") == {"live.throttle.power_brake": ["gpu1"]}
    # What it does not tell follows from the card's limit.
    assert results(ran, "PASS")["live.temperature.margin"] == ALL_8


@pytest.mark.lab
@pytest.mark.parametrize(
    ("library", "script", "reason"),
    [("absent", "8", "libnvidia-ml.so.1 is not there"), ("new", "mismatch", "MISMATCH")],
)
def test_a_library_that_is_absent_or_refuses(
    tmp_path: Path, libraries: dict[str, str], library: str, script: str, reason: str
) -> None:
    under = machine_with_gpus(tmp_path, 8)
    ran = watched(tmp_path, libraries[library], script, under=under)
    assert ran.rc == 3
    assert results(ran, "PASS", "FAIL", "WARN", "SKIP") == {}
    found = errors(ran)
    assert {reason in one["reason"] for one in found} == {True}


@pytest.mark.lab
@pytest.mark.parametrize(
    ("python", "reason"),
    [
        ("no-such-python", "no-such-python is not installed; another: --python 'CMD'"),
        ("sh -c 'echo Python 3.9 or later is needed >&2; exit 4'", "Python 3.9 or later is needed"),
    ],
)
def test_no_python_there(
    tmp_path: Path, libraries: dict[str, str], python: str, reason: str
) -> None:
    under = machine_with_gpus(tmp_path, 8)
    ran = watched(tmp_path, libraries["new"], "8", "--python", python, under=under)
    assert ran.rc == 3
    found = errors(ran)
    assert {reason in one["reason"] for one in found} == {True}


@pytest.mark.lab
def test_a_command_that_starts_python_there(tmp_path: Path, libraries: dict[str, str]) -> None:
    path = with_tool(tmp_path / "inside", "enter", 'shift; exec "$@"')
    folder = path.split(":")[0]
    ran = watched(tmp_path, libraries["new"], "8", "--python", f"{folder}/enter x.sif python3")
    assert (ran.rc, results(ran, "PASS")["live.answers"]) == (0, ALL_8)


def test_without_duration_nothing_is_watched(tmp_path: Path) -> None:
    ran = preflight("gpu-health", "--format", "json", PATH=replaying(tmp_path, SOUND))
    found = {
        one["reason"]
        for one in json.loads(ran.out)["hosts"][0]["results"]
        if one["check"].startswith("live.")
    }
    assert found == {"needs --duration, such as --duration 60s"}


def test_dry_run_shows_bytes_seconds_and_places() -> None:
    ran = preflight("gpu-health", "--duration", "90s", "--dry-run")
    (line,) = [line for line in ran.out.splitlines() if " watch " in line]
    assert "at most 150 s" in line
    for told in ("python3 -I - watch --seconds 90 --interval 1", "90 s", "KiB", "/dev/shm"):
        assert told in line
    assert "at most 210 s in all" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--duration", "0.5s"], "out of range"),
        (["--duration", "2d"], "out of range"),
        (["--duration", "soon"], "not a duration"),
        (["--duration", "5s", "--from", "x"], "leave one of them out"),
        (["--duration", "5s", "--python", ""], "is no command"),
        (["--duration", "5s", "--python", "'"], "is no command"),
    ],
)
def test_what_cannot_be_watched(arguments: list[str], said: str) -> None:
    ran = preflight("gpu-health", *arguments)
    assert (ran.rc, ran.out) == (2, "")
    assert said in ran.err


@pytest.mark.lab
def test_an_interrupted_watch_is_kept_and_judged(tmp_path: Path, libraries: dict[str, str]) -> None:
    capture = tmp_path / "half.capture.gz"
    env = {**os.environ, "PATH": replaying(tmp_path, SOUND), "NVML_STAND_IN": "8 1:brake",
           "LD_LIBRARY_PATH": libraries["new"]}  # fmt: skip
    argv = [str(PREFLIGHT), "gpu-health", "--duration", "60s", "--save", str(capture)]
    with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True) as process:
        wait_for_workers(process.pid, 8)
        time.sleep(8)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, "are saved" in said) == (130, True)
    ran = preflight("gpu-health", "--from", str(capture), "--format", "json")
    assert facts(ran)["ended"] == "cut"
    assert results(ran, "FAIL") == {"live.throttle.power_brake": ["gpu1"]}
    assert results(ran, "ERROR")["live.ecc.uncorrected"] == ALL_8


def wait_for_workers(pid: int, count: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        family = psutil.Process(pid).children(recursive=True)
        with suppress(psutil.Error):  # one may end meanwhile
            if sum("-I" in each.cmdline() for each in family) > count:
                return
        time.sleep(0.1)
    raise AssertionError("the watch did not begin")


@pytest.mark.lab
def test_nothing_is_left_behind(tmp_path: Path, libraries: dict[str, str]) -> None:
    places = tmp_path / "places"
    places.mkdir()
    watched(tmp_path, libraries["new"], "8 5:hang@2", TMPDIR=str(places), HOME=str(places))
    assert os.listdir(places) == []  # noqa: PTH208
