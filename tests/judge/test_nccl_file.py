"""NCCL's topology file held against the host: stale, of another machine, needed and not there."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from preflight.assemble.host import assemble
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.topology import GpuPlace, NicPlace, Topology
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.model import Missing, Raw, Result, Status
from tests.conftest import sample
from tests.lspci_text import flat, server
from tests.nccl_topo_text import CLOUD, DUMP, answer, naming
from tests.setup_text import NICS

CHECKS = [one for one in load(("topology",)).checks if one.id.startswith("topo.file.")]
METAL = "CPU(s): 8\nFlags: fpu\n"
GUEST = "CPU(s): 8\nHypervisor vendor: KVM\nFlags: fpu hypervisor\n"
X8 = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")


def host(**answers: str) -> Host:
    texts = {name.replace("_", "-"): text for name, text in answers.items()}
    return assemble("h", [Raw("h", name, (name,), 0, text) for name, text in texts.items()]).host


def of(host: Host) -> dict[str, Result]:
    return {one.check.rpartition(".")[2]: one for one in judge(host, CHECKS)}


def statuses(host: Host) -> dict[str, str]:
    return {name: one.status.value for name, one in of(host).items()}


def bare(file: str = DUMP, **answers: str) -> Host:
    asked = {"nccl_topo": answer(file), "lspci": server(), "lscpu": METAL, "nics": NICS}
    return host(**(asked | answers))


def test_a_dump_of_this_machine_agrees_with_it() -> None:
    assert statuses(bare()) == {
        "read": "PASS", "needed": "PASS", "devices": "SKIP", "tree": "PASS", "values": "PASS",
    }  # fmt: skip


def test_a_machine_without_a_file_needs_none() -> None:
    found = of(bare(nccl_topo="state none\nend\n"))
    assert {one.status for one in found.values()} == {Status.SKIP}
    assert "no virtual machine" in found["needed"].reason


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('speed="400000"', 'speed="200000"', "mlx5_0 at 200 Gbit/s, here 400"),
        ('numaid="0"', 'numaid="1"', "0000:18:00.0 on NUMA node 1, here 0"),
        ('link_width="16">\n        <gpu', 'link_width="8">\n        <gpu', "at x8, here x16"),
        ('PCIe" link_width="16">\n        <nic', 'PCIe" link_width="4">\n        <nic', "x4, here"),
        ('32.0 GT/s PCIe" link_width="16">\n        <gpu',
         '16.0 GT/s PCIe" link_width="16">\n        <gpu', "at GT/s 16, here GT/s 32"),
    ],
)  # fmt: skip
def test_what_is_stale_is_named(old: str, new: str, told: str) -> None:
    assert DUMP.count(old) == 1
    found = of(bare(DUMP.replace(old, new)))["values"]
    assert (found.status, told in found.reason) == (Status.WARN, True), found.reason
    assert found.evidence[0].line


def test_a_link_that_is_down_here_or_was_down_then() -> None:
    place = GpuPlace("gpu0", bus_id="00000000:19:00.0", nvlinks=12)
    joined = replace(bare(), topology=Topology(gpus=(place,)))
    assert "0000:19:00.0 with 18 NVLinks, here 12" in of(joined)["values"].reason


def test_two_ports_that_nccl_joins_have_the_sum() -> None:
    joined = DUMP.replace('name="mlx5_0"', 'name="mlx5_0+mlx5_1"')
    assert "at 400 Gbit/s, here 800" in of(bare(joined))["values"].reason
    both = joined.replace("400000", "800000")
    assert of(bare(both))["values"].status is Status.PASS


def test_on_bare_metal_the_file_of_a_cloud_stands_in_the_way() -> None:
    virtual = DUMP.replace("0000:16:00.0", "ffff:ff:01.0")
    found = of(bare(virtual))["tree"]
    assert found.status is Status.WARN
    assert "0000:19:00.0 below ffff:ff:01.0" in found.reason
    guest = of(bare(virtual, lscpu=GUEST))
    assert guest["tree"].status is Status.SKIP
    assert guest["values"].status is Status.PASS  # links and nodes are the hypervisor's choice


def test_a_file_of_another_machine_is_no_pass() -> None:
    found = of(bare(CLOUD))
    assert (found["tree"].status, found["values"].status) == (Status.SKIP, Status.SKIP)
    of_gpus = of(bare(CLOUD, nvidia_smi_q=X8))["devices"]
    assert of_gpus.status is Status.WARN
    assert "gpu0 at 00000000:19:00.0 is not in the file" in of_gpus.reason
    assert " more" in of_gpus.reason


def test_an_adapter_of_training_that_is_not_in_the_file() -> None:
    nics = (NicPlace("mlx5_0", "0000:18:00.0", role="training"),
            NicPlace("mlx5_8", "0000:99:00.0", role="training"),
            NicPlace("mlx5_9", "0000:9a:00.0", role="other"))  # fmt: skip
    one = replace(bare(nvidia_smi_q=X8), topology=Topology(nics=nics))
    gpu = one.gpus[0] if not isinstance(one.gpus, Missing) else None
    assert gpu is not None
    found = of(replace(one, gpus=(gpu,)))["devices"]
    assert found.reason == "mlx5_8 at 0000:99:00.0 is not in the file"


@pytest.mark.parametrize(
    ("told", "status", "reason"),
    [
        ("named shell\npath /x\nstate absent\nend\n", "WARN", "there is no such file"),
        ("named shell\npath /x\nstate denied\nend\n", "WARN", "may not read it"),
        (answer(DUMP[:900]), "FAIL", "NCCL stops at it: line 10"),
    ],
)
def test_a_file_that_cannot_be_read(told: str, status: str, reason: str) -> None:
    found = of(bare(nccl_topo=told))
    assert found["read"].status.value == status
    assert reason in found["read"].reason
    assert {found[name].status for name in ("tree", "values", "devices")} == {Status.SKIP}


def guest(**answers: str) -> Host:
    """Eight GPUs of a baseboard and adapters in a virtual machine, with no file."""
    passed = X8.replace("Mode               : None", "Mode               : Pass-Through")
    asked = {"nccl_topo": "state none\nend\n", "nvidia_smi_q": passed, "lspci": flat(),
             "nics": NICS, "lscpu": GUEST}  # fmt: skip
    return host(**(asked | answers))


def test_a_guest_of_eight_gpus_that_shows_no_pair_is_told_so() -> None:
    assert of(guest())["needed"].status is Status.WARN
    far = tuple(GpuPlace(f"gpu{at}", nic_path="PHB") for at in range(8))
    found = of(replace(guest(), topology=Topology(gpus=far)))["needed"]
    assert found.status is Status.WARN
    absent = of(guest(nccl_topo="named shell\npath /x\nstate absent\nend\n"))
    assert absent["needed"].status is Status.WARN


def _few(host: Host) -> Host:
    gpus: Any = host.gpus
    assert isinstance(gpus[0], Gpu)
    return replace(host, gpus=gpus[:2])


@pytest.mark.parametrize(
    ("other", "status"),
    [
        (guest(lspci=server()), "PASS"),  # GPU and adapter below one switch
        (replace(guest(), topology=Topology(gpus=(GpuPlace("gpu0", nic_path="PIX"),))), "PASS"),
        (guest(nccl_topo=answer(CLOUD)), "PASS"),
        (guest(nics=NICS.replace("nic mlx5_", "nic rdmap0s")), "SKIP"),
        (guest(nics="end\n"), "SKIP"),
        (_few(guest()), "SKIP"),
        (bare(naming(), lscpu=GUEST, nccl_topo="state none\nend\n"), "SKIP"),
    ],
)
def test_who_needs_none(other: Host, status: str) -> None:
    assert statuses(other)["needed"] == status


def test_a_dump_alone_can_be_held_against_nothing() -> None:
    assert set(statuses(host(nccl_topo=DUMP)).values()) == {"SKIP"}
