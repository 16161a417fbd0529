"""The advice on a recorded matrix, read by the product, agrees with the cells of that matrix, which
are read here by other code."""

from __future__ import annotations

import pytest

from preflight.assemble.host import assemble
from preflight.facts.topology import PATHS
from preflight.model import Advice
from preflight.placement.advice import advise
from preflight.recognise import recognise
from tests.conftest import SAMPLES, sample_bytes
from tests.placed_hosts import Cells, read

MATRICES = sorted(
    path.name
    for path in (SAMPLES / "topo").iterdir()
    if path.suffix == ".txt" and "p2p" not in path.name
)


def _advised(name: str) -> tuple[Advice, Cells, dict[str, str]]:
    data = sample_bytes(f"topo/{name}")
    host = assemble("node-01", recognise(data, name)).host
    cells, cpus, _ = read(data.decode().replace("SOC", "SYS"))
    return advise(host), cells, cpus


@pytest.mark.parametrize("name", MATRICES)
def test_each_seat_has_the_best_adapter_and_processors_of_its_node(name: str) -> None:
    advice, cells, cpus = _advised(name)
    gpus = [one for one in dict.fromkeys(a for a, _ in cells) if one.startswith("gpu")]
    nics = [one for one in dict.fromkeys(a for a, _ in cells) if not one.startswith("gpu")]
    assert sorted(seat.gpu for seat in advice.seats) == sorted(gpus)
    for seat in advice.seats:
        best = min((PATHS.index(cells[seat.gpu, nic]) for nic in nics), default=None)
        assert {PATHS.index(cells[seat.gpu, nic]) for nic in seat.nics} == (
            set() if best is None else {best}
        )
        assert seat.why
        assert seat.cpus == "" or seat.cpus.split("-")[0].isdecimal()
        assert cpus[seat.gpu]


@pytest.mark.parametrize("name", MATRICES)
def test_gpus_of_a_group_are_joined_and_every_export_says_why(name: str) -> None:
    advice, cells, _ = _advised(name)
    for group in advice.groups:
        paths = {cells[a, b][:2] for a in group.members for b in group.members if a != b}
        assert len(paths) <= 1 or "NV" not in paths, (group, paths)
        assert group.why
    for export in advice.exports:
        assert export.why
        assert export.name.startswith(("NCCL_", "GLOO_", "CUDA_"))
