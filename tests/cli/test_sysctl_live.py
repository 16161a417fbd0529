"""preflight sysctl on this machine: what it tells is what Python reads by itself; --pid."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from preflight.facts.system import UNLIMITED
from tests.cli.command import preflight
from tests.conftest import require


def judged(*arguments: str) -> dict[str, Any]:
    ran = preflight("sysctl", "--format", "json", "--facts", "--exit-zero", *arguments)
    assert ran.rc == 0, ran.err
    host: dict[str, Any] = json.loads(ran.out)["hosts"][0]
    return host


def _limits(facts: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {one["name"]: (one["soft"], one["hard"]) for one in facts["limits"]}


def test_every_fact_is_what_python_reads_by_itself() -> None:
    facts = judged()["facts"]
    for name, number in (
        ("nofile", resource.RLIMIT_NOFILE), ("memlock", resource.RLIMIT_MEMLOCK),
        ("nproc", resource.RLIMIT_NPROC), ("stack", resource.RLIMIT_STACK),
    ):  # fmt: skip
        pair = [UNLIMITED if n == resource.RLIM_INFINITY else n for n in resource.getrlimit(number)]
        assert _limits(facts)[f"{name} (shell)"] == tuple(pair)
    assert facts["cgroup"]["cpus_allowed"] == len(os.sched_getaffinity(0))
    disk, root = shutil.disk_usage("/"), {one["name"]: one for one in facts["disks"]}["/"]
    assert root["size_bytes"] == disk.total
    assert abs(root["used_percent"] - 100 * disk.used / (disk.used + disk.free)) < 2
    if os.path.ismount("/dev/shm"):
        assert facts["shared_memory"]["size_bytes"] == shutil.disk_usage("/dev/shm").total
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    assert facts["memory"]["total_bytes"] == memory.total
    assert abs(facts["memory"]["available_percent"] - 100 * memory.available / memory.total) < 10
    assert facts["memory"]["swap_total_bytes"] == swap.total
    assert facts["cpu_state"]["online"] == psutil.cpu_count()
    assert facts["processes"]["threads_limit"] <= int(Path("/proc/sys/kernel/pid_max").read_text())
    assert abs(facts["identity"]["uptime_s"] - (time.time() - psutil.boot_time())) < 60


def test_every_check_of_the_system_has_a_result_and_none_is_an_error_here() -> None:
    results = [one for one in judged()["results"] if one["check"].startswith("system.")]
    wrong = [(one["check"], one.get("reason")) for one in results if one["status"] == "ERROR"]
    assert wrong == []
    assert len({one["check"] for one in results}) > 35


@pytest.mark.parametrize("files", [10, 60])
def test_a_process_near_its_limit_of_open_files_fails(files: int) -> None:
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        f"held = [open('/dev/null') for _ in range({files} - 3)]\n"
        "print('ready', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holding:
        assert holding.stdout is not None
        assert holding.stdin is not None
        holding.stdout.readline()
        host = judged("--pid", str(holding.pid), "--only", "system.limits.*")
        holding.stdin.close()
    (found,) = (one for one in host["results"] if one["check"] == "system.limits.open_files")
    assert found["subject"] == f"pid {holding.pid}"
    assert found["status"] == ("FAIL" if files > 57 else "PASS")
    assert found["measured"] == 100 * files / 64
    assert _limits(host["facts"])[f"nofile (pid {holding.pid})"] == (64, 64)


def test_the_advice_names_the_process() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        only = ("--only", "system.limits.open_files", "--set", "system.limits.open_files.fail=0")
        ran = preflight("sysctl", "--pid", str(sleeping.pid), *only)
        sleeping.kill()
    assert ran.rc == 1
    assert f"prlimit --pid {sleeping.pid} " in ran.out


def test_a_process_that_is_not_there_is_no_pass() -> None:
    ran = preflight("sysctl", "--pid", "4194399", "--only", "system.limits.open_files")
    assert ran.rc == 3
    assert "there is no process 4194399" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--pid", "0"), "--pid 0 is no process"),
        (("--pid", "1", "--from", "x"), "--pid is of a process of this machine"),
        (("--pid", "1", "--hosts", "a,b"), "--pid is of a process of this machine"),
    ],
)
def test_where_a_process_cannot_be_meant(arguments: tuple[str, ...], said: str) -> None:
    ran = preflight("sysctl", *arguments)
    assert ran.rc == 2
    assert said in ran.err


def test_without_it_nothing_is_asked_of_a_process() -> None:
    (found,) = judged("--only", "system.limits.open_files")["results"]
    assert found["status"] == "SKIP"
    assert "--pid" in found["reason"]
    ran = preflight("sysctl", "--pid", "1", "--dry-run", "-v")
    assert re.search(r"process +sh -c", ran.out)


@pytest.mark.lab
def test_a_small_shared_memory_is_seen() -> None:
    require("root and unshare", os.geteuid() == 0 and bool(shutil.which("unshare")))
    script = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'
    under = ["unshare", "-m", "sh", "-c", script, "sh"]
    ran = preflight("sysctl", "--format", "json", "--only", "system.shm.size", under=under)
    (found,) = json.loads(ran.out)["hosts"][0]["results"]
    assert (found["status"], found["measured"]) == ("WARN", 64 << 20)
