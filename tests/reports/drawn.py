"""Reports with maps and advice, made by hand for the tests of the pictures."""

from __future__ import annotations

from collections.abc import Callable

from preflight.facts.host import Host
from preflight.model import Advice, Export, Group, HostReport, Report, Seat, Snippet
from preflight.placement.map import map_of
from tests.placement import machines
from tests.reports.built import host, passed, report

MACHINES: dict[str, Callable[[], Host]] = {
    "sixteen": machines.sixteen,
    "eight": machines.eight,
    "faulty": machines.faulty,
    "without_gpu": machines.without_gpu,
}


def seat(rank: int, half: int) -> Seat:
    node = rank // half
    cpus = ("0-47,96-143", "48-95,144-191")[node]
    bind = f"numactl --cpunodebind={node} --membind={node}"
    return Seat(rank, f"gpu{rank}", (f"mlx5_{rank}",), node, cpus, bind, "on the node of its GPU")


def advice(gpus: int) -> Advice:
    """What may be said of how to start a job: every part of it."""
    names = tuple(f"gpu{number}" for number in range(gpus))
    training = ",".join(f"mlx5_{number}:1" for number in range(gpus))
    return Advice(
        (Group(names, "one NVLink domain: tensor parallel inside, data parallel across hosts"),),
        tuple(seat(rank, gpus // 2) for rank in range(gpus)),
        (
            Export("NCCL_IB_HCA", f"={training}", "the adapters beside the GPUs; mlx5_bond_0, "
                   "which is slower and serves storage, would be taken too"),
            Export("NCCL_SOCKET_IFNAME", "=eth0", "the way to the other hosts"),
            Export("SPACED", "a b; rm -rf $HOME", "what a shell must not obey"),
        ),
        (
            Snippet("sbatch", "#!/bin/bash\n#SBATCH --nodes=NODES\nsrun python3 TRAIN.py"),
            Snippet("mesh", 'mesh = init_device_mesh("cuda", (2, 8))'),
        ),
        ("NCCL_ALGO: NCCL takes the best by size itself",),
    )  # fmt: skip


def drawn(name: str, called: str = "node-07", *, advised: bool = True) -> HostReport:
    """A host of MACHINES."""
    told = host(called, passed("pcie.width", "gpu0", 16, "16"))
    made = MACHINES[name]()
    told.map = map_of(made)
    gpus = made.topology.gpus
    count = len(gpus) if isinstance(gpus, tuple) else 0
    told.advice = advice(count) if advised and count else Advice()
    return told


def topo(*hosts: HostReport) -> Report:
    """The report of `preflight topo` on them."""
    told = report(*hosts)
    told.command = "topo"
    return told
