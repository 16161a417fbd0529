"""preflight topo --pid: real processes, bound by taskset, on a GPU that our nvidia-smi tells of."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.binding_text import ON_GPU
from tests.cli.command import Ran, preflight, replaying
from tests.conftest import require
from tests.nccl_topo_text import CLOUD

ONLY = ("--only", "topo.process.*")


@contextmanager
def bound(cpus: str, **env: str) -> Iterator[int]:
    """A process that may run on these processors, and does by now."""
    require("taskset", shutil.which("taskset") is not None)
    argv = ["taskset", "-c", cpus, "sh", "-c", "echo ready; exec sleep 60"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env={**os.environ, **env}) as child:
        assert child.stdout and child.stdout.readline() == b"ready\n"
        try:
            yield child.pid
        finally:
            child.kill()


def _of(*pids: int, path: str = "", only: tuple[str, ...] = ONLY) -> tuple[Ran, dict[str, Any]]:
    named = [word for pid in pids for word in ("--pid", str(pid))]
    path = path or os.environ["PATH"]
    ran = preflight("topo", "--format", "json", *named, *only, PATH=path)
    results = json.loads(ran.out)["hosts"][0]["results"]
    return ran, {f"{one['subject']} {one['check'].rpartition('.')[2]}": one for one in results}


def test_processes_on_a_gpu_are_judged_each_by_itself(tmp_path: Path) -> None:
    if len([*Path("/sys/devices/system/node").glob("node[0-9]*")]) != 1:
        pytest.skip("what is right depends on the nodes of this machine")
    with bound("0") as first, bound("0") as second:
        listed = ON_GPU.replace("<pid>4711</pid>", f"<pid>{first}</pid>")
        ran, found = _of(first, second, path=replaying(tmp_path, listed))
    one = found[f"pid {first} cpus"]
    assert (one["status"], one["measured"]) == ("PASS", "CPUs 0: the host has one NUMA node")
    assert found[f"pid {first} memory"]["status"] == "PASS"
    other = found[f"pid {second} cpus"]
    assert (other["status"], other["reason"]) == (
        "SKIP", f"pid {second}: no GPU lists it: it holds none, or runs in a container",
    )  # fmt: skip
    assert ran.rc == 0


def test_a_process_without_a_gpu_is_not_judged() -> None:
    with bound("0") as pid:
        _, found = _of(pid)
    assert {one["status"] for one in found.values()} == {"SKIP"}


def test_a_process_that_is_gone_or_has_ended_is_an_error() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        ran, found = _of(child.pid, 4194399)
    assert ran.rc == 3
    assert {one["status"] for one in found.values()} == {"ERROR"}
    assert "has ended (zombie)" in found[f"pid {child.pid} cpus"]["reason"]
    assert "there is no process" in found["pid 4194399 cpus"]["reason"]


def test_the_topology_file_is_that_of_the_process(tmp_path: Path) -> None:
    file = tmp_path / "topo.xml"
    file.write_text(CLOUD)
    with bound("0", NCCL_TOPO_FILE=str(file)) as pid:
        _, found = _of(pid, only=("--only", "topo.file.read"))
    (one,) = found.values()
    assert (one["status"], one["measured"]) == ("PASS", f"{file} (named by pid {pid})")


def test_without_a_process_the_report_says_how_to_name_one() -> None:
    _, found = _of()
    assert all("--pid PID" in one["reason"] for one in found.values())
    assert found
