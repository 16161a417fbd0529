"""Every sample of `nvidia-smi topo` and `nvidia-smi nvlink`, and hosts as they are sold, as a
person who knows GPUs reads them: NVLink domains, the adapter of each GPU, and what is wrong."""

from __future__ import annotations

import time

import pytest

from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.facts.topology import Topology
from preflight.judge.load import load
from preflight.model import Missing, Raw, Status
from preflight.recognise import recognise
from tests import topology_text
from tests.conftest import SAMPLES, sample, sample_bytes

CHECKS = load(("topology",)).checks
ALL_8 = "gpu0 gpu1 gpu2 gpu3 gpu4 gpu5 gpu6 gpu7"
#: Its own adapter below one switch (PIX), by the legend.
H20 = " ".join(f"gpu{at}:mlx5_{at + 1}" for at in range(8))
DGX1 = (
    "gpu0:mlx5_0 gpu1:mlx5_0 gpu2:mlx5_1 gpu3:mlx5_1 gpu4:mlx5_2 gpu5:mlx5_2 gpu6:mlx5_3 "
    "gpu7:mlx5_3"
)
K80 = "gpu0:mlx4_0 gpu1:mlx4_0 gpu2:mlx4_0 gpu3:mlx4_0"

#: Sample -> domains with the links between two GPUs ("?": not told by this input), the nearest
#: adapters of training of each GPU, findings.
TABLE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "topo/h20_x8_8nic_pix_pairs_tabs.txt": ("gpu[0-7]:18", H20, ()),
    # A hybrid cube mesh: SYS between some pairs is its design, one link or two between the others.
    "topo/dgx1_v100_x8_4hca_tabs.txt": ("gpu[0-7]:1", DGX1, ()),
    "topo/h100_x8_vm_no_nic_tabs.txt": ("gpu[0-7]:18", "", ("WARN topo.gpu.nodes input",)),
    "topo/x8_all_sys_no_nvlink_tabs.txt": ("", "", ("WARN topo.path.node input",)),
    "topo/k80_x4_mlx4_old_soc_legend_spaces.txt": ("", K80, ()),
    "topo/h100_x8_no_nic_spaces.txt": ("gpu[0-7]:18", "", ()),
    "topo/a100_x8_nv12_no_nic_spaces.txt": ("gpu[0-7]:12", "", ()),
    "topo/h100_x8_nv18_52core_no_nic_spaces.txt": ("gpu[0-7]:18", "", ()),
    "topo/h100_x8_p2p_r_all_ok.txt": ("?", "", ()),
    "topo/l4_x2_p2p_chipset_not_supported.txt": ("?", "", ("WARN topo.gpu.p2p gpu0 gpu1",)),
    "topo/k80_x4_p2p_matrix.txt": ("?", "", ("WARN topo.gpu.p2p gpu0 gpu1 gpu2 gpu3",)),
    # Eight GPUs of a board with NVSwitches, all links up: one domain without a matrix.
    "nvlink/a100_sxm4_x8_status.txt": ("gpu[0-7]:12", "", ()),
    "nvlink/a100_sxm4_gpu7_status.txt": ("?", "", ()),
    "nvlink/a100_sxm4_gpu6_all_links_inactive.txt": ("?", "", ()),
    "nvlink/a100_sxm4_gpu0_status_two_space_indent.txt": ("?", "", ()),
    "nvlink/h100_gpu0_status_then_capabilities.txt": ("?", "", ()),
    "nvlink/h100_errorcounters_excerpt.txt": ("?", "", ()),
    "nvlink/h100_status_excerpt.txt": ("?", "", ()),
}  # fmt: skip


def raws_of(text: bytes) -> list[Raw]:
    return list(recognise(text, "topo.txt"))


def domains(topology: Topology) -> str:
    if isinstance(topology.domains, Missing):
        return "?"
    return " ".join(f"{one.name}:{one.nvlinks}" for one in topology.domains)


def pairs(topology: Topology) -> str:
    assert not isinstance(topology.gpus, Missing)
    known = [gpu for gpu in topology.gpus if not isinstance(gpu.nics, Missing)]
    return " ".join(f"{gpu.name}:{','.join(gpu.nics)}" for gpu in known)  # type: ignore[arg-type]


def findings(raws: list[Raw]) -> tuple[str, ...]:
    found: dict[str, list[str]] = {}
    for one in examine("input", raws, CHECKS).results:
        if one.status not in (Status.PASS, Status.SKIP):
            found.setdefault(f"{one.status.value} {one.check}", []).append(one.subject)
    return tuple(f"{head} {' '.join(subjects)}" for head, subjects in found.items())


def told(raws: list[Raw]) -> tuple[str, str, tuple[str, ...]]:
    topology = assemble("input", raws).host.topology
    return domains(topology), pairs(topology), findings(raws)


@pytest.mark.parametrize("name", TABLE)
def test_a_sample_is_read_as_a_person_reads_it(name: str) -> None:
    assert told(raws_of(sample_bytes(name))) == TABLE[name]


def test_no_sample_is_left_out() -> None:
    have = {f"{folder}/{path.name}" for folder in ("topo", "nvlink")
            for path in (SAMPLES / folder).iterdir()}  # fmt: skip
    assert have == set(TABLE)


RAILS = " ".join(f"gpu{at}:mlx5_{at}" for at in range(8))
X8 = "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"


def cube(one: int, other: int) -> str:
    """HGX with four A100: each is joined to each by four links, without switches."""
    return "NV4"


def quad(one: int, other: int) -> str:
    """Four GPUs of a DGX-1, as a virtual machine is given them."""
    return {(0, 3): "NV2", (1, 2): "NV2", (2, 3): "NV2"}.get(
        (min(one, other), max(one, other)), "NV1"
    )


def storage(gpu: int, nic: int) -> str:
    """Eight adapters beside their GPUs, and two for storage, as in a DGX A100."""
    return topology_text.rail(gpu, nic) if nic < 8 else "NODE" if gpu // 4 == nic - 8 else "SYS"


TEN = [f"mlx5_{at}" for at in range(10)]
#: Host as it is sold, or with one fault -> the same.
HOSTS: dict[str, tuple[str, tuple[str, str, tuple[str, ...]]]] = {
    "HGX H100": (topology_text.hgx(), ("gpu[0-7]:18", RAILS, ())),
    "DGX A100 with adapters for storage": (
        topology_text.matrix(8, lambda *_: "NV12", nics=TEN, near=storage),
        ("gpu[0-7]:12", RAILS, ()),
    ),
    "HGX with four A100": (topology_text.matrix(4, cube), ("gpu[0-3]:4", "", ())),
    "half of a DGX-1": (topology_text.matrix(4, quad), ("gpu[0-3]:1", "", ())),
    "PCIe cards, one adapter": (
        topology_text.pcie(), ("", " ".join(f"gpu{at}:mlx5_0" for at in range(8)), ()),
    ),
    "PCIe cards, bridges": (
        topology_text.pcie(bridges=True),
        ("gpu[0-1]:4 gpu[2-3]:4 gpu[4-5]:4 gpu[6-7]:4",
         " ".join(f"gpu{at}:mlx5_0" for at in range(8)), ()),
    ),
    "two of four cards with a bridge": (
        topology_text.matrix(4, lambda a, b: "NV12" if {a, b} == {0, 1} else "NODE"),
        ("gpu[0-1]:12", "", ()),
    ),
    "one GPU": (topology_text.matrix(1, lambda *_: "X"), ("", "", ())),
    "a link less on one GPU": (
        topology_text.hgx(odd={3: "NV17"}),
        ("gpu[0-7]:17", RAILS, ("FAIL topo.gpu.peers.same input",)),
    ),
    "no NVLink on one GPU": (
        topology_text.hgx(odd={7: "SYS"}),
        ("gpu[0-6]:18", RAILS, ("FAIL topo.gpu.peers.same input",)),
    ),
    "the adapter of one GPU is gone": (
        topology_text.hgx(nics=7),
        ("gpu[0-7]:18", RAILS.replace("gpu7:mlx5_7", "gpu7:mlx5_4,mlx5_5,mlx5_6"),
         ("WARN topo.gpu.nic.near gpu7",)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_is_judged_by_its_matrix_alone(name: str) -> None:
    text, expected = HOSTS[name]
    assert told(raws_of(text.encode())) == expected


def test_the_odd_gpu_is_named() -> None:
    raws = raws_of(topology_text.hgx(odd={3: "NV17"}).encode())
    (found,) = [one for one in examine("input", raws, CHECKS).results if one.status is Status.FAIL]
    assert found.measured == "gpu3 7 x NV17; the others 6 x NV18, 1 x NV17"


def test_one_link_on_an_h100_is_a_fault_of_that_gpu_by_its_model() -> None:
    text = topology_text.hgx(odd={3: "NV1"}) + "\n" + sample(X8)
    found = findings(raws_of(text.encode()))
    assert found[0] == "FAIL topo.gpu.nvlinks gpu3"
    results = examine("input", raws_of(text.encode()), CHECKS).results
    (one,) = [each for each in results if each.subject == "gpu3" and each.status is Status.FAIL]
    assert one.measured == 1
    assert "26.562 GB/s each way in every link" in one.expected


def test_all_gpus_with_too_few_links_are_no_majority_that_is_right() -> None:
    text = topology_text.hgx(links=9) + "\n" + sample(X8)
    assert findings(raws_of(text.encode())) == (f"FAIL topo.gpu.nvlinks {ALL_8}",)


def test_sixteen_gpus_and_adapters_take_milliseconds() -> None:
    names = [f"mlx5_{at}" for at in range(16)]
    text = topology_text.matrix(16, lambda *_: "NV6", nics=names, near=topology_text.rail)
    raws = raws_of(text.encode())
    assemble("input", raws)
    best = min(_assembled_s(raws) for _ in range(5))
    assert best < 0.03


def _assembled_s(raws: list[Raw]) -> float:
    began = time.perf_counter()
    host = assemble("input", raws).host
    took = time.perf_counter() - began
    assert domains(host.topology) == "gpu[0-15]:6"
    return took
