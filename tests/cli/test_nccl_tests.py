"""`preflight nccl-bench --nccl-tests` as a user runs it on one host, on stand-ins of binaries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from preflight.cli.benches import plan_of
from preflight.cli.nccl_tests import instead
from preflight.cli.nccl_tests.asked import found_here, questions
from preflight.cli.nccl_tests.job import Here
from preflight.cli.options import Options
from preflight.collect import examine_one_of_many
from preflight.errors import UsageError
from preflight.judge import load
from preflight.model import Raw, Status
from preflight.transports.local import Local
from tests.cli.command import Ran, preflight
from tests.lab.nccl_perf import binaries
from tests.lab.nvml_library import nvml_library

SIZES = ("-b", "1M", "-e", "1G", "-f", "32")
ONE = ("--collective", "all_gather", *SIZES)


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a host with two GPUs at rest."""
    folder = tmp_path_factory.mktemp("gpus")
    return {
        "LD_LIBRARY_PATH": nvml_library(folder / "nvml"), "NVML_STAND_IN": "2 0:idle 1:idle",
        "PREFLIGHT_LOCK": str(folder / "lock"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(binaries(tmp_path_factory.mktemp("nccl-tests")))


def run(folder: str, *words: str, **env: Any) -> Ran:
    return preflight(
        "nccl-bench", "--nccl-tests", folder, "--python", sys.executable, *words, **env
    )


def results(report: str) -> dict[str, Any]:
    (host,) = json.loads(report)["hosts"]
    return {one["check"]: one for one in host["results"]}


def flat(told: str) -> str:
    return " ".join(told.split())


def test_all_collectives_are_measured_judged_and_judged_alike_from_the_capture(
    folder: str, gpus: dict[str, Any], tmp_path: Path
) -> None:
    kept = tmp_path / "kept.capture.gz"
    ran = run(folder, *SIZES, "--save", str(kept), **gpus)
    assert ran.rc == 0, ran
    for name in ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce",
                 "sendrecv"):  # fmt: skip
        assert f"{name}: 2 ranks on 1 host, NVIDIA H100 80GB HBM3, by nccl-tests" in flat(ran.out)
    assert "excellent (18 NVLinks" in flat(ran.out)
    again = preflight("nccl-bench", "--from", str(kept))
    assert again.rc == 0
    assert again.out.splitlines()[1:] == ran.out.splitlines()[1:]


def test_what_nccl_told_meanwhile_is_judged_and_what_was_in_force_is_kept(
    folder: str, gpus: dict[str, Any], tmp_path: Path
) -> None:
    kept = tmp_path / "kept.capture.gz"
    words = ("--collective", "all_reduce", *SIZES, "--format", "json", "--save", str(kept))
    told = results(run(folder, *words, **gpus, NCCL_IB_HCA="mlx5_0").out)
    assert told["nccl.versions"]["status"] == "PASS"
    assert told["collectives.wrong"]["measured"] == 0
    listed = subprocess.run(["zcat", kept], capture_output=True, text=True, check=True).stdout
    raws = [json.loads(line) for line in listed.splitlines()]
    (argv,) = [one["argv"] for one in raws if one.get("probe") == "nccl-tests"]
    assert argv[:4] == ["env", "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH",
                        "NCCL_IB_HCA=mlx5_0"]  # fmt: skip
    assert argv[4:] == [f"{folder}/all_reduce_perf", "-b", "1048576", "-e", "1073741824", "-f",
                        "32", "-d", "float", "-c", "1", "-g", "2"]  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "rc", "check", "text"),
    [
        ("dies", 1, "collectives.ended", "Test NCCL failure common.cu:303"),
        ("wrong", 1, "collectives.wrong", "14, expected at most 0"),
        ("status", 1, "collectives.ended", "all_gather_perf exited with 9"),
        ("silent", 3, "collectives.ended", "expected a table of nccl-tests"),
    ],
)
def test_what_goes_wrong_is_told(
    folder: str, gpus: dict[str, Any], mode: str, rc: int, check: str, text: str
) -> None:
    ran = run(folder, *ONE, **gpus, NCCL_STAND_IN=mode)
    assert ran.rc == rc
    assert check in ran.out and text in flat(ran.out)


def here(folder: str, gpus: dict[str, Any], limit_s: int, **options: Any) -> list[Raw]:
    """The answers of this machine, each question with so much time."""
    plan = plan_of(Options(nccl_tests=folder, **options))
    pair = ["env", *(f"{name}={text}" for name, text in gpus.items()), sys.executable]
    asked = [replace(one, timeout_s=limit_s) for one in questions(plan, tuple(pair))]
    return list(Here(Local("here", 60), plan, tuple(pair)).run(asked))


def test_one_that_hangs_has_failed_and_the_others_are_not_asked(
    folder: str, gpus: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_STAND_IN", "hang")
    raws = here(folder, gpus, 2, collective=["all_reduce", "reduce"], end="1G")
    checks = [one for one in load.load(("collectives",), []).checks if one.across != "fleet"]
    found = examine_one_of_many("here", raws, checks).report
    told = {one.subject: one for one in found.results if one.check == "collectives.ended"}
    assert told["all_reduce"].status is Status.FAIL
    assert "all_reduce_perf did not end within" in told["all_reduce"].reason
    assert told["reduce"].status is Status.ERROR
    assert "hung for" in told["reduce"].reason
    assert not _running(folder)


def _running(folder: str) -> list[psutil.Process]:
    return [one for one in psutil.process_iter() if _is_of(one, folder)]


def _is_of(process: psutil.Process, folder: str) -> bool:
    try:
        return any(folder in word and "_perf" in word for word in process.cmdline())
    except psutil.Error:
        return False


def test_interrupted_nothing_is_left_running(
    folder: str, gpus: dict[str, Any], tmp_path: Path
) -> None:
    words = ["nccl-bench", "--nccl-tests", folder, "--python", sys.executable, *ONE]
    ran = subprocess.Popen(
        [sys.executable, "-m", "preflight", *words], cwd=tmp_path, stderr=subprocess.PIPE,
        env={**os.environ, **gpus, "NCCL_STAND_IN": "hang"}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    until_s = time.monotonic() + 20
    while not any("-g" in one.cmdline()[-2:] for one in _running(folder)):
        assert time.monotonic() < until_s and ran.poll() is None
        time.sleep(0.05)
    ran.send_signal(signal.SIGINT)
    assert b"answers are saved" in ran.communicate(timeout=20)[1]
    assert ran.returncode == 130 and not _running(folder)


def test_one_that_is_not_there_is_told_and_the_others_are_measured(
    gpus: dict[str, Any], tmp_path: Path
) -> None:
    folder = str(binaries(tmp_path / "nt", names=["all_reduce_perf"]))
    ran = run(folder, "--collective", "all_reduce", "--collective", "reduce", *SIZES, **gpus)
    assert "all_reduce: 2 ranks" in ran.out
    assert ran.rc == 3
    assert f"collectives.ended reduce reduce_perf: it is not in {folder}: `make`" in flat(ran.out)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"NVML_STAND_IN": "0"}, "no GPU can be used here; `nvidia-smi -L` lists"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "(CUDA_VISIBLE_DEVICES is '')"),
        ({"NVML_STAND_IN": "2"}, "GPU 0 is 99 % in use"),
    ],
)
def test_without_a_gpu_that_is_free_it_is_not_begun(
    folder: str, gpus: dict[str, Any], more: dict[str, str], text: str
) -> None:
    ran = run(folder, *ONE, **{**gpus, **more})
    assert "PASS" not in ran.out and ran.rc in (0, 3)
    assert text in flat(ran.out)


def test_a_folder_that_is_none_is_told(gpus: dict[str, Any], tmp_path: Path) -> None:
    ran = run(str(tmp_path / "none"), *ONE, **gpus)
    assert ran.rc == 3
    assert f"there is no folder {tmp_path}/none" in flat(ran.out)


def test_a_dry_run_prints_the_command_line_and_runs_nothing(folder: str) -> None:
    ran = run(folder, *ONE, "--dry-run")
    assert ran.rc == 0
    assert f"  env NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH {folder}/all_gather_perf " \
           "-b 1048576 -e 1073741824 -f 32 -d float -c 1 -g GPUS\n" in ran.out  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"pairwise": True}, "--pairwise is of the bundled engine"),
        ({"repeats": 9}, "--repeats is of the bundled engine"),
        ({"from_": ["x"]}, "--from reads what was recorded"),
        ({"nccl_tests": " "}, "is no folder"),
    ],
)
def test_what_cannot_be_is_refused(asked: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        plan_of(Options(**{"nccl_tests": "/nt", **asked}))


def test_without_torch_it_is_taken_where_it_is_found(
    gpus: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = binaries(tmp_path / "build")
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    ran = preflight("nccl-bench", "--python", str(bare), *ONE, cwd=tmp_path, **gpus)
    assert f"measured by nccl-tests, which is in {folder}" in flat(ran.err)
    assert "by nccl-tests" in ran.out
    monkeypatch.chdir(tmp_path)
    assert found_here() == str(folder)
    told = instead.with_engine(Options(dry_run=True), ("python3",), None)  # type: ignore[arg-type]
    assert told.nccl_tests is None
