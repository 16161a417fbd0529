"""nccl-tests over real launchers: mpirun between hosts of an sshd, srun between nodes of Slurm."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.lab.nccl_perf import binaries
from tests.lab.nvml_library import nvml_library
from tests.lab.slurm import slurm
from tests.lab.ssh_hosts import LabHost
from tests.lab.sshd import lab as lab_of

pytestmark = pytest.mark.lab

WORDS = ("--collective", "all_reduce", "-b", "1M", "-e", "1G", "-f", "32", "--format", "json",
         "--skip", "network.*")  # fmt: skip


def python(folder: Path, gpus: Mapping[str, str]) -> str:
    """A Python on whose hosts there are so many GPUs, all at rest."""
    library = nvml_library(folder / "nvml")
    cases = "".join(f"{host}) export NVML_STAND_IN='{told}' ;;\n" for host, told in gpus.items())
    path = folder / "python"
    path.write_text(
        f"#!/bin/sh\nexport LD_LIBRARY_PATH={library}\n"
        f'case "$PREFLIGHT_HOST" in\n{cases}esac\nexec {sys.executable} "$@"\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return str(path)


def checks(report: str, host: str) -> dict[str, Any]:
    hosts = {one["host"]: one for one in json.loads(report)["hosts"]}
    return {one["check"]: one for one in hosts[host]["results"]}


def passed(report: str, host: str) -> set[str]:
    return {name for name, one in checks(report, host).items() if one["status"] == "PASS"}


SOUND = {f"collectives.{one}" for one in ("ended", "together", "wrong")}


def test_mpirun_reaches_the_hosts_by_ssh(tmp_path: Path) -> None:
    mpirun = shutil.which("mpirun")
    told = mpirun and subprocess.run([mpirun, "--version"], capture_output=True, check=False).stdout
    if not (told and b"Open MPI" in told):
        pytest.skip("Open MPI is not here; a stand-in for it is, in tests/cli")
    tmp_path.chmod(0o755)
    folder = binaries(tmp_path / "nt", mpi=True)
    sleeper = python(tmp_path, {"h1": "2 0:idle 1:idle", "h2": "1 0:idle"})
    (tmp_path / "lab").mkdir()
    with lab_of(tmp_path / "lab", {"h1": LabHost(user="root"), "h2": LabHost(user="root")}) as lab:
        ran = lab.preflight(
            "nccl-bench", "--hosts", lab.names, "--nccl-tests", str(folder), "--python", sleeper,
            *WORDS, env={"PREFLIGHT_LOCK": str(tmp_path / "lock"), "TMPDIR": "/tmp"},
        )  # fmt: skip
    assert ran.returncode == 3, ran
    assert {name for name, one in checks(ran.stdout, "h1").items() if one["status"] == "ERROR"} == {
        "collectives.busbw"  # what these GPUs and their network can do is not known
    }
    assert passed(ran.stdout, "h1") >= SOUND
    even = checks(ran.stdout, "h1")["collectives.even"]
    first, second = (lab.places[name].address for name in ("h1", "h2"))
    assert (even["status"], even["reason"]) == ("WARN", f"{first} 2, {second} 1")
    reason = checks(ran.stdout, "h2")["collectives.ended"]["reason"]
    assert reason == "nccl-tests: measured with the others, told by h1"


def test_srun_starts_a_rank_for_each_gpu_in_an_allocation(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    require("srun", bool(shutil.which("srun")))
    folder = binaries(tmp_path / "nt", mpi=True)
    sleeper = python(tmp_path, {"n1": "2 0:idle 1:idle", "n2": "1 0:idle"})
    short = tmp_path_factory.mktemp("s")  # a socket of Slurm's PMI-2 has 108 bytes for its path
    with slurm(short / "s", ("n1", "n2")) as cluster:
        for node in cluster.nodes:
            cluster.tool(node, "hostname", f"echo {node}")
        env = {**cluster.environment, "SLURM_MPI_TYPE": "pmi2", "TMPDIR": "/tmp",
               "PREFLIGHT_LOCK": str(tmp_path / "lock")}  # fmt: skip
        ran = subprocess.run(
            ["salloc", "-Q", "-N2", "-w", "n1,n2", sys.executable, "-m", "preflight", "nccl-bench",
             "--slurm", "--nccl-tests", str(folder), "--python", sleeper, *WORDS],
            env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert ran.returncode == 3, ran
    assert {name for name, one in checks(ran.stdout, "n1").items() if one["status"] == "ERROR"} == {
        "collectives.busbw"  # what these GPUs and their network can do is not known
    }
    assert passed(ran.stdout, "n1") >= SOUND
    (table,) = json.loads(ran.stdout)["measurements"]
    assert table["table"].startswith("all_reduce: 3 ranks on 2 hosts")
    assert checks(ran.stdout, "n1")["collectives.even"]["reason"] == "n1 2, n2 1"
