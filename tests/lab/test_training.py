"""One training job over several hosts: real sshd, real Slurm, torch's gloo between them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lab.slurm import Cluster, slurm
from tests.lab.ssh_hosts import LabHost
from tests.lab.sshd import Lab, lab

pytestmark = pytest.mark.lab

#: The smallest run that is one. All hosts are this machine: they talk over its loopback.
SMALL = ("micro-train", "--interface", "lo", "--steps", "12", "--batch", "1", "--length", "16",
         "--format", "json")  # fmt: skip
#: A host's own Python, with a lock of its own: hosts of the lab share one kernel and one /tmp.
_PYTHON = 'exec env PREFLIGHT_LOCK={lock} {python} "$@"'
_BARE = 'echo "python3: not found" >&2; exit 127'
#: For hosts to train; for the others to end once one is lost, which takes 7 s on a quiet machine.
_SOON_S, _ENDED_S = 60, 30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    base = tmp_path_factory.mktemp("lab")
    pythons = {
        name: _PYTHON.format(lock=base / f"{name}.lock", python=sys.executable)
        for name in ("node-1", "node-2")
    }
    hosts = {name: LabHost(user="root", tools={"python3": one}) for name, one in pythons.items()}
    with lab(base, {**hosts, "bare": LabHost(tools={"python3": _BARE})}) as running:
        yield running


def results(host: Mapping[str, Any], *statuses: str) -> dict[str, str]:
    """The reasons by check."""
    return {
        one["check"]: one.get("reason", "") for one in host["results"] if one["status"] in statuses
    }


def hosts_of(text: str) -> dict[str, Any]:
    return {host["host"]: host for host in json.loads(text)["hosts"]}


def trained(made: Lab, *words: str) -> dict[str, Any]:
    done = made.preflight(*SMALL, *words)
    assert done.returncode in (0, 1, 3), done.stderr
    return hosts_of(done.stdout)


def test_two_hosts_are_one_job_and_the_one_that_cannot_is_told(made: Lab) -> None:
    began = time.monotonic()
    found = trained(made, "--hosts", "node-1,bare,node-2", "--ranks", "1", "--facts")
    assert time.monotonic() - began < _SOON_S
    assert list(found) == ["node-1", "bare", "node-2"]
    for name, rank in (("node-1", 0), ("node-2", 1)):
        assert results(found[name], "FAIL", "ERROR") == {}
        assert [one["name"] for one in found[name]["facts"]["training"]["ranks"]] == [
            f"rank {rank}"
        ]
        skipped = results(found[name], "SKIP")
        assert "--folder, on storage that all share" in skipped["training.resume"]
    assert found["bare"]["verdict"] == "ERROR"


def test_four_ranks_shard_the_model_over_two_hosts(made: Lab) -> None:
    found = trained(made, "--hosts", "node-1,node-2", "--ranks", "2", "--sharding", "fsdp")
    for host in found.values():
        assert results(host, "FAIL", "ERROR") == {}
        assert "training.accumulation" in results(host, "PASS")


def test_with_a_shared_folder_it_is_killed_and_resumed(made: Lab, tmp_path: Path) -> None:
    found = trained(
        made, "--hosts", "node-1,node-2", "--ranks", "1", "--folder", str(tmp_path)
    )  # fmt: skip
    for host in found.values():
        assert results(host, "FAIL", "ERROR") == {}
        assert {"training.resume", "training.resume.loss"} <= set(results(host, "PASS"))
    assert list(tmp_path.iterdir()) == []


def ranks_of(python: str = sys.executable) -> list[psutil.Process]:
    """What of our training runs on this machine, wherever it was started."""
    return [
        one
        for one in psutil.process_iter()
        if "train" in (words := _words(one)) and words[0] == python
    ]


def _words(process: psutil.Process) -> Sequence[str]:
    try:
        return process.cmdline() or ("",)
    except psutil.Error:
        return ("",)


def test_a_host_that_is_lost_ends_the_job_and_is_named_on_the_others(made: Lab) -> None:
    before = {one.pid for one in ranks_of()}
    argv = [*made.program(*SMALL), "--hosts", "node-1,node-2", "--ranks", "1", "--steps", "20000"]
    with subprocess.Popen(made.inside(argv), stdout=subprocess.PIPE, text=True) as run:
        ours = _begun(before)
        server = next(one for one in ours if _lock(one).endswith("node-2.lock"))
        while not server.name().startswith("sshd"):
            server = server.parent() or server
        began = time.monotonic()
        server.kill()
        out, _ = run.communicate(timeout=60)
    assert time.monotonic() - began < _ENDED_S
    found = hosts_of(out)
    assert "broke off" in results(found["node-1"], "ERROR")["training.ranks"]
    assert [one["fault"] for one in found["node-2"]["missing"] if "fault" in one] == ["died"]


def _lock(process: psutil.Process) -> str:
    return process.environ().get("PREFLIGHT_LOCK", "")


def test_interrupted_all_ranks_on_all_hosts_are_gone(made: Lab) -> None:
    before = {one.pid for one in ranks_of()}
    argv = [*made.program(*SMALL), "--hosts", "node-1,node-2", "--ranks", "1", "--steps", "20000"]
    with subprocess.Popen(
        made.inside(argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        ours = _begun(before)
        client = next(one for one in psutil.process_iter() if _is_client(_words(one)))
        client.terminate()
        out, _ = run.communicate(timeout=30)
        _, alive = psutil.wait_procs(ours, timeout=5)
    # One that has ended holds nothing; whose child it is now takes note of it or not.
    assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []
    assert set(hosts_of(out)) == {"node-1", "node-2"}


def _is_client(words: Sequence[str]) -> bool:
    return words[0] == sys.executable and words[-1] == "20000"


def _begun(before: set[int]) -> list[psutil.Process]:
    """The processes of both hosts, once all ranks are there."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        ours = [one for one in ranks_of() if one.pid not in before]
        if len(ours) >= 4:  # of each host its launcher and a rank at least
            return ours
        time.sleep(0.2)
    raise AssertionError("the ranks did not begin")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with slurm(tmp_path_factory.mktemp("slurm") / "lab") as running:
        for node in running.nodes:
            running.tool(node, "hostname", f"echo {node}")
            lock = running.base / f"{node}.lock"
            running.tool(node, "python3", _PYTHON.format(lock=lock, python=sys.executable))
        yield running


def test_under_slurm_the_nodes_of_an_allocation_are_one_job(cluster: Cluster) -> None:
    done = subprocess.run(
        ["salloc", "-Q", "-N", "2", "-w", "n1,n2", sys.executable, "-m", "preflight", *SMALL,
         "--ranks", "1", "--slurm", "--facts"], env=cluster.environment, cwd=cluster.base,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout[-2000:]
    found = hosts_of(done.stdout)
    names = [one["name"] for node in found.values() for one in node["facts"]["training"]["ranks"]]
    assert (list(found), names) == (["n1", "n2"], ["rank 0", "rank 1"])
    assert all(results(node, "FAIL", "ERROR") == {} for node in found.values())
