"""Launch lines: they are shell, and run as they stand they bind each rank to its seat."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from preflight.facts.host import Host
from preflight.model import Advice, Export, Group
from preflight.placement.advice import advise
from preflight.placement.advice.mesh import meshes
from preflight.placement.advice.snippets import shell_line
from tests.conftest import sample
from tests.placed_hosts import (
    TWO_NODES,
    blocks,
    dgx,
    even,
    matrix,
    netdev,
    placed,
    port,
    with_nccl,
)

CROSSED = ["X NODE NV4 NODE", "NODE X NODE NV4", "NV4 NODE X NODE", "NODE NV4 NODE X"]
PORTS = tuple(port(f"mlx5_{at}") for at in range(10))
DEVICES = (netdev("eth0", "10.0.0.1/24", default_route=True), netdev("eth1", "10.1.0.1/24"))


def full(**fields: Any) -> Host:
    return placed(dgx("NV18"), other=("mlx5_8", "mlx5_9"), nic_ports=PORTS, netdevs=DEVICES,
                  **fields)  # fmt: skip


HOSTS = {
    "DGX": full(),
    "DGX, torch that binds": full(stack=with_nccl("2.27.5", torch="2.9.0+cu128")),
    "DGX in Docker": full(container="docker"),
    "DGX-1": placed(sample("topo/dgx1_v100_x8_4hca_tabs.txt")),
    "H20": placed(sample("topo/h20_x8_8nic_pix_pairs_tabs.txt")),
    "VM": placed(sample("topo/h100_x8_vm_no_nic_tabs.txt")),
    "bridges": placed(matrix(blocks(8, 4, "NV4", "SYS"), {}, TWO_NODES)),
    "crossed": placed(matrix(CROSSED, {}, TWO_NODES)),
    "GB200": placed(matrix(even(4, "NV18"), {}, ("0-71", "72-143"))),
    "one GPU": placed(matrix(["X"], {}, ["0-15"])),
}


def snippet(advice: Advice, kind: str) -> str:
    return next(one.text for one in advice.snippets if one.kind == kind)


@pytest.mark.parametrize("kind", ["sbatch", "torchrun"])
@pytest.mark.parametrize("name", HOSTS)
def test_snippets_are_shell(name: str, kind: str) -> None:
    advice = advise(HOSTS[name])
    text = snippet(advice, kind)
    for shell in ("sh", "bash"):
        found = subprocess.run([shell, "-n"], input=text, text=True, capture_output=True)
        assert (found.returncode, found.stderr) == (0, "")
    assert all(len(line) <= 100 for line in text.splitlines())
    # Nothing is left to fill in but these.
    capitals = set(re.findall(r"(?<![$\w\"{_])[A-Z]{5,}(?:_HOST)?(?![\w=])", _code(text)))
    assert capitals <= {"NODES", "TRAIN", "RENDEZVOUS_HOST", "SBATCH"}
    assert [shell_line(one) in text for one in advice.exports] == [True] * len(advice.exports)


def _code(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith(("# ", "export ")))


FAKES = {
    "scontrol": "echo node-01; echo node-02\n",
    # One task after the other, as Slurm would start them on one node.
    "srun": 'while [ "${1#--}" != "$1" ]; do echo "option $1" >&2; shift; done\n'
    "i=0; while [ $i -lt $RANKS ]; do CUDA_VISIBLE_DEVICES=slurm SLURM_PROCID=$((8 + i)) "
    'SLURM_LOCALID=$i SLURM_NTASKS=16 "$@"; i=$((i + 1)); done\n',
    "torchrun": 'own=; while [ "${1#--}" != "$1" ]; do echo "option $1" >&2\n'
    '[ "$1" = --no-python ] && own=1; shift; done\n'
    "i=0; while [ $i -lt $RANKS ]; do export LOCAL_RANK=$i\n"
    'if [ -n "$own" ]; then "$@"; else python3 "$@"; fi; i=$((i + 1)); done\n',
    "numactl": 'bound="numactl $1 $2"; shift 2; BOUND=$bound exec "$@"\n',
    "taskset": 'bound="taskset $1 $2"; shift 2; BOUND=$bound exec "$@"\n',
    "python3": 'echo "$LOCAL_RANK|$BOUND|$RANK|$WORLD_SIZE|$CUDA_VISIBLE_DEVICES|$*"\n',
}


def run(folder: Path, text: str, ranks: int) -> tuple[list[list[str]], str]:
    """What each rank's program was given, and the options of the launcher."""
    for name, body in FAKES.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}")
        (folder / name).chmod(0o755)
    (folder / "job").write_text(text)
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "RANKS": str(ranks), "SLURM_JOB_NODELIST": "n",
           "SLURM_CPUS_PER_TASK": "24"}  # fmt: skip
    found = subprocess.run(["bash", "job"], cwd=folder, env=env, text=True, capture_output=True)
    assert found.returncode == 0, found.stderr
    return [line.split("|") for line in found.stdout.splitlines()], found.stderr


@pytest.mark.parametrize("name", HOSTS)
def test_sbatch_gives_each_task_its_seat(name: str, tmp_path: Path) -> None:
    advice = advise(HOSTS[name])
    told, options = run(tmp_path, snippet(advice, "sbatch"), len(advice.seats))
    order = {one.name: one.value for one in advice.exports}.get("CUDA_VISIBLE_DEVICES", "slurm")
    assert told == [
        [str(seat.local_rank), seat.bind, str(8 + seat.local_rank), "16", order, "TRAIN.py"]
        for seat in advice.seats
    ]
    assert "--cpu-bind=none" in options


@pytest.mark.parametrize("name", HOSTS)
def test_torchrun_gives_each_rank_its_seat(name: str, tmp_path: Path) -> None:
    advice = advise(HOSTS[name])
    told, options = run(tmp_path, snippet(advice, "torchrun"), len(advice.seats))
    binds = [seat.bind for seat in advice.seats]
    by_itself = "--numa-binding=node" in options
    assert by_itself == (name == "DGX, torch that binds")
    assert [one[1] for one in told] == ([""] * len(binds) if by_itself else binds)
    assert [one[5] for one in told] == ["TRAIN.py"] * len(binds)
    assert f"--nproc-per-node={len(binds)}" in options


@pytest.mark.parametrize("name", HOSTS)
def test_comments_of_what_is_pasted_mean_nothing_to_the_prompt_of_zsh(name: str) -> None:
    """It takes # for a command: what is behind `;` is run, a quote swallows what follows."""
    text = snippet(advise(HOSTS[name]), "torchrun")
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert comments
    assert not [line for line in comments if set(line) & set(";&|<>()[]*?$`'\"!=~\\")]
    assert " # " not in text


def test_sbatch_asks_for_the_whole_host() -> None:
    lines = snippet(advise(HOSTS["DGX"]), "sbatch").splitlines()
    assert [line for line in lines if line.startswith("#SBATCH")] == [
        "#SBATCH --nodes=NODES",
        "#SBATCH --ntasks-per-node=8",
        "#SBATCH --gpus-per-node=8",
        "#SBATCH --cpus-per-task=24",
        "#SBATCH --exclusive",
    ]
    # Options behind the first command are not read.
    commands = [at for at, line in enumerate(lines) if line and not line.startswith("#")]
    assert lines.index("#SBATCH --exclusive") < commands[0]


def test_processors_are_asked_for_only_where_they_are_known() -> None:
    text = matrix(even(2, "NV4"), {}, ("0-7", "8-15")).replace("0-7", "N/A")
    assert "cpus-per-task" not in snippet(advise(placed(text)), "sbatch")


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("eth0", "export A=eth0"),
        ("0,2,1,3", "export A=0,2,1,3"),
        ("=mlx5_0:1", "export A='=mlx5_0:1'"),  # zsh would look for a command
        ("it's $HOME", "export A='it'\\''s $HOME'"),
    ],
)
def test_values_are_quoted_where_a_shell_reads_more(value: str, line: str) -> None:
    assert shell_line(Export("A", value, "")) == line
    shown = subprocess.run(["sh", "-c", f'{line}; printf %s "$A"'], text=True, capture_output=True)
    assert shown.stdout == value


def test_no_tensor_parallel_where_the_groups_say_so() -> None:
    apart = (
        Group(("gpu0", "gpu1"), "no NVLink (SYS): data or pipeline parallel, no tensor parallel"),
    )
    told = meshes(apart)
    assert [one.kind for one in told] == ["mesh", "deepspeed"]
    assert "Tensor parallel" not in told[0].text
    assert "megatron" in [one.kind for one in meshes((Group(("gpu0", "gpu1"), "NVLink"),))]
