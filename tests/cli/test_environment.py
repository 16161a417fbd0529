"""Variables as the command finds them: of its own shell, and of a process that runs."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

from preflight.capture import Writer
from preflight.model import Raw
from tests.accelerator_text import npus, pci
from tests.cli.command import Ran, preflight

ONLY = ("versions", "--only", "versions.env.*", "--color", "never")
HINT = "variables are those of the shell"


def told(ran: Ran) -> dict[str, str]:
    """Subject -> check, of what did not pass."""
    results = json.loads(ran.out)["hosts"][0]["results"]
    return {one["subject"]: one["check"] for one in results if one["status"] != "PASS"}


def test_variables_of_the_shell_are_judged() -> None:
    ran = preflight(
        *ONLY, "--format", "json", NCCL_IB_TIMOUT="22", CUDA_LAUNCH_BLOCKING="1", NCCL_DEBUG="WARN"
    )
    assert ran.rc == 1
    assert told(ran) == {
        "NCCL_IB_TIMOUT": "versions.env.unknown",
        "CUDA_LAUNCH_BLOCKING": "versions.env.blocking",
    }
    facts = json.loads(ran.out)["hosts"][0]["facts"]["environment"]
    assert ("NCCL_DEBUG", "WARN") in {(one["name"], one["value"]) for one in facts}


def test_whose_variables_they_are_is_said_once_and_only_where_something_is_found() -> None:
    assert preflight(*ONLY, NCCL_ALGO="Ring", NCCL_P2P_DISABLE="1").out.count(HINT) == 1
    assert HINT not in preflight(*ONLY, NCCL_DEBUG="WARN").out


def test_a_process_is_looked_at_in_place_of_the_shell() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={"NCCL_NTHREADS": "8"},
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.readline()
        ran = preflight(*ONLY, "--pid", str(child.pid), "--format", "json", NCCL_IB_TIMOUT="22")
        child.stdin.write(b"\n")
        child.stdin.flush()
    assert told(ran) == {f"NCCL_NTHREADS (pid {child.pid})": "versions.env.value"}


def test_a_process_that_is_gone_is_no_pass() -> None:
    ran = preflight(*ONLY, "--pid", "99999999")
    assert ran.rc == 3
    assert "pid 99999999: there is no such process" in ran.out


def test_a_recorded_process_cannot_be_asked() -> None:
    ran = preflight("versions", "--pid", "1", "--hosts", "node[1-2]")
    assert ran.rc == 2
    assert "--pid is of a process of this machine" in ran.err


def test_what_a_file_was_taken_for_is_said(tmp_path: Path) -> None:
    wishes, env = tmp_path / "requirements.txt", tmp_path / "env.txt"
    wishes.write_text("torch==2.5.1\nnumpy==1.26.0\n")
    env.write_text("NCCL_DEBUG=INFO\nNCCL_IB_HCA=mlx5_0\n")
    ran = preflight("versions", "--from", str(wishes), "--color", "never")
    assert f"note: taken for the output of `pip freeze`: {wishes}" in ran.err
    assert "input  torch 2.5.1\n" in ran.out
    ran = preflight("versions", "--from", str(env), "--color", "never")
    assert f"note: taken for the output of `env`: {env}" in ran.err
    assert "input  2 variables\n" in ran.out


def test_what_is_pasted_is_kept_without_secrets(tmp_path: Path) -> None:
    env, kept = tmp_path / "env.txt", tmp_path / "x.capture.gz"
    env.write_text("NCCL_DEBUG=INFO\nOPENAI_KEY=hunter2\nFOO=hunter2\nNCCL_JWT=hunter2\n")
    preflight("versions", "--from", str(env), "--save", str(kept))
    assert b"NCCL_JWT=***" in gzip.decompress(kept.read_bytes())
    assert b"hunter2" not in gzip.decompress(kept.read_bytes())


def test_a_host_with_npus_is_not_told_that_it_lacks_gpus(tmp_path: Path) -> None:
    path = tmp_path / "x.capture.gz"
    identity = "hostname npu-1\nkernel 5.10.0\nuid 0\n"
    with Writer(path) as writer:
        writer.write(
            [
                Raw("npu-1", "identity", ("sh",), 0, identity),
                Raw("npu-1", "pci", ("sh",), 0, pci("0x19e5", 4)),
                Raw("npu-1", "nvidia-smi", ("nvidia-smi",), 127),
                Raw("npu-1", "npu-smi", ("npu-smi",), 0, npus()),
            ]
        )
    ran = preflight("versions", "--from", str(path), "--color", "never")
    assert "Ascend accelerator" in ran.out
    assert "gpu.count=N" not in ran.out
