"""Each sample of InfiniBand tools as its INDEX says; a host with a slow adapter in every form."""

from __future__ import annotations

import re
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.facts.host import Host
from preflight.judge.load import load
from preflight.model import Missing, Raw, Result, Status
from preflight.recognise import recognise
from preflight.redact.redactor import Redactor
from preflight.reports.wording import typed
from tests import network_text, topology_text
from tests.conftest import sample
from tests.network_text import ethtool, ibstat, sysfs

_400 = ("mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11")
#: Sample -> how many ports are up, the names of those that training uses, and what is found.
SAMPLES: dict[str, tuple[int, tuple[str, ...], dict[str, tuple[str, str]]]] = {
    "ibstat_a100_9hca_active.txt": (9, tuple(f"mlx5_{at}" for at in range(1, 9)), {}),
    "ibstat_h100_12hca_active.txt": (12, _400, {}),
    "ibstat_h100_8hca_bond_active.txt": (
        9, tuple(f"mlx5_{at}" for at in (0, 1, 4, 5, 6, 7, 8, 9)), {},
    ),
    "ibstat_h100_3_ports_disabled.txt": (9, _400, {
        "network.ports.spare input": (
            "WARN",
            "mlx5_2/1 DOWN, Disabled; mlx5_7/1 DOWN, Disabled; mlx5_8/1 DOWN, Disabled",
        ),
    }),
    "ibstat_h100_2x400_down.txt": (10, _400, {
        "network.port.up mlx5_5/1": ("FAIL", "DOWN, Disabled"),
        "network.port.up mlx5_11/1": ("FAIL", "DOWN, Disabled"),
    }),
    "ibstat_h100_down_and_polling.txt": (10, _400, {
        "network.port.up mlx5_5/1": ("FAIL", "DOWN, Disabled"),
        "network.port.up mlx5_11/1": ("FAIL", "DOWN, Polling"),
    }),
    "ibstat_a100_ibpanic_mid_list.txt": (8, tuple(f"mlx5_{at}" for at in range(8)), {
        "network.port.up mlx5_8/1": ("ERROR", ""),
    }),
    "ibstatus_a100_active.txt": (9, tuple(f"mlx5_{at}" for at in range(8)), {}),
    # The second ports of both cards: no card uses its own.
    "ibv_devinfo_cx3_second_ports_down.txt": (2, ("mlx4_0", "mlx4_1"), {}),
    "ibv_devinfo_cx5_and_iwarp_ports_down.txt": (0, (), {
        "network.ports.any input": (
            "WARN", "mlx5_0/1 DOWN; cxgb4_0/1 DOWN, iWARP; cxgb4_0/2 DOWN, iWARP",
        ),
    }),
}  # fmt: skip


def judged(*texts: str) -> tuple[Host, list[Result]]:
    raws = [raw for text in texts for raw in recognise(text.encode(), "x.txt")]
    found = examine("input", raws, load(("network",)).checks)
    return assemble("input", raws).host, list(found.results)


def told(results: list[Result]) -> dict[str, tuple[str, str]]:
    """What did not pass, without what is undetermined because a port as a whole is."""
    return {
        f"{one.check} {one.subject}": (one.status.value, str(one.measured or ""))
        for one in results
        if one.status in (Status.FAIL, Status.WARN)
        or (one.status is Status.ERROR and one.check == "network.port.up")
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_judged_as_its_index_says(name: str) -> None:
    up, training, findings = SAMPLES[name]
    host, results = judged(sample(f"infiniband/{name}"))
    assert not isinstance(host.nic_ports, Missing)
    assert sum(port.state == "ACTIVE" for port in host.nic_ports) == up
    assert {port.nic for port in host.nic_ports if port.role == "training"} == set(training)
    assert told(results) == findings


def test_disabled_and_polling_get_different_advice() -> None:
    _, results = judged(sample("infiniband/ibstat_h100_down_and_polling.txt"))
    down = {one.subject: one for one in results if one.status is Status.FAIL}
    assert "switched off on this side" in down["mlx5_5/1"].reason
    assert "no signal" in down["mlx5_11/1"].reason
    assert down["mlx5_5/1"].action != down["mlx5_11/1"].action
    assert any("mlxlink -d mlx5_11" in step for step in down["mlx5_11/1"].fix)
    # The line that shows it is that of the state.
    assert down["mlx5_11/1"].evidence[0].text.strip() == "State: Down"


def test_second_ports_that_no_card_uses_are_named_and_no_alarm() -> None:
    _, results = judged(sample("infiniband/ibv_devinfo_cx3_second_ports_down.txt"))
    spare = next(one for one in results if one.check == "network.ports.spare")
    assert spare.status is Status.SKIP
    assert "mlx4_0/2 DOWN" in spare.reason
    assert "mlx4_1/2 DOWN" in spare.reason


def test_a_device_that_cannot_be_read_says_so_and_the_rest_counts() -> None:
    host, results = judged(sample("infiniband/ibstat_a100_ibpanic_mid_list.txt"))
    (gone,) = [one for one in results if one.check == "network.port.up"
               and one.status is Status.ERROR]  # fmt: skip
    assert "No such file or directory" in gone.reason
    # Those after it would count as well.
    text = sample("infiniband/ibstat_a100_ibpanic_mid_list.txt")
    more = sample("infiniband/ibstat_h100_8hca_bond_active.txt").replace("mlx5_", "mlx5_2")
    again, _ = judged(text + more)
    assert not isinstance(host.nics, Missing)
    assert not isinstance(again.nics, Missing)
    assert len(again.nics) == len(host.nics) + 9


SLOW = network_text.SLOW
FORMS: dict[str, tuple[str, str, str]] = {
    "sysfs, InfiniBand": ("nics", sysfs(slow=SLOW), f"network.port.rate {SLOW}/1"),
    "sysfs, RoCE": ("nics", sysfs(roce=True, slow=SLOW), f"network.port.rate {SLOW}/1"),
    "ibstat": ("ibstat", ibstat(slow=SLOW), f"network.port.rate {SLOW}/1"),
    "ethtool": ("ethtool", ethtool(slow=SLOW), "network.link.rate ens4np0"),
}


def of_host(probe: str, text: str) -> list[Result]:
    raws = [Raw("node-07", probe, ("sh",), 0, text)]
    return list(examine("node-07", raws, load(("network",)).checks).results)


@pytest.mark.parametrize("form", FORMS)
def test_an_adapter_at_half_its_rate_is_found_and_named(form: str) -> None:
    probe, text, found = FORMS[form]
    results = of_host(probe, text)
    failed = {f"{one.check} {one.subject}": one for one in results if one.status is Status.FAIL}
    assert list(failed) == [found]
    assert failed[found].measured == 200
    assert failed[found].expected.startswith("at least 400")
    # What else is told of it follows from that.
    also = {one.check for one in results if one.status is Status.WARN and not one.cause}
    assert also == set()


@pytest.mark.parametrize(("probe", "text"), [
    ("nics", sysfs()), ("nics", sysfs(roce=True)), ("ibstat", ibstat()), ("ethtool", ethtool()),
    ("netdevs", network_text.NETDEVS), ("bonding", network_text.BONDING),
    ("mlnx-qos", network_text.MLNX_QOS), ("ip-addr", network_text.IP_ADDR),
])  # fmt: skip
def test_a_sound_host_raises_no_alarm(probe: str, text: str) -> None:
    assert [one for one in of_host(probe, text)
            if one.status not in (Status.PASS, Status.SKIP)] == []  # fmt: skip


def test_a_port_in_init_waits_for_a_subnet_manager() -> None:
    text = re.sub("state 4: ACTIVE", "state 2: INIT", sysfs(), count=1)
    text = text.replace("sm_lid 0x1", "sm_lid 0x0", 1)
    results = of_host("nics", text)
    failed = {one.check: one for one in results if one.status is Status.FAIL}
    assert set(failed) == {"network.port.up", "network.port.subnet_manager"}
    assert "no subnet manager" in failed["network.port.up"].reason
    assert failed["network.port.subnet_manager"].cause == "network.port.up"


def test_a_dead_second_port_of_a_card_is_no_failure_of_training() -> None:
    """One of two ports that others use: worth a look, and not for training."""
    text = re.sub(r"(?s)(nic mlx5_2\n.*?state )4: ACTIVE", r"\g<1>1: DOWN", sysfs(), count=1)
    statuses = {one.check: one.status for one in of_host("nics", text)
                if one.check.startswith("network.ports.")}  # fmt: skip
    assert statuses["network.ports.spare"] is Status.SKIP


def test_a_slow_port_for_logins_is_no_port_for_training() -> None:
    text = sysfs().replace("rate 100 Gb/sec (4X EDR)", "rate 25 Gb/sec (1X EDR)", 1)
    assert [one for one in of_host("nics", text) if one.status is Status.FAIL] == []


@pytest.mark.parametrize("rate", [100, 25])
def test_one_ethernet_port_of_a_cloud_is_not_held_to_rdma(rate: int) -> None:
    """Stock instances have an adapter of Ethernet with RDMA, an MTU of 1500 and no RoCE."""
    text = (
        f"nic mlx5_0\naddress 0001:00:02.0\nhca_type MT4126\nfw_ver 22.35.2302\nnode_type 1: CA\n"
        f"port 1\nstate 4: ACTIVE\nphys_state 5: LinkUp\nrate {rate} Gb/sec (4X EDR)\n"
        "link_layer Ethernet\nlid 0x0\nsm_lid 0x0\nnetdev eth1\ndev_port 0\nmtu 1500\n"
        f"speed {rate}000\nend\n"
    )
    assert [one for one in of_host("nics", text)
            if one.status not in (Status.PASS, Status.SKIP)] == []  # fmt: skip


def test_an_alarm_names_the_counter_and_its_line() -> None:
    text = sysfs().replace("mlx5_3/ports/1/counters/symbol_error:2",
                           "mlx5_3/ports/1/counters/symbol_error:48211")  # fmt: skip
    (one,) = [one for one in of_host("nics", text) if one.status is Status.WARN]
    assert (one.check, one.subject, one.measured) == (
        "network.port.errors.symbol", "mlx5_3/1", 48211,
    )  # fmt: skip
    assert one.evidence[0].text == "mlx5_3/ports/1/counters/symbol_error:48211"


def test_several_tools_tell_of_one_host_together() -> None:
    host, _ = judged(
        network_text.IBV_DEVINFO, network_text.IBDEV2NETDEV, ethtool(), network_text.SHOW_GIDS
    )
    assert not isinstance(host.nic_ports, Missing)
    port: Any = host.nic_ports[0]
    assert (port.name, port.hca, port.netdev) == ("mlx5_0/1", "MT4129", "ens0np0")
    assert (port.rate_gbits, port.rate_max_gbits, port.active_mtu_bytes) == (400.0, 400.0, 4096)
    assert port.gid_index == 3
    netdevs: Any = host.netdevs
    assert [one.rdma for one in netdevs] == [True] + [False] * 7


@pytest.mark.parametrize("probe", network_text.WRITTEN)
def test_a_redacted_answer_shows_no_address_and_raises_no_alarm(probe: str) -> None:
    for text in network_text.WRITTEN[probe]:
        shown = Redactor(["node-07"]).full(text)
        assert not re.search(
            r"a088|a288|fe80::?(?!(?:0000:){3}guid-|guid-)\w|10\.10\.|192\.0\.2|b8:3f|0a0a", shown
        )
        found = [
            [(one.check, one.subject, one.status) for one in of_host(probe, each)]
            for each in (shown, text)
        ]
        assert found[0] == found[1]


def test_outputs_of_several_tools_in_one_paste() -> None:
    paste = "\n".join(
        (ibstat(), network_text.IBSTATUS, network_text.RDMA_LINK, network_text.SHOW_GIDS,
         network_text.IBV_DEVINFO, ethtool(), network_text.IP_ADDR, network_text.BONDING,
         network_text.IBDEV2NETDEV, network_text.MLNX_QOS)
    )  # fmt: skip
    raws = recognise(paste.encode(), "x.txt")
    assert {raw.probe for raw in raws} == {
        "ibstat", "ibstatus", "rdma-link", "show-gids", "ibv_devinfo", "ethtool", "ip-addr",
        "bonding", "ibdev2netdev", "mlnx-qos",
    }  # fmt: skip
    assert assemble("input", raws).missing == []


def ca(
    name: str, rate: int = 400, *, layer: str = "InfiniBand", state: str = "Active",
    physical: str = "LinkUp", model: str = "MT4129",
) -> str:  # fmt: skip
    """An adapter of one port as ibstat shows it; its guid is made of its name."""
    guid = f"0xa088c203{sum(map(ord, name)):08x}"
    return (
        f"CA '{name}'\n\tCA type: {model}\n\tNumber of ports: 1\n\tFirmware version: 28.39.1002\n"
        f"\tSystem image GUID: {guid}\n\tPort 1:\n\t\tState: {state}\n"
        f"\t\tPhysical state: {physical}\n\t\tRate: {rate}\n\t\tBase lid: 75\n"
        f"\t\tSM lid: 1\n\t\tLink layer: {layer}\n"
    )


def cas(count: int, rate: int = 400, **fields: str) -> str:
    return "".join(ca(f"mlx5_{at}", rate, **fields) for at in range(count))


@pytest.mark.parametrize(("slow", "rate"), [(1, 100), (3, 56), (4, 25), (1, 10)])
def test_adapters_far_below_their_rate_fail_with_and_without_a_matrix(slow: int, rate: int) -> None:
    """Beside its GPU or not: what is like the others carries training, whatever its rate is."""
    text = cas(slow, rate) + "".join(ca(f"mlx5_{at}") for at in range(slow, 8))
    for more in ((), (topology_text.hgx(),)):
        _, results = judged(text, *more)
        failed = {one.subject for one in results if one.check == "network.port.rate"
                  and one.status is Status.FAIL}  # fmt: skip
        assert failed == {f"mlx5_{at}/1" for at in range(slow)}


def test_what_one_beside_a_gpu_can_all_like_it_can() -> None:
    _, results = judged(cas(7, 100) + ca("mlx5_7"), topology_text.hgx())
    failed = [one for one in results if one.status is Status.FAIL]
    assert {one.check for one in failed} == {"network.port.rate"}
    assert len(failed) == 7


@pytest.mark.parametrize(("text", "more", "status"), [
    (cas(8, state="Down", physical="Polling"), "", Status.FAIL),  # a row
    (cas(8, state="Down", physical="Polling", layer="Ethernet"), topology_text.hgx(), Status.FAIL),
    (cas(4, state="Down", physical="Polling", layer="Ethernet"), "", Status.WARN),  # a cloud's
    (cas(1, state="Down", physical="Polling"), "", Status.WARN),  # a spare one
])  # fmt: skip
def test_all_ports_down_fail_where_the_host_is_made_for_training(
    text: str, more: str, status: Status
) -> None:
    _, results = judged(*filter(None, (text, more)))
    (found,) = [one for one in results if one.check == "network.ports.any"]
    assert found.status is status
    # Each port is named once, with its state.
    assert found.reason.count("mlx5_0/1") == (0 if "mlx5_1" in text else 1)


def test_an_adapter_that_only_the_matrix_has_is_undetermined_by_name() -> None:
    _, results = judged(cas(7), topology_text.hgx())
    (gone,) = [one for one in results if one.status is Status.ERROR]
    assert (gone.check, gone.subject) == ("network.port.up", "mlx5_7")
    # One that was asked for by its name is no list.
    _, results = judged(cas(1), topology_text.hgx())
    assert [one for one in results if one.status is Status.ERROR] == []


def test_commands_for_a_port_of_infiniband_name_the_adapter_and_the_port() -> None:
    _, results = judged(cas(7) + ca("mlx5_7", state="Down", physical="Disabled"))
    (down,) = [one for one in results if one.check == "network.port.up"
               and one.status is Status.FAIL]  # fmt: skip
    assert down.fix[0] == "sudo ibportstate -C mlx5_7 -P 1 -D 0 1 enable"
    assert down.fix[1].startswith("sudo mlxlink -d mlx5_7 -p 1 ")
    _, results = judged(cas(7) + ca("mlx5_7", 100))
    (slow,) = [one for one in results if one.status is Status.FAIL]
    assert not any("ethtool" in step for step in slow.fix)
    assert "mlxlink -d mlx5_7 " in typed(slow.fix[0], [slow.subject], [])


@pytest.mark.parametrize("physical", ["Disabled", "LinkUp"])
def test_storage_of_the_same_model_on_ethernet_is_a_design(physical: str) -> None:
    """Four of twelve ports, of which two are switched off."""
    state = "Down" if physical == "Disabled" else "Active"
    text = cas(8) + "".join(
        ca(f"mlx5_{at}", layer="Ethernet", state=state if at > 9 else "Active",
           physical=physical if at > 9 else "LinkUp")
        for at in range(8, 12)
    )  # fmt: skip
    _, results = judged(text)
    assert {one.check for one in results if one.status in (Status.FAIL, Status.WARN)} <= {
        "network.ports.spare"
    }


def test_an_unused_storage_adapter_of_another_model_is_no_failure() -> None:
    storage = ca("mlx5_8", 200, model="MT4123")
    down = ca("mlx5_9", 10, model="MT4123", state="Down", physical="Polling")
    _, results = judged(cas(8) + storage + down)
    assert told(results) == {"network.ports.spare input": ("WARN", "mlx5_9/1 DOWN, Polling")}


@pytest.mark.parametrize(("edit", "check", "status"), [
    (("Partner Mac Address: 44:38:39:ff:00:01", "Partner Mac Address: 00:00:00:00:00:00"),
     "network.bond.lacp", Status.WARN),
    (("Partner Churn State: none", "Partner Churn State: churned"),
     "network.bond.lacp", Status.WARN),
    (("MII Status: up\nSpeed", "MII Status: down\nSpeed"), "network.bond.empty", Status.FAIL),
])  # fmt: skip
def test_a_bond_that_its_members_do_not_serve_is_told(
    edit: tuple[str, str], check: str, status: Status
) -> None:
    found = {
        one.check: one.status for one in of_host("bonding", network_text.BONDING.replace(*edit))
    }
    assert found[check] is status
    plain = re.sub("Mode: .*", "Mode: fault-tolerance (active-backup)", network_text.BONDING)
    found = {one.check: one.status for one in of_host("bonding", plain.replace(*edit))}
    assert found["network.bond.lacp"] is Status.SKIP


def test_a_device_that_ibv_devinfo_could_not_open_is_undetermined() -> None:
    results = of_host("ibv_devinfo", network_text.IBV_DEVINFO + "Failed to open device\n")
    assert any(one.check == "network.port.up" and one.status is Status.ERROR
               and "Failed to open device" in one.reason for one in results)  # fmt: skip


def test_why_a_link_is_down_is_told_as_ethtool_has_it() -> None:
    text = ethtool().replace("Link detected: yes", "Link detected: no (No cable)")
    text = re.sub("Speed: .*", "Speed: Unknown!", text)
    (told_once,) = [one for one in of_host("ethtool", text) if one.check == "network.link.rate_max"]
    assert told_once.status is Status.SKIP
    assert told_once.reason.endswith("its link is down (No cable)")


def test_a_host_without_a_device_is_told_by_ibv_devinfo() -> None:
    host, results = judged("No IB devices found\n")
    assert isinstance(host.nics, Missing)
    assert host.nics.kind == "not-applicable"
    assert {one.status for one in results} == {Status.SKIP}
