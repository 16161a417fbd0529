"""Matrices of nvidia-smi topo in the layouts of its drivers, of hosts that no sample shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def matrix(
    gpus: int,
    path: Callable[[int, int], str],
    *,
    nics: Sequence[str] = (),
    near: Callable[[int, int], str] = lambda _gpu, _nic: "SYS",
    node: Callable[[int], str] = lambda gpu: str(gpu // 4),
    cpus: Callable[[int], str] = lambda gpu: f"{gpu // 4 * 48}-{gpu // 4 * 48 + 47}",
) -> str:
    """With tabs and a legend of its NICs; `path` between two GPUs, `near` from a GPU to a NIC."""
    labels = [*(f"GPU{gpu}" for gpu in range(gpus)), *(f"NIC{nic}" for nic in range(len(nics)))]
    affinity = ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]
    lines = ["\t".join(["", *labels, *affinity])]
    for gpu in range(gpus):
        cells = [" X " if gpu == other else path(gpu, other) for other in range(gpus)]
        cells += [near(gpu, nic) for nic in range(len(nics))]
        lines.append("\t".join([f"GPU{gpu}", *cells, cpus(gpu), node(gpu), "", "N/A"]))
    for nic in range(len(nics)):
        cells = [near(gpu, nic) for gpu in range(gpus)]
        cells += [" X " if nic == other else "NODE" for other in range(len(nics))]
        lines.append("\t".join([f"NIC{nic}", *cells]))
    legend = [f"  NIC{at}: {name}" for at, name in enumerate(nics)]
    return "\n".join(
        [*lines, "", "Legend:", "", "  X    = Self", "", "NIC Legend:", "", *legend, ""]
    )


def rail(gpu: int, nic: int) -> str:
    """Every GPU has a NIC of its own below its switch."""
    return "PIX" if gpu == nic else "NODE" if gpu // 4 == nic // 4 else "SYS"


def hgx(links: int = 18, *, odd: dict[int, str] | None = None, nics: int = 8) -> str:
    """Eight GPUs on NVSwitches, a NIC for each; `odd`: what a GPU has in place of its links."""
    odd = odd or {}

    def path(one: int, other: int) -> str:
        return odd.get(one, odd.get(other, f"NV{links}"))

    return matrix(8, path, nics=[f"mlx5_{at}" for at in range(nics)], near=rail)


def pcie(*, bridges: bool = False, without: int | None = None) -> str:
    """Eight PCIe cards, four below the switch of each processor; `bridges` join two and two,
    `without` the one of this number."""

    def path(one: int, other: int) -> str:
        if bridges and one // 2 == other // 2 != without:
            return "NV4"
        return "PXB" if one // 4 == other // 4 else "SYS"

    return matrix(8, path, nics=["mlx5_0"], near=lambda gpu, _: "NODE" if gpu < 4 else "SYS")
