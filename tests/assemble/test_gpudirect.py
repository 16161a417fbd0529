"""What lends GPU memory to network adapters, and which hosts need nvidia-imex."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from preflight.assemble.software.gpudirect import gpudirect, imex
from preflight.facts.gpu import Fabric, Gpu
from preflight.facts.host import Host, Identity
from preflight.facts.nics import NicPort
from preflight.facts.services import DriverModule, Service, Services
from preflight.model import Missing

GPU = Gpu(0, "gpu0", "00000000:1b:00.0", product="NVIDIA H100 80GB HBM3")
FAST = NicPort("mlx5_0/1", "mlx5_0", state="ACTIVE", rate_gbits=400.0, link_layer="InfiniBand")
OPEN = DriverModule(version="570.124.06", flavour="open", peermem=False)


def host(**facts: Any) -> Host:
    known: dict[str, Any] = {"gpus": (GPU,), "nic_ports": (FAST,), "driver_module": OPEN,
             "identity": Identity("node-07", kernel="5.15.0-94-generic")}  # fmt: skip
    return Host("node-07", **(known | facts))


def test_peermem_or_dma_buf_or_none() -> None:
    assert gpudirect(host()) == "dma-buf"
    assert gpudirect(host(driver_module=DriverModule(flavour="open", peermem=True))) == "peermem"
    closed = DriverModule(flavour="proprietary", peermem=False)
    assert gpudirect(host(driver_module=closed)) == "none"
    assert gpudirect(host(identity=Identity("n", kernel="5.4.0-100"))) == "none"


def test_an_adapter_that_is_renamed_is_known_by_its_type() -> None:
    closed = DriverModule(flavour="proprietary", peermem=False)
    port = replace(FAST, name="ibp65s0/1", nic="ibp65s0", hca="MT4129")
    assert gpudirect(host(nic_ports=(port,), driver_module=closed)) == "none"


@pytest.mark.parametrize("port", [
    NicPort("mlx5_0/1", "mlx5_0", state="DOWN", rate_gbits=400.0, link_layer="InfiniBand"),
    NicPort("mlx5_0/1", "mlx5_0", state="ACTIVE", rate_gbits=25.0, link_layer="Ethernet"),
    NicPort("mlx5_0/1", "mlx5_0", state="ACTIVE", rate_gbits=100.0, link_layer="Ethernet"),
    NicPort("efa_0/1", "efa_0", state="ACTIVE", rate_gbits=400.0, link_layer="Ethernet"),
    NicPort("mlx5_0/1", "mlx5_0", state="ACTIVE"),
])  # fmt: skip
def test_a_host_without_a_network_for_training_needs_none(port: NicPort) -> None:
    found = gpudirect(host(nic_ports=(port,), driver_module=DriverModule(peermem=False)))
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"


@pytest.mark.parametrize("part", ["gpus", "nic_ports", "driver_module"])
def test_what_is_not_known_stays_unknown(part: str) -> None:
    denied = Missing("denied", "not permitted")
    assert gpudirect(host(**{part: denied})) == denied
    unknown = DriverModule(flavour="open")  # its modules were not listed
    assert isinstance(gpudirect(host(driver_module=unknown)), Missing)


def grace(uuid: str) -> Gpu:
    fabric = Fabric(state="Completed", cluster_uuid=uuid)
    return Gpu(0, "gpu0", "00000000:1b:00.0", product="NVIDIA GB200", fabric=fabric)


RACK = grace("0000feed-0000-4000-8000-000000000001")


@pytest.mark.parametrize(("gpu", "units", "state"), [
    (RACK, (Service("nvidia-imex", load="loaded", active="active"),), "active"),
    (RACK, (Service("nvidia-imex", load="loaded", active="failed"),), "failed"),
    (RACK, (Service("nvidia-imex", load="not-found", active="inactive"),), "not installed"),
    (RACK, (), "not installed"),
])  # fmt: skip
def test_a_rack_needs_the_service(gpu: Gpu, units: tuple[Service, ...], state: str) -> None:
    assert imex(host(gpus=(gpu,), services=Services(units=units))) == state


def test_a_host_whose_nvlink_ends_in_it_does_not() -> None:
    alone = grace("00000000-0000-0000-0000-000000000000")
    untold = Gpu(0, "gpu0", "00000000:1b:00.0", product="NVIDIA GB200")
    for gpu in (GPU, alone, untold):
        found = imex(host(gpus=(gpu,), services=Services(units=())))
        assert isinstance(found, Missing)
        assert found.kind == "not-applicable"
    denied = Missing("denied", "not permitted")
    assert imex(host(gpus=(RACK,), services=denied)) == denied
