"""The bounds of collectives and of RDMA, against what was measured on sound and on broken machines.

Figures: the README files of coreweave/nccl-tests, crusoecloud/solutions-library and
stas00/ml-engineering, thresholds and reports of Azure, Oracle, NVIDIA/aicr and NVSentinel.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from preflight.expect.between import carriers
from preflight.expect.collectives import (
    collective_busbw,
    collective_nvls,
    collective_one_adapter,
)
from preflight.expect.rdma import payload_share, rdma_gbits
from preflight.facts.collectives import Collective, RdmaTest
from preflight.facts.host import Host
from preflight.facts.nccl import NcclAdapter, NcclHost, NcclLog, NcclSelection
from preflight.facts.nics import NicPort
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.model import Known, Missing, Status

GIB = 1 << 30
H100, H200, B200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200"
A100, GB200, GB300 = "NVIDIA A100-SXM4-80GB", "NVIDIA GB200", "NVIDIA GB300"
CHECKS = [one for one in load(("collectives",)).checks
          if one.id in ("collectives.busbw", "collectives.network")]  # fmt: skip


class Case(Struct, frozen=True):
    """A benchmark. `nics`: adapters of a host and their Gbit/s; `nvls`, `mnnvl` as a log tells."""

    product: str
    ranks: int
    hosts: int
    gib: float
    busbw: float
    nics: tuple[int, int] | None = None
    nvls: bool | None = None
    mnnvl: bool | None = None
    collective: str = "all_reduce"


def host_of(case: Case) -> Host:
    """A host with that benchmark."""
    ports = tuple(
        NicPort(f"mlx5_{at}/1", f"mlx5_{at}", state="ACTIVE", rate_gbits=float(case.nics[1]),
                role="training")
        for at in range(case.nics[0])
    ) if case.nics else Missing("not-in-input", "not in the input")  # fmt: skip
    unknown = Missing("not-in-input", "")
    log: Known[NcclLog] = unknown
    if case.nvls is not None or case.mnnvl is not None:
        told = [unknown if one is None else one for one in (case.nvls, case.mnnvl)]
        log = NcclLog(9, 9, hosts=(NcclHost("node-01", 8, 9, nvls=told[0], mnnvl=told[1]),))
    run = Collective(
        "all_reduce", "nccl-tests", case.collective, case.ranks, host_count=case.hosts,
        ranks_per_host=case.ranks // case.hosts, product=case.product, busbw_gbps=case.busbw,
        at_bytes=int(case.gib * GIB),
    )  # fmt: skip
    return Host("node-01", collectives=(run,), nic_ports=ports, nccl=log)


def verdicts(case: Case) -> dict[str, Status]:
    return {one.check.partition(".")[2]: one.status for one in judge(host_of(case), CHECKS)}


_8X400, _8X200 = (8, 400), (8, 200)
SOUND = [
    # One host.
    Case(A100, 8, 1, 8, 235.3), Case(A100, 8, 1, 1, 228.0), Case(A100, 2, 1, 8, 208.0),
    Case(H100, 8, 1, 8, 477.9), Case(H100, 8, 1, 8, 480.0, nvls=True), Case(H100, 8, 1, 8, 460.0),
    Case(H100, 8, 1, 8, 370.0, nvls=False), Case(H100, 8, 1, 8, 370.0),
    Case(H200, 8, 1, 16, 482.3, nvls=True), Case(H200, 8, 1, 8, 473.1, nvls=True),
    Case(H200, 8, 1, 8, 365.6, nvls=False), Case(H200, 8, 1, 8, 431.0),
    *(Case(H200, ranks, 1, 8, busbw, nvls=True)
      for ranks, busbw in {5: 414.0, 6: 436.0, 7: 460.0, 8: 473.0}.items()),
    Case(B200, 8, 1, 8, 838.0, nvls=True), Case(B200, 8, 1, 16, 845.7, nvls=True),
    Case(B200, 8, 1, 8, 682.2, nvls=False), Case(B200, 8, 1, 8, 682.2),
    # Several, over InfiniBand, RoCE, EFA and TCPXO.
    *(Case(H100, 64, 8, gib, busbw, _8X400)
      for gib, busbw in {1: 366.0, 2: 381.0, 4: 383.0, 8: 387.0}.items()),
    Case(H100, 64, 8, 8, 387.0, _8X400, nvls=True),
    Case(H100, 16, 2, 16, 489.0, (32, 100)), Case(H100, 16, 2, 16, 489.0, (32, 100), nvls=True),
    Case(H100, 16, 2, 16, 471.2, _8X400, nvls=True), Case(H100, 16, 2, 8, 338.0, _8X200),
    Case(H100, 16, 2, 8, 338.0, _8X200, nvls=True), Case(H200, 32, 4, 8, 350.0, _8X400),
    Case(B200, 32, 4, 8, 390.0, _8X400), Case(B200, 32, 4, 16, 381.8, _8X400, nvls=True),
    Case(B200, 32, 4, 1, 362.0, _8X400), Case(B200, 2048, 256, 8, 350.0, _8X400),
    Case(B200, 16, 2, 8, 374.6, _8X400, collective="all_gather"),
    Case(A100, 16, 2, 8, 187.7, _8X200), Case(A100, 16, 2, 2, 78.3, (4, 100)),
    # Racks, whose NVLink joins the hosts.
    *(Case(GB200, 72, 18, gib, busbw, (4, 400), nvls=True, mnnvl=True)
      for gib, busbw in {1: 681.0, 2: 758.0, 4: 835.0, 8: 847.0}.items()),
    *(Case(GB200, 144, 36, gib, busbw, (4, 400), nvls=True, mnnvl=True)
      for gib, busbw in {1: 596.0, 2: 680.0, 4: 743.0, 8: 793.0, 16: 810.0}.items()),
    Case(GB200, 72, 18, 8, 770.0, nvls=True, mnnvl=True),
    Case(GB300, 8, 2, 16, 841.2, nvls=True, mnnvl=True),
    Case(GB300, 8, 2, 8, 44.0, (1, 400), nvls=True, mnnvl=False),
    Case(GB300, 8, 2, 8, 387.0, _8X400, mnnvl=False),
    # Each by its own share of the adapters.
    Case(H100, 16, 2, 8, 85.0, _8X400, collective="alltoall"),
    Case(H100, 64, 8, 8, 48.0, _8X400, collective="alltoall"),
    Case(H100, 16, 2, 8, 46.0, _8X400, collective="sendrecv"),
    Case(H100, 16, 2, 8, 46.0, (32, 100), collective="sendrecv"),
    Case(A100, 16, 2, 8, 23.0, (4, 200), collective="sendrecv"),
    *(Case(H100, 16, 2, 8, 340.0, _8X400, collective=ring)
      for ring in ("all_gather", "reduce_scatter", "broadcast", "reduce")),
    Case(H100, 8, 1, 8, 340.0, collective="alltoall"),
    Case(H100, 8, 1, 8, 350.0, collective="sendrecv"),
]  # fmt: skip
BROKEN = [
    Case(H100, 16, 2, 8, 3.0, (32, 100)),
    Case(H100, 16, 2, 8, 3.0, (32, 100), nvls=True),
    Case(H100, 8, 1, 8, 150.0),
    Case(H100, 8, 1, 8, 250.0, nvls=False),
    Case(H100, 8, 1, 8, 330.0, nvls=True),
    Case(B200, 8, 1, 8, 440.0),
    Case(H100, 64, 8, 8, 191.0, _8X400),
    Case(A100, 8, 1, 8, 140.0),
    Case(GB200, 72, 18, 8, 300.0, nvls=True, mnnvl=True),
    Case(H100, 64, 8, 8, 150.0, _8X400),  # a floor in use
    Case(H100, 16, 2, 8, 40.0, _8X400, collective="alltoall"),
    Case(H100, 16, 2, 8, 10.0, _8X400, collective="sendrecv"),
    Case(H100, 8, 1, 8, 200.0, collective="alltoall"),
]
#: What no such hardware can.
BEYOND = [
    Case(H100, 8, 1, 8, 3000.0), Case(H100, 16, 2, 8, 600.0, _8X400), Case(A100, 8, 1, 8, 480.0),
    Case(H100, 16, 2, 8, 276.0, (1, 400)),
    Case(H100, 16, 2, 8, 300.0, _8X400, collective="alltoall"),
    Case(H100, 16, 2, 8, 300.0, _8X400, collective="sendrecv"),
]  # fmt: skip


@pytest.mark.parametrize("case", SOUND, ids=str)
def test_what_sound_machines_reach_is_normal(case: Case) -> None:
    told = verdicts(case)
    assert told["busbw"] is Status.PASS
    assert told["network"] in (Status.PASS, Status.SKIP)


@pytest.mark.parametrize("case", BROKEN, ids=str)
def test_what_broken_machines_reach_is_a_fault(case: Case) -> None:
    assert verdicts(case)["busbw"] is Status.FAIL


@pytest.mark.parametrize("case", BEYOND, ids=str)
def test_what_no_link_carries_is_not_of_this_run(case: Case) -> None:
    [told] = [one for one in judge(host_of(case), CHECKS) if one.check == "collectives.busbw"]
    assert told.status is Status.ERROR
    assert "not of this run" in told.reason


def test_collectives_that_no_source_tells_of_are_shown() -> None:
    for kind in ("gather", "scatter", "hypercube"):
        assert "no source" in reason(bound(Case(H100, 16, 2, 8, 40.0, _8X400, collective=kind)))
    either = Case(H100, 16, 2, 8, 80.0, _8X400, collective="all_gather or alltoall")
    assert "their bounds differ" in reason(bound(either))


def test_a_port_without_link_lowers_no_bound_and_is_named() -> None:
    host = host_of(Case(H100, 16, 2, 8, 276.0, _8X400))
    assert isinstance(host.nic_ports, tuple) and isinstance(host.collectives, tuple)
    lost = replace(host.nic_ports[0], state="DOWN", phys_state="Polling", rate_gbits=40.0,
                   usual_rate_gbits=400.0)  # fmt: skip
    cases = product(("Ethernet", "InfiniBand"), ("Polling", "Disabled"))
    for (layer, phys), count in zip(cases, (8, 8, 8, 7), strict=True):
        port = replace(lost, link_layer=layer, phys_state=phys)
        found = carriers(replace(host, nic_ports=(port, *host.nic_ports[1:])))
        assert not isinstance(found, Missing)
        assert (sum(found.rates_gbits), found.down) == (400 * count, ("mlx5_0",) * (count - 7))


def test_tcp_in_place_of_the_adapters_is_a_fault_without_knowing_them() -> None:
    told = verdicts(Case(H100, 16, 2, 8, 3.0))
    assert (told["busbw"], told["network"]) == (Status.SKIP, Status.FAIL)
    assert verdicts(Case(H100, 16, 2, 8, 340.0))["network"] is Status.PASS


def test_a_tenth_short_warns_and_a_third_short_fails() -> None:
    assert verdicts(Case(H100, 8, 1, 8, 372 * 0.86))["busbw"] is Status.PASS
    assert verdicts(Case(H100, 8, 1, 8, 372 * 0.80))["busbw"] is Status.WARN
    assert verdicts(Case(H100, 8, 1, 8, 372 * 0.68))["busbw"] is Status.FAIL


def reason(found: Any) -> str:
    assert isinstance(found, Missing)
    return found.text


def bound(case: Case) -> Any:
    host = host_of(case)
    assert isinstance(host.collectives, tuple)
    return collective_busbw(host, host.collectives[0])


def test_what_is_not_known_is_said() -> None:
    assert "add `ibstat`" in reason(bound(Case(H100, 16, 2, 8, 3.0)))
    assert "NCCL_DEBUG=INFO" in reason(bound(Case(GB200, 72, 18, 8, 500.0)))
    assert "more than two racks" in reason(bound(Case(GB200, 1440, 360, 8, 400.0, mnnvl=True)))
    assert "over PCIe" in reason(bound(Case("NVIDIA L40S", 8, 1, 8, 20.0)))
    assert "straight from GPU to GPU" in reason(bound(Case("Tesla V100-SXM2-32GB", 8, 1, 8, 120.0)))
    assert "add one" in reason(bound(Case("NVIDIA Graphics Device", 16, 2, 8, 49.8)))


def test_the_arithmetic_is_told() -> None:
    told = bound(Case(H100, 64, 8, 8, 387.0, _8X400, nvls=True))
    assert told.value == pytest.approx(381, abs=4)
    assert told.formula == (
        "8 adapters, 3200 Gb/s / 8 x 96%; less 64 ranks x 6 us in the time of 8 GiB"
    )


def test_adapters_are_those_that_nccl_lists() -> None:
    """Four of eight in its list: the bound is theirs, and the list is judged elsewhere."""
    case = Case(H100, 64, 8, 8, 300.0, _8X400)
    host = host_of(case)
    listed = tuple(NcclAdapter(f"mlx5_{at}") for at in range(4))
    log = NcclLog(9, 9, selections=(NcclSelection("node-01", "node-01", "IB", listed),))
    assert isinstance(host.collectives, tuple)
    half = collective_busbw(Host("a", nic_ports=host.nic_ports, nccl=log), host.collectives[0])
    assert not isinstance(half, Missing)
    assert half.value == pytest.approx(191, abs=2)
    without = collective_busbw(Host("a", nccl=log), host.collectives[0])
    assert "NCCL lists 4 adapters" in reason(without)


def test_one_adapter_is_of_whole_boards() -> None:
    host = host_of(Case(H100, 2, 2, 8, 3.0))
    assert isinstance(host.collectives, tuple)
    assert "four GPUs" in reason(collective_one_adapter(host, host.collectives[0]))


@pytest.mark.parametrize(
    ("layer", "mtu", "share"),
    [("Ethernet", 1024, 0.926), ("Ethernet", 4096, 0.980), ("InfiniBand", 4096, 0.994)],
)
def test_the_share_of_data(layer: str, mtu: int, share: float) -> None:
    assert payload_share(layer, mtu) == pytest.approx(share, abs=0.0005)


def test_rdma_is_held_against_the_rate_of_its_port() -> None:
    test = RdmaTest("a", "write", "bandwidth", "mlx5_0", link_layer="Ethernet", mtu_bytes=4096,
                    average_gbits=97.56)  # fmt: skip
    port = NicPort("mlx5_0/1", "mlx5_0", state="ACTIVE", rate_gbits=100.0)
    found = rdma_gbits(Host("a", nic_ports=(port,)), test)
    assert not isinstance(found, Missing)
    assert (found.value, found.formula) == (98.04, "100 Gb/s x 98.0% of data at MTU 4096")
    assert "what one of 100 Gb/s carries" in reason(rdma_gbits(Host("a"), test))


def test_what_is_lost_without_sums_is_told_unless_they_were_switched_off() -> None:
    def found(case: Case, *variables: str) -> Known[Any]:
        host = host_of(case)
        assert isinstance(host.collectives, tuple)
        return collective_nvls(host, replace(host.collectives[0], variables=variables))

    told = found(Case(H100, 8, 1, 8, 350.0, nvls=False))
    assert not isinstance(told, Missing)
    assert told.value == pytest.approx(482, abs=1)
    between = found(Case(H100, 16, 2, 8, 350.0, _8X400, nvls=False))
    assert not isinstance(between, Missing)
    for case, variables in (
        (Case(H100, 8, 1, 8, 350.0, nvls=False), ("NCCL_NVLS_ENABLE=0",)),
        (Case(H100, 8, 1, 8, 350.0, nvls=True), ()),
        (Case(H100, 8, 1, 8, 350.0), ()),  # the log does not tell
        (Case(A100, 8, 1, 8, 230.0, nvls=False), ()),  # its switches cannot
        (Case(H100, 16, 2, 8, 340.0, _8X200, nvls=False, collective="all_gather"), ()),
    ):
        assert isinstance(found(case, *variables), Missing)
