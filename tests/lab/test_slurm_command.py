"""The command under a real Slurm: what is asked, what the report says, and its exit status."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.lab.slurm import Cluster, slurm

pytestmark = pytest.mark.lab

ONE, TWO = "tesla_t4_515.105.xml", "rtx_a5000_x2_nvlink_590.44_v13.xml"
SALLOC = ("salloc", "-Q", "-N", "3", "-w", "n1,n2,n3")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with slurm(tmp_path_factory.mktemp("slurm") / "lab") as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    """Each node has a name of its own, and one GPU; n2 has two."""
    for node in shared.nodes:
        shared.tool(node, "hostname", f"echo {node}")
        xml = SAMPLES / "nvidia_smi_xml" / (TWO if node == "n2" else ONE)
        smi = f'case "$*" in "-q -x") exec cat {xml} ;; *) exit 1 ;; esac'
        shared.tool(node, "nvidia-smi", smi)
    yield shared
    shared.mend()


def _started(cluster: Cluster, *words: str, under: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*under, sys.executable, "-m", "preflight", *words], env=cluster.environment,
        cwd=cluster.base, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _run(cluster: Cluster, *words: str, under: tuple[str, ...] = ()) -> tuple[int, str, str]:
    process = _started(cluster, *words, under=under)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def _judged(report: str) -> dict[str, Any]:
    return {host["host"]: host for host in json.loads(report)["hosts"]}


def test_in_an_allocation_each_node_is_judged_and_what_failed_can_be_drained(
    cluster: Cluster,
) -> None:
    count = ("gpu-health", "--slurm", "--only", "gpu.count", "--set", "gpu.count=2")
    status, out, _ = _run(cluster, *count, "--format", "json", under=SALLOC)
    assert status == 1
    verdicts = {name: host["verdict"] for name, host in _judged(out).items()}
    assert verdicts == {"n1": "FAIL", "n2": "PASS", "n3": "FAIL"}
    line = 'scontrol update nodename="n[1,3]" state=drain reason="preflight: gpu.count"'
    assert line in json.loads(out)["hints"]
    assert set(cluster.command("sinfo", "-h", "-o", "%T").split()) == {"idle"}  # printed, not run


def test_outside_one_srun_gets_the_nodes(cluster: Cluster) -> None:
    words = ("gpu-health", "--slurm", "--slurm-args", "-p all -N 4", "--only", "gpu.count")
    status, out, _ = _run(cluster, *words, "--set", "gpu.count=1", "--format", "json")
    verdicts = {name: host["verdict"] for name, host in _judged(out).items()}
    assert verdicts == {"n1": "PASS", "n2": "FAIL", "n3": "PASS", "n4": "PASS"}
    assert status == 1


def test_a_drained_node_is_named_with_its_reason_and_the_others_judged(cluster: Cluster) -> None:
    cluster.command("scontrol", "update", "nodename=n4", "state=drain", "reason=fan broken")
    words = ("gpu-health", "--slurm", "--hosts", "n[1,3-4,9]", "--only", "gpu.count")
    status, out, _ = _run(cluster, *words, "--set", "gpu.count=1", "--format", "json")
    hosts = _judged(out)
    assert {name: host["verdict"] for name, host in hosts.items()} == {
        "n1": "PASS", "n3": "PASS", "n4": "ERROR", "n9": "ERROR",
    }  # fmt: skip
    (drained,) = hosts["n4"]["missing"]
    assert drained["fault"] == "node-drained"
    assert "fan broken" in drained["text"]
    assert hosts["n9"]["missing"][0]["fault"] == "node-unknown"
    assert status == 3


def test_interrupted_what_came_is_reported(cluster: Cluster) -> None:
    cluster.tool("n3", "nvidia-smi", "exec sleep 976")
    words = ("gpu-health", "--slurm", "--slurm-args", "-N 4", "--format", "json")
    process = _started(cluster, *words, "--only", "gpu.count", "--set", "gpu.count=1")
    cluster.wait(lambda: len(cluster.tasks("n3")) > 1, "the hanging tool")
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    hosts = _judged(out)
    assert sorted(hosts) == ["n1", "n2", "n3", "n4"]
    assert hosts["n3"]["missing"][0]["fault"] == "interrupted"
    assert hosts["n1"]["verdict"] == "PASS"
    cluster.wait(lambda: not cluster.tasks("n3"), "the hanging tool to be gone", 10)


@pytest.mark.parametrize(
    ("words", "what", "hint"),
    [
        ((), "SLURM_JOB_ID is not set", "hint: salloc -N 4"),
        (("--slurm-args", "-p nope"), "invalid partition specified: nope", "hint: sinfo -s"),
    ],
)
def test_where_it_cannot_start_it_says_what_to_type(
    cluster: Cluster, words: tuple[str, ...], what: str, hint: str
) -> None:
    status, out, err = _run(cluster, "gpu-health", "--slurm", *words)
    assert (status, out) == (2, "")
    assert what in err
    assert hint in err


def test_a_capture_of_all_nodes_is_judged_elsewhere(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "nodes.capture.gz"
    status, out, _ = _run(cluster, "capture", "--slurm", "-o", str(file), under=SALLOC)
    assert (status, "3 of 3 hosts answered" in out) == (0, True)
    judged = ("gpu-health", "--from", str(file), "--only", "gpu.count", "--set", "gpu.count=2")
    status, out, _ = _run(cluster, *judged, "--format", "json")
    verdicts = {name: host["verdict"] for name, host in _judged(out).items()}
    assert verdicts == {"n1": "FAIL", "n2": "PASS", "n3": "FAIL"}


def test_a_dry_run_shows_the_srun_that_would_be_run(cluster: Cluster) -> None:
    words = ("gpu-health", "--slurm", "--slurm-args", "-p all -N 4", "--dry-run")
    status, out, _ = _run(cluster, *words)
    assert status == 0
    assert "the nodes that Slurm gives under srun by\nsrun -p all -N 4 --label --no-kill" in out
    assert cluster.command("squeue", "-h", "-t", "all", "--name=preflight").strip() == ""


def test_arguments_that_would_do_nothing_in_an_allocation_are_refused(cluster: Cluster) -> None:
    words = ("gpu-health", "--slurm", "--slurm-args", "-w n1")
    status, out, err = _run(cluster, *words, under=SALLOC)
    assert (status, out) == (2, "")
    assert "-w chooses nodes, and this is inside job" in err
    assert "--hosts 'node[01-02]' narrows" in err


def test_the_ranks_of_a_job_that_runs_are_looked_at_in_its_allocation(cluster: Cluster) -> None:
    program = cluster.base / "rank.py"
    program.write_text("import os, signal, time\nif os.environ['RANK'] == '1':\n"
                       "    os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(60)\n")  # fmt: skip
    rank = f"RANK=$SLURM_PROCID exec {sys.executable} {program}"
    told = cluster.command(
        "sbatch", "-o", "/dev/null", "-N", "2", "-w", "n1,n2", "--wrap", f"srun sh -c '{rank}'"
    )
    job = told.split()[-1]
    cluster.wait(lambda: _ranks(program) == 2, "the ranks")
    alone = {**cluster.environment, "SLURM_JOB_ID": job}
    words = ("diagnose-step-time", "--slurm", "--duration", "2s")
    done = subprocess.run([sys.executable, "-m", "preflight", *words], env=alone,
                          cwd=cluster.base, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1, done.stderr
    out = " ".join(done.stdout.split())
    assert "FAIL hang" in out and "rank 1" in out and "rank 0" not in out
    assert "is stopped by a signal" in out and "kill -CONT" in out


def _ranks(program: Path) -> int:
    """How many run it."""
    own = [one for one in Path("/proc").iterdir() if one.name.isdigit()]
    lines = [_read(one / "cmdline") for one in own]
    return sum(line.startswith(sys.executable.encode()) and str(program).encode() in line
               for line in lines)  # fmt: skip


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
