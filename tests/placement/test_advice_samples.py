"""Advice for real machines agrees with what their matrices show."""

from __future__ import annotations

import pytest

from preflight.model import Advice
from preflight.placement.advice import advise
from tests.conftest import sample
from tests.placed_hosts import dgx, nearest, placed, read

#: sample -> groups by their GPUs' numbers, processors of ranks 0 and 7 (the last), both bindings.
TABLE: dict[str, tuple[list[str], str, str, str, str]] = {
    "h20_x8_8nic_pix_pairs_tabs.txt": (
        ["01234567"], "0-11,96-107", "84-95,180-191",
        "numactl --cpunodebind=0 --membind=0", "numactl --cpunodebind=1 --membind=1"),
    "dgx1_v100_x8_4hca_tabs.txt": (
        ["0123", "4567"], "0-4,40-44", "35-39,75-79",
        "taskset -c 0-19,40-59", "taskset -c 20-39,60-79"),
    "h100_x8_vm_no_nic_tabs.txt": (["01234567"], "0-7", "56-63", "", ""),
    "x8_all_sys_no_nvlink_tabs.txt": (
        ["0123", "4567"], "0-3,32-35", "28-31,60-63",
        "numactl --cpunodebind=0 --membind=0", "numactl --cpunodebind=1 --membind=1"),
    "k80_x4_mlx4_old_soc_legend_spaces.txt": (["01", "23"], "0-2", "9-11", "", ""),
    "h100_x8_no_nic_spaces.txt": (
        ["01234567"], "0-12,104-116", "91-103,195-207",
        "numactl --cpunodebind=0 --membind=0", "numactl --cpunodebind=1 --membind=1"),
    "a100_x8_nv12_no_nic_spaces.txt": (
        ["01234567"], "0-5", "42-47",
        "numactl --cpunodebind=0 --membind=0", "numactl --cpunodebind=1 --membind=1"),
    "h100_x8_nv18_52core_no_nic_spaces.txt": (
        ["01234567"], "0-12", "91-103",
        "numactl --cpunodebind=0 --membind=0", "numactl --cpunodebind=1 --membind=1"),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_samples_get_the_advice_that_their_matrix_asks_for(name: str) -> None:
    groups, first, last, bind_first, bind_last = TABLE[name]
    advice = advise(placed(sample(f"topo/{name}")))
    assert ["".join(one[3:] for one in group.members) for group in advice.groups] == groups
    seats = advice.seats
    assert (seats[0].cpus, seats[-1].cpus) == (first, last)
    assert (seats[0].bind, seats[-1].bind) == (bind_first, bind_last)
    explained(advice)


def explained(advice: Advice) -> None:
    """Each line has its reason."""
    for part in (advice.groups, advice.seats, advice.exports):
        assert all(one.why for one in part)
    assert all(": " in line for line in advice.left)


MATRICES = [*(f"topo/{name}" for name in TABLE), "DGX A100", "DGX H100"]


@pytest.mark.parametrize("name", MATRICES)
def test_each_seat_has_the_best_adapters_of_the_matrix(name: str) -> None:
    """And all ranks of one node lie within its processors, none of which two ranks share."""
    text = sample(name) if name.startswith("topo/") else dgx("NV18" if "H100" in name else "NV12")
    other = [] if name.startswith("topo/") else ["mlx5_8", "mlx5_9"]
    cells, _, _ = read(text)
    adapters = [b for a, b in cells if a == "gpu0" and not b.startswith("gpu") and b not in other]
    advice = advise(placed(text, other=other))
    for seat in advice.seats:
        path, best = nearest(cells, seat.gpu, adapters)
        assert seat.nics == best
        assert not best or f"nearest adapters by {path}" in seat.why
    grouped = [name for group in advice.groups for name in group.members]
    assert grouped == [seat.gpu for seat in advice.seats]
    assert len({seat.cpus for seat in advice.seats}) == len(advice.seats)


def test_groups_hold_no_pair_that_the_matrix_joins_worse() -> None:
    """Of NVLink hosts: each two of a group have it."""
    for name in TABLE:
        text = sample(f"topo/{name}")
        cells, _, _ = read(text)
        for group in advise(placed(text)).groups:
            if "NVLink joins" in group.why:
                pairs = [cells[a, b] for a in group.members for b in group.members if a != b]
                assert all(cell.startswith("NV") for cell in pairs)
