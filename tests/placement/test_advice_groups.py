"""Rank groups: inside an NVLink domain, else as near as PCIe allows."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from preflight.facts.gpu import Fabric, Gpu
from preflight.model import Advice, Missing
from preflight.placement.advice import advise
from tests.placed_hosts import TWO_NODES, blocks, dgx, even, matrix, placed

EIGHT = tuple(f"gpu{at}" for at in range(8))
#: Two bridged cards, each with another neighbour in between.
CROSSED = ["X NODE NV4 NODE", "NODE X NODE NV4", "NV4 NODE X NODE", "NODE NV4 NODE X"]
CUBE = [
    "X NV1 NV1 NV2 NV2 SYS SYS SYS", "NV1 X NV2 NV1 SYS NV2 SYS SYS",
    "NV1 NV2 X NV2 SYS SYS NV1 SYS", "NV2 NV1 NV2 X SYS SYS SYS NV1",
    "NV2 SYS SYS SYS X NV1 NV1 NV2", "SYS NV2 SYS SYS NV1 X NV2 NV1",
    "SYS SYS NV1 SYS NV1 NV2 X NV2", "SYS SYS SYS NV1 NV2 NV1 NV2 X",
]  # fmt: skip

#: name -> cells among the GPUs; members of the groups; words of the first reason.
TABLE: dict[str, tuple[list[str], list[str], str]] = {
    "switched": (even(8, "NV18"), ["01234567"], "8 (NV18): tensor parallel (2, 4 or 8) inside"),
    "cube mesh": (CUBE, ["0123", "4567"], "4 (NV1 to NV2): tensor parallel (2 or 4) inside; not"),
    "four and four": (blocks(8, 4, "NV4", "SYS"), ["0123", "4567"], "others are reached over PCIe"),
    "bridged pairs": (blocks(4, 2, "NV4", "NODE"), ["01", "23"], "2 (NV4): tensor parallel (2)"),
    "crossed pairs": (CROSSED, ["02", "13"], "2 (NV4)"),
    "PCIe alone": (blocks(8, 4, "NODE", "SYS"), ["0123", "4567"], "of NUMA node 0 (NODE at worst)"),
    "PCIe switches": (blocks(4, 2, "PIX", "SYS"), ["01", "23"], "share a PCIe switch (PIX)"),
    "one switch": (even(4, "PXB"), ["0123"], "share a PCIe switch (PXB)"),
    "all the long way": (even(8, "SYS"), ["0123", "4567"], "no tensor parallel"),
    "alone": (["X"], [], ""),
}


def of(cells: list[str]) -> Advice:
    return advise(placed(matrix(cells, {}, TWO_NODES)))


def snippet(advice: Advice, kind: str) -> str:
    return next((one.text for one in advice.snippets if one.kind == kind), "")


@pytest.mark.parametrize("name", TABLE)
def test_groups_follow_the_links(name: str) -> None:
    cells, members, words = TABLE[name]
    groups = of(cells).groups
    assert ["".join(one[3:] for one in group.members) for group in groups] == members
    assert not members or words in groups[0].why


@pytest.mark.parametrize("name", TABLE)
def test_meshes_have_the_size_of_the_groups(name: str) -> None:
    cells, members, _ = TABLE[name]
    advice = of(cells)
    if not members:
        assert snippet(advice, "mesh") == ""
        return
    size = len(members[0])
    zero = json.loads(snippet(advice, "deepspeed"))["zero_optimization"]
    assert zero == {"stage": 3, "zero_hpz_partition_size": size}
    compile(snippet(advice, "mesh"), "mesh.py", "exec")
    assert f'("cuda", (world // {size}, {size}), mesh' in snippet(advice, "mesh")
    tensor = "no tensor parallel" not in advice.groups[0].why
    line = f"\n--tensor-model-parallel-size {size}\n"
    assert (line in snippet(advice, "megatron")) == tensor
    assert ("whole host" in snippet(advice, "mesh")) == (size < len(cells))


def test_groups_that_are_not_consecutive_get_consecutive_ranks() -> None:
    advice = of(CROSSED)
    assert [seat.gpu for seat in advice.seats] == ["gpu0", "gpu2", "gpu1", "gpu3"]
    assert [seat.local_rank for seat in advice.seats] == [0, 1, 2, 3]
    exports = {one.name: one.value for one in advice.exports}
    assert exports == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,2,1,3"}
    assert "export CUDA_VISIBLE_DEVICES=0,2,1,3\nexec" not in snippet(advice, "torchrun")
    # Slurm sets the variable of each task anew.
    assert "\nexport CUDA_VISIBLE_DEVICES=0,2,1,3\ncase" in snippet(advice, "sbatch")


def test_groups_of_no_common_size_give_no_mesh() -> None:
    cells = ["X NV4 SYS", "NV4 X SYS", "SYS SYS X"]
    advice = of(cells)
    assert [group.members for group in advice.groups] == [("gpu0", "gpu1"), ("gpu2",)]
    assert "the only GPU without it of NUMA node 1" in advice.groups[1].why
    assert "no mesh: the groups (2, 1 GPUs) have no size in common" in advice.left
    assert {one.kind for one in advice.snippets} == {"sbatch", "torchrun"}


def test_a_gpu_that_lost_its_links_is_a_group_of_its_own() -> None:
    cells = [" ".join(["X" if a == b else "NV18" for b in range(7)] + ["SYS"]) for a in range(7)]
    cells.append(" ".join(["SYS"] * 7 + ["X"]))
    advice = of(cells)
    assert [len(group.members) for group in advice.groups] == [7, 1]


def test_a_pair_without_its_link_leaves_the_group_whole_and_is_told() -> None:
    cells = even(8, "NV18")
    cells[0] = cells[0].replace("X NV18", "X SYS", 1)
    cells[1] = cells[1].replace("NV18 X", "SYS X", 1)
    groups = of(cells).groups
    assert [group.members for group in groups] == [EIGHT]
    assert "though not each two of them" in groups[0].why


def test_a_domain_of_a_rack_goes_beyond_the_host() -> None:
    host = placed(matrix(even(4, "NV18"), {}, ("0-71", "72-143")), gpus=_gpus(4, "0f3a-77"))
    assert "goes on into the other hosts of its rack, clique 3" in advise(host).groups[0].why
    host = placed(matrix(even(4, "NV18"), {}, ("0-71", "72-143")), gpus=_gpus(4, "0000-00"))
    assert "rack" not in advise(host).groups[0].why


def _gpus(count: int, cluster: str) -> tuple[Gpu, ...]:
    fabric = Fabric(cluster_uuid=cluster, clique_id="3")
    return tuple(Gpu(at, f"gpu{at}", f"00000000:{at:02x}:00.0", fabric=fabric)
                 for at in range(count))  # fmt: skip


def test_unknown_links_give_no_groups_but_the_reason() -> None:
    host = placed(dgx("NV18"))
    why = Missing("no-tool", "nvidia-smi is not installed")
    host = replace(host, topology=replace(host.topology, domains=why))
    advice = advise(host)
    assert advice.groups == ()
    assert len(advice.seats) == 8
    assert advice.left[0] == (
        "no groups: whether NVLink joins the GPUs is not known: nvidia-smi is not installed"
    )
