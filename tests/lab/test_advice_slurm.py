"""The advised sbatch script, run by a real Slurm: each task gets its seat."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.placement.advice import advise
from tests.lab.slurm import slurm
from tests.placed_hosts import even, matrix, placed

pytestmark = pytest.mark.lab

#: Two GPUs, each on a node of its own with two of the four processors.
HOST = placed(matrix(even(2, "NV4"), {}, ("0-1", "2-3")))
NUMACTL = 'bound="$1 $2"; shift 2; BOUND=$bound exec "$@"'
TRAIN = 'echo "$SLURMD_NODENAME $RANK of $WORLD_SIZE $LOCAL_RANK $BOUND $MASTER_ADDR $1"'


def test_slurm_gives_each_task_its_seat(tmp_path: Path) -> None:
    base = tmp_path / "lab"
    base.mkdir()
    for name in ("gpu0", "gpu1"):
        (base / name).touch()
    (base / "gres.conf").write_text(f"Name=gpu File={base}/gpu[0-1]\n")
    text = next(one.text for one in advise(HOST).snippets if one.kind == "sbatch")
    job = tmp_path / "job"
    job.write_text(text.replace("NODES", "2", 1).replace("TRAIN.py", "train.py"))
    options = {"GresTypes": "gpu", "NodeName=DEFAULT Gres": "gpu:2"}
    with slurm(base, ("n1", "n2"), options) as cluster:
        for node in cluster.nodes:
            cluster.tool(node, "numactl", NUMACTL)
            cluster.tool(node, "python3", TRAIN)
        out = tmp_path / "out"
        # srun says on stderr that this cluster has no plugin that binds: the seat binds.
        files = (f"--output={out}", "--error=/dev/null", f"--chdir={tmp_path}")
        cluster.command("sbatch", "--wait", *files, str(job))
        assert sorted(out.read_text().splitlines()) == [
            "n1 0 of 4 0 --cpunodebind=0 --membind=0 n1 train.py",
            "n1 1 of 4 1 --cpunodebind=1 --membind=1 n1 train.py",
            "n2 2 of 4 0 --cpunodebind=0 --membind=0 n1 train.py",
            "n2 3 of 4 1 --cpunodebind=1 --membind=1 n1 train.py",
        ]
