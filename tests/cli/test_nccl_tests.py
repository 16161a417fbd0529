"""`preflight nccl-bench --nccl-tests` as a user runs it on one host, on stand-ins of binaries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec import Struct
from msgspec.structs import replace

from preflight.capture import Reader
from preflight.cli.benches import plan_of
from preflight.cli.nccl_tests import instead
from preflight.cli.nccl_tests.asked import found_here, is_of_tests, questions
from preflight.cli.nccl_tests.job import Here
from preflight.cli.options import Options
from preflight.collect import examine_one_of_many
from preflight.errors import UsageError
from preflight.judge import load, overrides
from preflight.model import Command, Missing, Raw, Result, Status
from preflight.ship import SITE
from preflight.transports.local import Local
from tests import collective_text as text
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


def flat(told: str) -> str:
    return " ".join(told.split())


def test_what_is_measured_is_judged_and_judged_alike_from_the_capture(
    folder: str, gpus: dict[str, Any], tmp_path: Path
) -> None:
    kept = tmp_path / "kept.capture.gz"
    words = ("--collective", "all_to_all", "--collective", "all_reduce", *SIZES)
    ran = run(folder, *words, "--save", str(kept), **gpus, NCCL_IB_HCA="mlx5_0")
    assert ran.rc == 0, ran
    for name in ("alltoall", "all_reduce"):
        assert f"{name}: 2 ranks on 1 host, NVIDIA H100 80GB HBM3, by nccl-tests" in flat(ran.out)
    assert "excellent (18 NVLinks" in flat(ran.out)
    assert "NCCL 2.21.5 log" in flat(ran.out)
    again = preflight("nccl-bench", "--from", str(kept))
    assert again.rc == 0
    first, second = (one.partition("\nnext ")[0].splitlines()[1:] for one in (ran.out, again.out))
    assert first == second
    _, argv = [raw.argv for raw in Reader(kept.read_bytes(), "kept") if is_of_tests(raw)]
    assert argv == (
        "env", "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH", "NCCL_IB_HCA=mlx5_0",
        f"{folder}/all_reduce_perf", "-b", "1048576", "-e", "1073741824", "-f", "32", "-d",
        "float", "-c", "1", "-g", "2",
    )  # fmt: skip


def test_one_that_dies_in_the_middle_has_failed_and_says_why(
    folder: str, gpus: dict[str, Any]
) -> None:
    ran = run(folder, *ONE, **gpus, NCCL_STAND_IN="dies")
    assert ran.rc == 1
    assert "collectives.ended all_gather" in flat(ran.out)
    assert "Test NCCL failure common.cu:303" in flat(ran.out)
    assert "32 MiB" in ran.out and "1 GiB" not in ran.out


class Canned(Struct):
    """A transport to a host that has told what is given, and answers with the same text always."""

    site: dict[str, Any]
    answer: dict[str, Any]
    host: str = "here"

    def run(self, commands: Sequence[Command]) -> Iterator[Raw]:
        for one in commands:
            told = {"stdout": json.dumps(self.site)} if one.probe == SITE else self.answer
            yield Raw(self.host, one.probe, one.argv, **told)


def judged(site: dict[str, Any], answer: dict[str, Any], *names: str) -> dict[str, Result]:
    """What came of collectives.ended, by collective; where none was measured by the host."""
    plan = plan_of(Options(nccl_tests="/nt", collective=list(names)))
    asked = list(questions(plan, ("python3",)))
    raws = list(Here(Canned(site, answer), plan, ("python3",)).run(asked))
    return ends_of(raws)


def ends_of(raws: Sequence[Raw]) -> dict[str, Result]:
    checks = overrides.mark(load.load(("collectives",), []).checks, ["collectives.*"], asked=True)
    found = examine_one_of_many("here", raws, checks).report.results
    return {one.subject: one for one in found if one.check == "collectives.ended"}


def site(*names: str, **more: Any) -> dict[str, Any]:
    found = {
        f"{one}_perf": {"path": f"/nt/{one}_perf", "mpi": False, "cannot": ""} for one in names
    }
    return {"gpus": 8, "tests": {"cannot": "", "found": found}, "nccl": {}, **more}


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        ({"stdout": text.nccl_tests(), "rc": 9, "stderr": "----\nstrange words\n"}, Status.FAIL,
         "all_reduce_perf exited with 9: strange words"),
        ({"stdout": text.nccl_tests(wrong="7"), "rc": 1}, Status.PASS, ""),  # that is another check
        ({"stdout": ""}, Status.ERROR, "all_reduce_perf printed nothing, and exited with 0"),
        ({"stdout": "\ufffd\x07 strange\n" * 9}, Status.ERROR, "without a table of nccl-tests"),
        ({"stdout": "", "rc": 127, "stderr": "/nt/all_reduce_perf: error while loading shared "
          "libraries: libcudart.so.12: cannot open"}, Status.ERROR, "export LD_LIBRARY_PATH"),
        ({"stdout": "", "rc": 75, "stderr": "not started: GPU 3 holds process 4711"}, Status.ERROR,
         "not started: GPU 3 holds process 4711"),
    ],
)  # fmt: skip
def test_how_it_ended_counts_whatever_it_printed(
    answer: dict[str, Any], status: Status, reason: str
) -> None:
    found = judged(site("all_reduce"), answer, "all_reduce")["all_reduce"]
    assert found.status is status and reason in found.reason
    assert found.status is not Status.ERROR or found.fix


def test_one_that_is_not_there_is_told_and_the_others_are_measured() -> None:
    answer = {"stdout": text.nccl_tests()}
    found = judged(site("all_reduce"), answer, "all_reduce", "reduce")
    assert found["all_reduce"].status is Status.PASS
    assert found["reduce"].status is Status.ERROR
    assert "reduce_perf: it is not in /nt: `make` in nccl-tests" in found["reduce"].reason


@pytest.mark.parametrize(
    ("more", "status", "reason"),
    [
        ({"rc": 124, "elapsed_s": 600.0}, Status.FAIL, "did not end within 600 s; it said: srun"),
        ({"rc": None, "missing": Missing("timeout", "it was interrupted")}, Status.ERROR,
         "it was interrupted; it said: srun"),
    ],
)  # fmt: skip
def test_what_a_launcher_says_of_our_ending_it_is_not_the_cause(
    more: dict[str, Any], status: Status, reason: str
) -> None:
    raw = Raw("here", "nccl-tests", ("srun", "/nt/all_reduce_perf"), limit_s=600, **more,
              stdout=text.nccl_tests(ends=False), stderr="srun: error: n1: task 0: Terminated\n",
              )  # fmt: skip
    (found,) = ends_of([raw]).values()
    assert found.status is status and reason in found.reason


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (site(gpus=0), "no GPU can be used here; `nvidia-smi -L` lists"),
        (site(gpus=0, granted=""), "(CUDA_VISIBLE_DEVICES is '')"),
        (site(busy="GPU 0 holds process 4711 (alice)"), "GPU 0 holds process 4711 (alice)"),
        (site(tests={"cannot": "there is no folder /nt", "found": {}}), "there is no folder /nt"),
        (site(gpus=0, tests={"cannot": "there is no folder /nt", "found": {}}),
         "--nccl-tests FOLDER; and no GPU can be used here"),
        ({}, "it told nothing"),
    ],
)  # fmt: skip
def test_where_nothing_can_be_run_it_says_why(told: dict[str, Any], reason: str) -> None:
    (found,) = judged(told, {}, "all_reduce").values()
    assert found.status in (Status.ERROR, Status.SKIP) and reason in found.reason


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
    raws = here(folder, gpus, 4, collective=["all_reduce", "reduce"], end="1G")
    told = ends_of(raws)
    assert told["all_reduce"].status is Status.FAIL
    assert "all_reduce_perf did not end within" in told["all_reduce"].reason
    assert told["reduce"].status is Status.ERROR
    assert "hung for" in told["reduce"].reason and told["reduce"].fix
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


def test_without_a_gpu_nothing_hangs(folder: str, gpus: dict[str, Any]) -> None:
    ran = run(folder, *ONE, **{**gpus, "CUDA_VISIBLE_DEVICES": ""})
    assert ran.rc == 3
    assert "no GPU can be used here (CUDA_VISIBLE_DEVICES is '')" in flat(ran.out)


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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("absent", "there is no folder"), ("", "there is no all_gather_perf in"),
        ("file", "there is no folder"),
    ],
)  # fmt: skip
def test_a_folder_that_is_wrong_is_told_before_anything_is_done(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    ran = run(str(tmp_path / name), *ONE)
    assert (ran.rc, ran.out) == (2, "")
    assert text in flat(ran.err) and "hint:" in ran.err


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
