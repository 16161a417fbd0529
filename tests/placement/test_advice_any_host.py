"""Whatever is known of a host and whatever not: advice is whole, and its lines are shell."""

from __future__ import annotations

import random
import subprocess
from typing import Any, TypeVar

import pytest

from preflight.facts.host import Host
from preflight.facts.nics import Gid, Netdev, NicPort
from preflight.facts.stack_pieces import Stack
from preflight.facts.topology import PATHS, GpuPlace, Link, NicPlace, NvlinkDomain, Topology
from preflight.model import Known, Missing
from preflight.placement.advice import advise
from tests.placed_hosts import nodes

T = TypeVar("T")
GONE = Missing("denied", "may not be read")
#: What a kernel or a paste could call things, and a shell must not run.
NAMES = ("mlx5_0", "mlx5_10", "bnxt_re0", "$(reboot)", "a'b", "x;reboot", "rocep24s0", "hfi1_0")


def maybe(dice: random.Random, value: T) -> Known[T]:
    return value if dice.random() < 0.7 else GONE


def host(dice: random.Random) -> Host:
    gpus = [f"gpu{at}" for at in range(dice.choice([1, 2, 4, 8, 16]))]
    nics = dice.sample(NAMES, dice.randint(0, 4))
    return Host(
        "h",
        topology=Topology(
            source=dice.choice(["nvidia-smi topo", "pci"]),
            gpus=tuple(place(dice, name, nics) for name in gpus),
            nics=maybe(dice, tuple(nic(dice, name) for name in nics)),
            links=maybe(dice, tuple(links(dice, [*gpus, *nics]))),
            domains=maybe(dice, domains(dice, gpus)),
        ),
        nic_ports=maybe(dice, tuple(port(dice, name) for name in nics)),
        netdevs=maybe(dice, tuple(netdev(dice, name) for name in dice.sample(NAMES, 3))),
        numa_nodes=maybe(dice, nodes("0-31", "32-63")),
        virtualization=maybe(dice, dice.choice(["none", "vm"])),
        container=maybe(dice, dice.choice(["none", "docker"])),
        stack=Stack(
            nccl_loaded=maybe(dice, dice.choice(["2.18.1", "2.27.5", "odd"])),
            torch=maybe(dice, dice.choice(["2.1.0", "2.9.1+cu128", "nightly"])),
        ),
    )


def place(dice: random.Random, name: str, nics: list[str]) -> GpuPlace:
    return GpuPlace(
        name,
        numa_node=maybe(dice, dice.choice([-1, 0, 1])),
        cpus=maybe(dice, dice.choice(["0-31", "32-63", "", "N/A", "0-3;reboot"])),
        nics=maybe(dice, tuple(nics[:1])),
        nic_path=maybe(dice, "PIX"),
    )


def nic(dice: random.Random, name: str) -> NicPlace:
    role = dice.choice(["training", "other", "down"])
    layer = dice.choice(["InfiniBand", "Ethernet"])
    return NicPlace(name, role=maybe(dice, role), link_layer=maybe(dice, layer),
                    gpu_path=maybe(dice, "SYS"), rate_gbits=maybe(dice, 100.0))  # fmt: skip


def links(dice: random.Random, names: list[str]) -> list[Link]:
    pairs = [(a, b) for at, a in enumerate(names) for b in names[at + 1 :]]
    return [Link(a, b, maybe(dice, dice.choice(PATHS)), 2) for a, b in pairs if dice.random() < 0.9]


def domains(dice: random.Random, gpus: list[str]) -> tuple[NvlinkDomain, ...]:
    joined = dice.sample(gpus, dice.randint(0, len(gpus)))
    if len(joined) < 2:
        return ()
    half = len(joined) // 2 if len(joined) > 3 and dice.random() < 0.5 else len(joined)
    parts = [part for part in (joined[:half], joined[half:]) if len(part) > 1]
    return tuple(NvlinkDomain(part[0], tuple(part), 2, False, False) for part in parts)


def port(dice: random.Random, name: str) -> NicPort:
    gids = (Gid(1, "fe80::1", "RoCE v2"), Gid(dice.randint(2, 9), "::", "RoCE v2", ipv4="10.0.0.1"))
    return NicPort(
        f"{name}/1", name, state=maybe(dice, dice.choice(["ACTIVE", "DOWN"])),
        link_layer=maybe(dice, dice.choice(["InfiniBand", "Ethernet", "Unspecified"])),
        gids=maybe(dice, gids[: dice.randint(0, 2)]), rate_gbits=maybe(dice, 200.0),
    )  # fmt: skip


def netdev(dice: random.Random, name: str) -> Netdev:
    return Netdev(name, state=maybe(dice, "up"), ipv4=maybe(dice, ("10.0.0.1/24",)),
                  default_route=maybe(dice, dice.random() < 0.5),
                  rate_gbits=maybe(dice, 100.0))  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_advice_is_whole(seed: int) -> None:
    dice = random.Random(seed)
    shell = []
    for _ in range(60):
        one = host(dice)
        advice = advise(one)
        gpus: Any = one.topology.gpus
        if not advice.seats:
            assert advice.left[0].startswith("no advice: ")
            continue
        assert [seat.local_rank for seat in advice.seats] == list(range(len(gpus)))
        assert sorted(seat.gpu for seat in advice.seats) == sorted(gpu.name for gpu in gpus)
        members = [name for group in advice.groups for name in group.members]
        assert members in ([], [seat.gpu for seat in advice.seats])
        assert all(group.why for group in advice.groups)
        assert "reboot" not in "".join(seat.bind + seat.cpus for seat in advice.seats)
        shell += [text.text for text in advice.snippets if text.kind in ("sbatch", "torchrun")]
    runs_nothing(shell)


def runs_nothing(texts: list[str]) -> None:
    """Not even what stands in names: each command but these is found missing."""
    tools = "srun() { :; }; torchrun() { :; }; scontrol() { echo n; }; head() { cat; }\n"
    tools += 'reboot() { echo "ran $*"; }; cat() { echo n; }\n'
    text = tools + "\n".join(texts)
    env = {"PATH": "", "SLURM_JOB_NODELIST": "n", "SLURM_CPUS_PER_TASK": "1"}
    found = subprocess.run(
        ["/bin/bash", "-u"], input=text, text=True, capture_output=True, env=env, check=False
    )
    assert (found.stdout, found.stderr) == ("", "")
