"""NCCL's log judged: silent fall-backs fail with what they cost, healthy jobs pass, and what cannot
be told never does."""

from __future__ import annotations

import re
from typing import Any

import pytest

from preflight import runbooks
from preflight.facts.host import Host, Identity
from preflight.facts.nics import Netdev, NicPort
from preflight.facts.topology import GpuPlace, Link, NicPlace, NvlinkDomain, Topology
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.judge.nccl.troubles import table
from preflight.logs.nccl.log import nccl_log
from preflight.model import Result, Status
from preflight.nccl_text import parted
from tests.conftest import sample
from tests.nccl_lines import OLD, WARN_ONLY, Job, on_sockets, wrong

CHECKS = load(["nccl"]).checks
GPUS = [f"gpu{n}" for n in range(8)]
#: Eight GPUs on NVSwitches, an adapter beside each.
TOPOLOGY = Topology(
    "nvidia-smi topo",
    tuple(
        GpuPlace(name, f"0000:{n + 1}b:00.0", nic_path="PIX", nics=(f"mlx5_{n}",))
        for n, name in enumerate(GPUS)
    ),
    tuple(NicPlace(f"mlx5_{n}", role="training") for n in range(8)),
    tuple(Link(a, b, "NV", 18) for n, a in enumerate(GPUS) for b in GPUS[n + 1 :]),
    (NvlinkDomain("gpu[0-7]", tuple(GPUS), 18, even=True, complete=True),),
)
PORTS = tuple(
    NicPort(f"mlx5_{n}/1", f"mlx5_{n}", state="ACTIVE", rate_gbits=400.0, link_layer="InfiniBand")
    for n in range(8)
)
NETDEVS = (Netdev("eth0", rate_gbits=100.0),)


def judged(text: str, **known: Any) -> list[Result]:
    mine, _ = parted(text)
    return judge(Host("input", nccl=nccl_log(mine), **known), CHECKS)


def off(text: str, **known: Any) -> dict[str, list[Result]]:
    """What neither passes nor is skipped, by check."""
    found: dict[str, list[Result]] = {}
    for one in judged(text, **known):
        if one.status not in (Status.PASS, Status.SKIP):
            found.setdefault(one.check, []).append(one)
    return found


def only(text: str, check: str, **known: Any) -> Result:
    """The one result that does not pass."""
    found = off(text, **known)
    assert list(found) == [check]
    [one] = found[check]
    return one


def status_of(check: str, text: str, **known: Any) -> set[Status]:
    return {one.status for one in judged(text, **known) if one.check == check}


def test_a_healthy_job_passes_whatever_is_known_of_the_host() -> None:
    assert off(Job().text()) == {}
    known = {"nic_ports": PORTS, "topology": TOPOLOGY, "netdevs": NETDEVS}
    found = judged(Job().text(), **known)
    told = {one.check for one in found if one.status is Status.PASS}
    assert told == {check.id for check in CHECKS} - {"nccl.graphs"}  # GRAPH was not asked for
    assert {one.status for one in found} == {Status.PASS, Status.SKIP}


@pytest.mark.parametrize("version", OLD)
def test_old_and_new_versions_have_no_failure(version: str) -> None:
    found = [one for results in off(OLD[version]).values() for one in results]
    assert {one.status for one in found} <= {Status.WARN}


def test_sockets_beside_live_infiniband_fail_with_what_lies_idle() -> None:
    known = {"nic_ports": PORTS, "netdevs": NETDEVS, "topology": TOPOLOGY}
    found = off(on_sockets([0, 1]).text(), **known)
    assert set(found) == {"nccl.network"}
    assert [(one.subject, one.status) for one in found["nccl.network"]] == [
        ("node-01", Status.FAIL), ("node-02", Status.FAIL),
    ]  # fmt: skip
    reason = found["nccl.network"][0].reason
    assert reason == "8 x 400 Gb/s InfiniBand idle; eth0 of 100 Gb/s used"


def test_the_variable_that_did_it_is_named() -> None:
    job = on_sockets([0, 1])
    job.before[0].append("NCCL_IB_DISABLE set by environment to 1.")
    first, second = off(job.text(), nic_ports=PORTS)["nccl.network"]
    assert first.reason.endswith("NCCL_IB_DISABLE=1 is set")
    assert "NCCL_IB_DISABLE" not in second.reason


def test_one_host_on_sockets_among_others_fails_by_the_log_alone() -> None:
    one = off(on_sockets([1]).text())["nccl.network"][0]
    assert (one.subject, one.status) == ("node-02", Status.FAIL)
    assert "node-01 uses IB" in one.reason


def test_ranks_that_go_over_sockets_while_others_do_not_are_named() -> None:
    """Whatever the processes said that they use."""
    text = re.sub(r"(\b3\[3\] .*NET/)IB/3/GDRDMA", r"\1Socket/0", Job().text())
    for known in ({}, {"nic_ports": PORTS}, {"nic_ports": ()}):
        first, second = off(text, **known)["nccl.network"]
        assert (first.status, first.measured) == (Status.FAIL, "IB, Socket")
        assert first.reason == ("ranks 11 -> 3, 3 -> 11 over Socket, others of this host over IB")
        assert (second.subject, second.status) == ("node-02", Status.FAIL)
        assert "via NET/Socket" in text.splitlines()[(first.evidence[0].line or 0) - 1]


def test_two_communicators_of_which_one_goes_over_sockets_are_told() -> None:
    both = Job().text() + on_sockets([0, 1]).text().replace("0x5eaf00d", "0x5eaf00e")
    first, _ = off(both)["nccl.network"]
    assert (first.status, first.measured) == (Status.FAIL, "IB, Socket")
    assert first.reason.startswith("ranks 8 -> 0, 0 -> 8, 9 -> 1 and 13 more over Socket")


def test_processes_that_took_sockets_are_named_before_any_connection_is_made() -> None:
    text = re.sub(r"(?m)^node-0(\d):\d+:\d+ \[3\].*(NET/IB|network IB).*\n", "", Job().text())
    third = "node-01:4003:4103 [3] NCCL INFO "
    text += f"{third}NET/Socket : Using [0]eth0:10.0.0.1<0>\n{third}Using network Socket\n"
    text = re.sub(r"(?m)^.* via .*\n", "", text)
    one = only(text, "nccl.network")
    assert (one.subject, one.status) == ("node-01", Status.FAIL)
    assert one.reason == "gpu3 over Socket, others of this host over IB"


def test_sockets_are_right_where_no_port_lives() -> None:
    down = tuple(NicPort(one.name, one.nic, state="DOWN") for one in PORTS)
    assert status_of("nccl.network", on_sockets([0, 1]).text(), nic_ports=down) == {Status.PASS}
    assert status_of("nccl.network", on_sockets([0, 1]).text(), nic_ports=()) == {Status.PASS}


def test_sockets_between_unknown_hosts_warn_however_few_their_gpus() -> None:
    for gpus in (8, 4, 1):
        job = on_sockets([0, 1], Job(gpus=gpus)).text()
        assert status_of("nccl.network", job) == {Status.WARN}


def test_the_log_of_one_of_several_small_hosts_on_sockets_warns() -> None:
    first, _, _ = on_sockets([0, 1], Job(gpus=1)).text().partition("node-02")
    assert status_of("nccl.network", first) == {Status.WARN}


def _on_libfabric(provider: str) -> Job:
    job = Job()
    for host in range(2):
        job.listed[host] = f"NET/OFI Selected Provider is {provider} (found 1 nics)"
        job.network[host] = "AWS Libfabric"
    return job


@pytest.mark.parametrize("provider", ["tcp;ofi_rxm", "sockets", "udp;ofi_rxd"])
def test_libfabric_over_tcp_is_told_as_tcp(provider: str) -> None:
    job = _on_libfabric(provider)
    job.gpudirect = {0: "", 1: ""}
    found = off(job.text())
    assert set(found) == {"nccl.network"}
    one = found["nccl.network"][0]
    assert (one.status, one.measured) == (Status.WARN, f"AWS Libfabric over {provider}")
    ports = off(job.text(), nic_ports=PORTS)["nccl.network"]
    assert {each.status for each in ports} == {Status.FAIL}


def test_libfabric_over_its_adapters_passes() -> None:
    assert off(_on_libfabric("efa").text()) == {}
    job = _on_libfabric("efa")
    job.listed[1] = "NET/OFI Selected Provider is tcp;ofi_rxm (found 1 nics)"
    one = off(job.text())["nccl.network"][0]
    assert (one.subject, one.status) == ("node-02", Status.FAIL)
    assert "node-01 uses AWS Libfabric over efa" in one.reason


def test_sockets_within_one_host_carry_nothing() -> None:
    alone = on_sockets([0], Job(hosts=1)).text()
    assert status_of("nccl.network", alone, nic_ports=PORTS) == {Status.SKIP}


def test_facts_of_another_host_do_not_count() -> None:
    known = {"nic_ports": PORTS, "identity": Identity("node-02")}
    first, second = off(on_sockets([0, 1]).text(), **known)["nccl.network"]
    assert (first.status, second.status) == (Status.WARN, Status.FAIL)


def test_ethernet_ports_beside_sockets_warn() -> None:
    roce = tuple(
        NicPort(one.name, one.nic, state="ACTIVE", rate_gbits=100.0, link_layer="Ethernet")
        for one in PORTS[:2]
    )
    assert status_of("nccl.network", on_sockets([0, 1]).text(), nic_ports=roce) == {Status.WARN}


def test_a_list_with_one_of_eight_adapters_fails() -> None:
    job = Job()
    for host in range(2):
        job.listed[host] = "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>"
        job.before[host] = ["NCCL_IB_HCA set by environment to mlx5_0"]
    job.adapter = lambda _: 0
    one = off(job.text(), nic_ports=PORTS)["nccl.adapters.listed"][0]
    assert (one.status, one.measured, one.expected) == (Status.FAIL, 1, "at least 8")
    assert one.reason == "7 of 8 x 400 Gb/s InfiniBand idle; NCCL_IB_HCA=mlx5_0 is set"


def test_slower_ports_of_the_hosts_own_are_not_missed() -> None:
    own = tuple(
        NicPort(f"mlx5_{n}/1", f"mlx5_{n}", state="ACTIVE", rate_gbits=100.0, link_layer=layer)
        for n, layer in ((8, "InfiniBand"), (9, "Ethernet"))
    )
    assert status_of("nccl.adapters.listed", Job().text(), nic_ports=PORTS + own) == {Status.PASS}
    fallen = off(on_sockets([0, 1]).text(), nic_ports=PORTS + own)["nccl.network"][0]
    assert fallen.reason == "8 x 400 Gb/s InfiniBand idle; eth0 used"


def test_storage_that_a_variable_leaves_out_is_not_missed() -> None:
    more = tuple(
        NicPort(f"mlx5_{n}/1", f"mlx5_{n}", state="ACTIVE", rate_gbits=400.0,
                link_layer="InfiniBand")
        for n in (8, 9)
    )  # fmt: skip
    job = Job()
    assert status_of("nccl.adapters.listed", job.text(), nic_ports=PORTS + more) == {Status.FAIL}
    for host in range(2):
        job.before[host] = ["NCCL_IB_HCA set by environment to =mlx5_0,mlx5_1,mlx5_2,mlx5_3"]
    assert status_of("nccl.adapters.listed", job.text(), nic_ports=PORTS + more) == {Status.PASS}


def test_one_adapter_of_eight_in_use_fails() -> None:
    job = Job()
    job.adapter = lambda _: 0
    found = off(job.text())
    assert list(found) == ["nccl.adapters.used"]
    assert found["nccl.adapters.used"][0].measured == 12.5


def test_interfaces_of_sockets_are_no_adapters_in_use() -> None:
    job = Job()
    job.adapter = lambda _: 0
    ways = [f"NET/{way}" for number in range(8) for way in ("IB/0", f"Socket/{number}")]
    first, *more = re.split(r"NET/IB/0(?=/)", job.text())
    mixed = first + "".join(f"{ways[at % 16]}{text}" for at, text in enumerate(more))
    assert "NET/Socket/7/" in mixed
    assert off(mixed)["nccl.adapters.used"][0].measured == 12.5
    alone = re.sub(r"NET/IB/0(?=/)", "NET/Socket/0", job.text())
    assert status_of("nccl.adapters.used", alone) == {Status.SKIP}


def test_a_log_that_ends_early_says_nothing_of_adapters_in_use() -> None:
    job = Job()
    job.adapter = lambda _: 0
    cut = job.text().partition("node-01:4003:4103")[0]
    assert status_of("nccl.adapters.used", cut) == {Status.SKIP}


def test_the_host_with_fewer_adapters_is_named() -> None:
    job = Job(hosts=3)
    job.listed[2] = "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB"
    job.listed[2] += " [4]mlx5_4:1/IB [5]mlx5_5:1/IB [6]mlx5_6:1/IB [RO]; OOB eth0:10.0.0.3<0>"
    one = off(job.text())["nccl.adapters.same"][0]
    assert one.measured == "node-03 7; the others 8"


def test_no_gpudirect_fails_beside_an_adapter_and_is_right_far_from_it() -> None:
    job = Job()
    job.gpudirect = {0: "", 1: ""}
    near = off(job.text(), topology=TOPOLOGY)["nccl.gpudirect"][0]
    assert (near.status, near.measured) == (Status.FAIL, "0 of 8 connections")
    far = Topology(gpus=tuple(GpuPlace(name, nic_path="SYS") for name in GPUS))
    assert status_of("nccl.gpudirect", job.text(), topology=far) == {Status.SKIP}
    assert status_of("nccl.gpudirect", job.text()) == {Status.WARN}
    small = Job(gpus=1)
    small.gpudirect = {0: "", 1: ""}
    assert status_of("nccl.gpudirect", small.text()) == {Status.WARN}
    for host in range(2):
        small.listed[host] = "NET/IB : Using [0]rocep1s0f0:1/RoCE [1]roceP2p1s0f0:1/RoCE [RO]"
    assert status_of("nccl.gpudirect", small.text()) == {Status.SKIP}


def test_networks_that_never_say_gdrdma_are_not_judged_by_it() -> None:
    text = re.sub(r"NET/IB/(\d)/GDRDMA", r"NET/GPUDirectTCPX_v7/\1", Job().text())
    assert status_of("nccl.gpudirect", text) == {Status.SKIP}


def test_gpudirect_that_other_hosts_have_fails_where_it_lacks() -> None:
    job = Job()
    job.gpudirect = {1: ""}
    one = only(job.text(), "nccl.gpudirect")
    assert (one.subject, one.status) == ("node-02", Status.FAIL)


def test_sends_without_gpudirect_are_by_design() -> None:
    text = re.sub(r"(\[send\] via NET/IB/\d)/GDRDMA", r"\1", Job().text())
    assert off(text, topology=TOPOLOGY) == {}


def test_memory_of_the_host_between_gpus_that_nvlink_joins_fails() -> None:
    job = Job()
    job.intra = {0: "SHM/direct/direct", 1: "SHM/direct/direct"}
    job.before[0] = ["NCCL_P2P_DISABLE set by environment to 1"]
    one = off(job.text(), topology=TOPOLOGY)["nccl.pairs"][0]
    assert (one.status, one.measured) == (Status.FAIL, "0 of 7 connections by P2P")
    assert one.reason.startswith(
        "joined by NVLink, and yet ranks 0 -> 1, 1 -> 2, 2 -> 3 go through"
    )
    assert one.reason.endswith("NCCL_P2P_DISABLE=1 is set")


def test_memory_of_the_host_is_right_without_nvlink_and_untold_without_topology() -> None:
    job = Job()
    job.intra = {0: "SHM/direct/direct", 1: "SHM/direct/direct"}
    pcie = Topology(
        gpus=TOPOLOGY.gpus,
        links=tuple(Link(a, b, "SYS") for n, a in enumerate(GPUS) for b in GPUS[n + 1 :]),
    )
    assert status_of("nccl.pairs", job.text(), topology=pcie) == {Status.PASS}
    assert status_of("nccl.pairs", job.text()) == {Status.SKIP}


def test_memory_of_the_host_on_one_host_alone_fails() -> None:
    job = Job()
    job.intra = {1: "SHM/direct/direct"}
    one = only(job.text(), "nccl.pairs")
    assert (one.subject, one.status) == ("node-02", Status.FAIL)


def test_the_network_between_gpus_of_one_host_is_told() -> None:
    job = Job()
    job.intra = {0: "NET/IB/0/GDRDMA", 1: "NET/IB/0/GDRDMA"}
    one = off(job.text(), topology=TOPOLOGY)["nccl.pairs"][0]
    assert (one.status, one.measured) == (Status.FAIL, "0 of 7 connections by P2P")
    assert one.reason == (
        "joined by NVLink, and yet ranks 0 -> 1, 1 -> 2, 2 -> 3 go"
        " over the network within the host (IB)"
    )
    job.before[0] = ["NCCL_P2P_DISABLE set by environment to 1"]
    alone = off(job.text())["nccl.pairs"]
    assert {one.status for one in alone} == {Status.WARN}
    assert alone[0].reason.endswith("NCCL_P2P_DISABLE=1 is set")
    job.intra = {1: "NET/IB/0/GDRDMA"}
    [odd] = off(job.text())["nccl.pairs"]
    assert (odd.subject, odd.status) == ("node-02", Status.FAIL)


def test_ends_of_a_network_that_may_be_elsewhere_are_not_taken_for_the_hosts_own() -> None:
    """Rank 1 of the log's host talks to rank 0, of another host or of its own: of two communicators
    the line does not say which."""
    line = "node-01:7:8 [1] NCCL INFO "
    other = line.replace("7:8 [1]", "6:8 [0]")
    comm = "comm 0x{} rank {} nranks 2 cudaDev {} busId {}b000 commId 0x{} - Init COMPLETE\n"
    way = line + "Channel 00/0 : 1[1] -> 0[0] [send] via NET/IB/0\n"
    within = line + comm.format(1, 1, 1, 2, "aa") + other + comm.format(2, 0, 0, 1, "aa")
    assert status_of("nccl.pairs", within + way) == {Status.WARN}
    across = within + line + comm.format(3, 1, 1, 2, "bb")
    across += "node-02:9:9 [0] NCCL INFO " + comm.format(4, 0, 0, 1, "bb")
    assert status_of("nccl.pairs", across + way) == {Status.SKIP}
    [untold] = [one for one in judged(way) if one.check == "nccl.pairs"]
    assert "which ranks share a host is not in the log" in untold.reason


def test_gpus_named_by_their_address_are_found() -> None:
    places = (GpuPlace("gpu0", "0000:1A:00.0"), GpuPlace("gpu1", "00000000:3D:00.0"))
    joined = Topology(gpus=places, links=(Link("gpu0", "gpu1", "NV", 4),))
    assert status_of("nccl.pairs", OLD["2.7.8"], topology=joined) == {Status.FAIL}


def test_rings_over_pcie_where_nvlink_joins_all_fail() -> None:
    pattern = "Pattern 4, crossNic 0, nChannels 2, bw 12.0/12.0, type {}/PIX, sameChannels 1"
    for kind, status in (("PHB", Status.FAIL), ("NVL", Status.PASS), ("NVB", Status.PASS)):
        job = Job()
        job.before[0] = [pattern.format(kind)]
        assert status_of("nccl.graphs", job.text(), topology=TOPOLOGY) == {status}


def test_both_kinds_of_adapters_warn_and_fail_once_work_failed() -> None:
    job = Job()
    mixed = (
        "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"
    )
    job.listed = {0: mixed, 1: mixed}
    found = off(job.text())["nccl.adapters.mixed"]
    assert {one.status for one in found} == {Status.WARN}
    assert found[0].fix[0] == "export NCCL_IB_HCA='=mlx5_0:1,mlx5_1:1'"
    azure = sample("nccl_debug/azure_ib_roce_mix_error12_vendor129.log")
    assert status_of("nccl.adapters.mixed", azure) == {Status.FAIL}


def test_bonds_alone_are_the_network() -> None:
    job = Job()
    bonds = " ".join(f"[{n}]mlx5_bond_{n}:1/RoCE" for n in range(8))
    job.listed = {n: f"NET/IB : Using {bonds} [RO]; OOB bond0:10.0.0.{n + 1}<0>" for n in range(2)}
    assert off(job.text()) == {}


def test_versions_that_differ_fail() -> None:
    job = Job(hosts=3)
    job.own_version[1] = "2.20.5"
    assert only(job.text(), "nccl.versions").measured == "node-02 2.20.5; the others 2.21.5"


def test_ranks_that_never_came_fail_and_a_log_of_one_host_does_not() -> None:
    job = Job()
    job.absent = {3}
    assert only(job.text(), "nccl.ranks").reason == "ranks 3 never began"
    waiting = "node-01:4003:4103 [3] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
    assert status_of("nccl.ranks", job.text() + waiting) == {Status.WARN}  # cut off
    half = "".join(line for line in job.text().splitlines(True) if line.startswith("node-01"))
    assert status_of("nccl.ranks", half) == {Status.WARN}  # the other host has a log of its own
    of_one = "".join(line for line in Job().text().splitlines(True) if line.startswith("node-01"))
    assert status_of("nccl.ranks", of_one) == {Status.PASS}


def test_an_error_of_an_adapter_names_the_peer_and_what_it_means() -> None:
    line = "node-01:4000:1 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer "
    line += "10.0.0.2<33092> with error 12, opcode 0, len 0, vendor err 129 (Recv)"
    one = only(wrong(Job(), line).text(), "nccl.completions")
    assert one.status is Status.FAIL
    assert one.measured == "error 12 (IBV_WC_RETRY_EXC_ERR) from peer 10.0.0.2"
    assert "vendor error 129: the transport's retry counter ran out" in one.reason


@pytest.mark.parametrize(
    ("text", "status", "runbook"),
    [
        ("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1a000", "FAIL",
         "rendezvous"),
        ("Mismatched NCCL version detected : rank 0 version 22105 rank 1 version 22005", "FAIL",
         "cuda-versions"),
        ("Error while creating shared memory segment /dev/shm/nccl-Zx (size 9637888)", "FAIL",
         "loader-killed"),
        ("Cuda failure 2 'out of memory'", "FAIL", "gpu-out-of-memory"),
        ("Cuda failure 'uncorrectable ECC error encountered'", "FAIL", "nccl-timeout"),
        ("Call to ibv_reg_mr failed with error Cannot allocate memory", "FAIL", "limits-low"),
        ("Call to ibv_reg_mr failed with error Bad address", "FAIL", "peermem"),
        ("Call to ibv_modify_qp failed with error Connection timed out", "FAIL", "nccl-fallback"),
        ("NET/IB : mlx5_0:1 Got async fatal event: port error", "FAIL", "link-flap"),
        ("NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)", "FAIL", "link-flap"),
        ("NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)", "WARN", "link-flap"),
        ("NET/IB : mlx5_0:1 Got async event : port active", "WARN", "link-flap"),
        ("NET/IB : Got fatal async event: local catastrophic error(8)", "FAIL", "nic-fault"),
        ("NET/IB : Got async fatal event: local catastrophic error", "FAIL", "nic-fault"),
        ("NET/IB : Got async event : SRQ catastrophic error", "FAIL", "link-flap"),
        (
            "NET/IB : Got fatal async event: local work queue catastrophic error(1)",
            "FAIL", "link-flap",
        ),
        ("Bootstrap : no socket interface found", "FAIL", "rendezvous"),
        ("socketStartConnect: Connect to 10.0.0.1<1234> failed : Connection refused", "FAIL",
         "rendezvous"),
        ("socketProgress: Connection closed by remote peer node-02<41234>", "WARN", "nccl-timeout"),
        ("Message truncated : received 64 bytes instead of 32", "FAIL", "application-fault"),
        ("NET/OFI aws-ofi-nccl initialization failed", "WARN", "nccl-fallback"),
        ("Attribute busid of node nic not found", "WARN", "nccl-fallback"),
        ("something that nobody has written down", "WARN", "nccl-timeout"),
    ],
)  # fmt: skip
def test_warnings_have_a_meaning(text: str, status: str, runbook: str) -> None:
    one = only(f"node-01:1:2 [0] a.cc:1 NCCL WARN {text}\n", "nccl.warnings")
    assert (one.status.value, one.runbook, one.subject) == (status, runbook, "node-01 gpu0")
    assert one.fix


@pytest.mark.parametrize("text", ["NCCL version 2.21.5+cuda12.4\nstep 1 loss 2.3\n"])
def test_a_log_of_the_version_alone_passes_nothing(text: str) -> None:
    assert {one.status for one in judged(text)} == {Status.SKIP}


def test_every_row_of_the_table_is_sound() -> None:
    books = set(runbooks.load())
    for row in table().warnings:
        assert re.compile(row.text)
        assert row.text == row.text.lower() or "\\" in row.text
        assert row.runbook in books
        assert row.fix
        assert row.status in (Status.FAIL, Status.WARN)


def test_sockets_that_close_at_the_end_of_a_run_are_no_error() -> None:
    line = "node-01:4000:1 [0] NCCL INFO {} -> 3"
    job = wrong(wrong(Job(), line.format("misc/socket.cc:47")), line.format("proxy.cc:1384"))
    assert off(job.text()) == {}


def test_an_error_without_its_warning_is_told() -> None:
    one = only(
        wrong(Job(), "node-01:4000:1 [0] NCCL INFO proxy.cc:679 -> 6").text(), "nccl.warnings"
    )
    assert (one.status, one.measured) == (
        Status.FAIL, "proxy.cc:679 -> 6: a remote process, or the network to it, failed",
    )  # fmt: skip


def test_without_info_lines_only_warnings_are_judged() -> None:
    found = judged(WARN_ONLY)
    skipped = {one.reason for one in found if one.status is Status.SKIP}
    assert skipped == {
        "the log has no INFO lines: NCCL_DEBUG=INFO was not set",
        "only where nccl.comparable_versions is yes; here it is no",
    }
    assert {one.check for one in found if one.status is Status.FAIL} == {"nccl.warnings"}
    assert {one.check for one in found if one.status is Status.PASS} == {"nccl.completions"}


def test_a_host_that_is_not_the_one_of_the_inventory_is_judged_by_likeness_at_most() -> None:
    log = nccl_log(parted(on_sockets([0, 1]).text())[0])
    found = judge(Host("node-01", nccl=log, nic_ports=PORTS), CHECKS)
    own, other = [one for one in found if one.check == "nccl.network"]
    assert (own.status, other.status) == (Status.FAIL, Status.WARN)
    assert other.reason.endswith("if it is built like node-01, whose facts these are")
    none = judge(Host("node-01", nccl=log, nic_ports=()), CHECKS)
    own, other = [one for one in none if one.check == "nccl.network"]
    assert (own.status, other.status) == (Status.PASS, Status.WARN)


@pytest.mark.parametrize("called", ["input", "10.0.0.7"])
def test_the_name_that_the_host_gives_itself_counts_too(called: str) -> None:
    log = nccl_log(parted(on_sockets([0, 1]).text())[0])
    for name, worst in {"node-02": Status.FAIL, "login-1": Status.WARN}.items():
        known = Host(called, nccl=log, nic_ports=PORTS, identity=Identity(name))
        found = [one.status for one in judge(known, CHECKS) if one.check == "nccl.network"]
        assert found == [Status.WARN, worst]
