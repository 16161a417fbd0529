"""Which adapters count: by place and rate, by NCCL_IB_HCA of the host, by --nics; alike in facts,
checks, advice and bounds."""

from __future__ import annotations

import json

import pytest

from preflight.assemble.host import assemble
from preflight.cli.benches import BETWEEN_GPUS, plan_of
from preflight.cli.options import Options
from preflight.cli.plan import Question, make_plan
from preflight.collect import examine
from preflight.expect.between import carriers
from preflight.expect.nics import training_ports
from preflight.facts.host import Host
from preflight.hca_list import is_list, takes, unmatched
from preflight.judge.load import load
from preflight.model import Missing, Raw, Result, Status
from preflight.payload.collectives.plan import Plan
from preflight.placement.advice import advise
from tests import topology_text
from tests.cli.command import preflight
from tests.conftest import SAMPLES, sample
from tests.test_network_samples import ca, cas

CHECKS = load(("network", "topology", "environment")).checks
#: Eight for training, each beside its GPU, and one for storage.
IBSTAT = cas(8) + ca("mlx5_8", 100, model="MT4125", layer="Ethernet")
_X8 = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
#: The answer about adapters of a host without any.
_NONE = "end\n"
_NO_RDMA = {"sysfs": _NONE}


def raws(ibstat: str = IBSTAT, variables: str = "", **more: str) -> list[Raw]:
    """The answers of such a host, with these variables of its shell."""
    texts = {"ibstat": ibstat, "nvidia-smi-topo": topology_text.hgx(), "nvidia-smi-q": _X8}
    texts |= more
    if variables:
        lines = "".join(f"var {line}\n" for line in variables.splitlines())
        adapters = "".join(f"adapter mlx5_{at} InfiniBand\n" for at in range(9))
        texts["environment"] = f"of shell\n{lines}netdevs\nadapters\n{adapters}end\n"
    texts = {"nics" if probe == "sysfs" else probe: text for probe, text in texts.items()}
    return [Raw("node-07", probe, (probe,), 0, text) for probe, text in texts.items() if text]


def host(nics: str = "", ibstat: str = IBSTAT, variables: str = "") -> Host:
    return assemble("node-07", raws(ibstat, variables), nics).host


def judged(nics: str = "", ibstat: str = IBSTAT, **more: str) -> dict[str, Result]:
    """What is neither passed nor skipped, by check and subject."""
    report = examine("node-07", raws(ibstat, **more), CHECKS, nics=nics)
    quiet = (Status.PASS, Status.SKIP)
    return {one.check: one for one in report.results if one.status not in quiet}


def roles(one: Host) -> dict[str, list[str]]:
    """Role -> the numbers of the adapters that have it, once by place and once by ports."""
    assert not isinstance(one.topology.nics, Missing) and not isinstance(one.nic_ports, Missing)
    by_place = {nic.name: str(nic.role) for nic in one.topology.nics}
    by_port = {port.nic: str(port.role) for port in one.nic_ports}
    assert by_place == by_port
    found: dict[str, list[str]] = {}
    for name, role in by_place.items():
        found.setdefault(role, []).append(name.removeprefix("mlx5_"))
    return found


@pytest.mark.parametrize(("value", "taken"), [
    ("mlx5_1", ["mlx5_1/1", "mlx5_1/2", "mlx5_10/1"]),
    ("=mlx5_1", ["mlx5_1/1", "mlx5_1/2"]),
    ("mlx5_1:2", ["mlx5_1/2"]),
    ("=mlx5_1:1,=mlx5_10", ["mlx5_1/1", "mlx5_10/1"]),
    ("^mlx5_1", ["mlx5_0/1"]),
    ("^=mlx5_1", ["mlx5_0/1", "mlx5_10/1"]),
    ("^=mlx5_1:1", ["mlx5_0/1", "mlx5_1/2", "mlx5_10/1"]),
])  # fmt: skip
def test_a_list_is_read_as_nccl_reads_it(value: str, taken: list[str]) -> None:
    ports = ["mlx5_0/1", "mlx5_1/1", "mlx5_1/2", "mlx5_10/1"]
    assert [port for port in ports if takes(value, *port.split("/"))] == taken
    assert is_list(value) and unmatched(value, ports) == []


def test_what_is_no_list_or_names_nothing_is_told() -> None:
    assert not any(map(is_list, ("", "mlx5 0", "=^mlx5_0", "mlx5_0;reboot", "mlx5_0,", "^")))
    assert unmatched("=mlx5_1,mlx5_0:3,mlx5_0", ["mlx5_0/1", "mlx5_10/1"]) == ["mlx5_1", "mlx5_0:3"]


def test_by_place_the_eight_beside_the_gpus_count_and_storage_does_not() -> None:
    assert roles(host()) == {"training": list("01234567"), "other": ["8"]}
    assert judged() == {}


@pytest.mark.parametrize(("nics", "variables"), [
    ("=mlx5_0,mlx5_1", ""),
    ("", "NCCL_IB_HCA==mlx5_0,mlx5_1"),
    ("=mlx5_0,mlx5_1", "NCCL_IB_HCA=mlx5_7"),  # what is stated comes first
    ("^mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7", ""),
])  # fmt: skip
def test_who_names_two_has_two_and_never_that_of_storage(nics: str, variables: str) -> None:
    found = host(nics, variables=variables)
    assert roles(found) == {"training": ["0", "1"], "left-out": list("234567"), "other": ["8"]}
    assert [port.nic for port in training_ports(found)] == ["mlx5_0", "mlx5_1"]
    carrying = carriers(found)
    assert not isinstance(carrying, Missing) and len(carrying.rates_gbits) == 2
    assert found.topology.training_places == 2
    assert not isinstance(found.topology.gpus, Missing)
    assert found.topology.gpus[0].nics == ("mlx5_0",)
    assert found.topology.gpus[5].nics == ("mlx5_0", "mlx5_1")


def test_a_list_that_names_storage_or_nothing_leaves_the_rule_of_place() -> None:
    for nics in ("mlx5_8", "mlx5_9"):
        assert roles(host(nics)) == {"training": list("01234567"), "other": ["8"]}


def test_on_a_workstation_whose_only_adapter_is_slow_who_names_it_knows_better() -> None:
    text = ca("mlx5_0", 25, model="MT4117", layer="Ethernet")
    by_itself = assemble("ws", [Raw("ws", "ibstat", ("ibstat",), 0, text)]).host
    named = assemble("ws", [Raw("ws", "ibstat", ("ibstat",), 0, text)], "mlx5_0").host
    assert (training_ports(by_itself), len(training_ports(named))) == ((), 1)


def test_advice_names_what_was_stated_and_is_held_against_all_where_a_variable_says_less() -> None:
    def named(one: Host) -> list[str]:
        return [export.value for export in advise(one).exports if export.name == "NCCL_IB_HCA"]

    assert named(host("=mlx5_0,mlx5_1")) == ["=mlx5_0:1,mlx5_1:1"]
    all_of_them = "=" + ",".join(f"mlx5_{at}:1" for at in range(8))
    assert named(host(variables="NCCL_IB_HCA==mlx5_0,mlx5_1")) == [all_of_them]


def test_a_variable_that_leaves_adapters_out_is_still_told() -> None:
    found = judged(variables="NCCL_IB_HCA==mlx5_0")["versions.env.devices"]
    assert "it takes 1 of the 8 adapters beside a GPU" in found.reason


def test_an_adapter_that_nobody_uses_may_be_down() -> None:
    text = cas(7) + ca("mlx5_7", state="Down", physical="Polling")
    assert judged(ibstat=text)["network.port.up"].subject == "mlx5_7/1"
    assert "network.port.up" not in judged("^mlx5_7", text)
    down = judged("mlx5_7,mlx5_0", text)["network.ports.stated"]
    assert (down.status, down.reason) == (Status.FAIL, "mlx5_7:1 is DOWN, Polling")


@pytest.mark.parametrize(("nics", "status", "reason"), [
    ("mlx5_9", Status.FAIL, "not there: mlx5_9; the host has mlx5_0:1 (400 Gb/s InfiniBand), "),
    ("mlx5_0,mlx5_1:2", Status.FAIL, "not there: mlx5_1:2; the host has mlx5_0:1"),
    ("=mlx5_0,mlx5_8", Status.WARN, "storage or logins, by rate and place: mlx5_8:1 (100 Gb/s E"),
    ("mlx5_8", Status.FAIL, "storage or logins, by rate and place: mlx5_8:1 (100 Gb/s Ethernet)"),
    ("^mlx5", Status.FAIL, "it leaves none; the host has mlx5_0:1 (400 Gb/s InfiniBand)"),
    ("^=mlx5_0", Status.WARN, "storage or logins, by rate and place: mlx5_8:1 (100 Gb/s Ethernet)"),
])  # fmt: skip
def test_a_list_that_does_not_fit_is_told_with_what_there_is(
    nics: str, status: Status, reason: str
) -> None:
    found = judged(nics)["network.ports.stated"]
    assert found.status is status
    assert found.reason.startswith(reason)


def test_the_list_to_type_is_told_where_storage_is_in_it() -> None:
    found = judged("^mlx5_0")["network.ports.stated"]
    assert found.fix[0] == "--nics =" + ",".join(f"mlx5_{at}:1" for at in range(1, 8))


def test_named_adapters_fail_where_the_host_has_none_and_are_no_pass_where_none_is_known() -> None:
    without = judged("mlx5_0", "", **_NO_RDMA)["network.ports.stated"]
    assert "[HCAS]" not in " ".join(without.fix) and without.fix[0].startswith("mlx5_1 means")
    assert (without.status, without.reason) == (
        Status.FAIL, "not there: the host has no adapter of RDMA",
    )  # fmt: skip
    ran = preflight("topo", "--from", str(SAMPLES / "nvlink" / "a100_sxm4_x8_status.txt"),
                    "--nics", "mlx5_0")  # fmt: skip
    assert ran.rc == 3
    assert "which adapters the host has is not known" in " ".join(ran.out.split())


@pytest.mark.parametrize(("driver", "rate_mbits", "status"), [
    ("gve", 200000, Status.SKIP),  # NCCL goes over these by a plugin
    ("ice", 100000, Status.WARN),  # over TCP, on purpose or not
    ("ice", 25000, Status.FAIL),
])  # fmt: skip
def test_a_board_without_rdma_may_be_meant_for_other_fast_interfaces(
    driver: str, rate_mbits: int, status: Status
) -> None:
    netdevs = f"netdev eth1\ndriver {driver}\noperstate up\ncarrier 1\nspeed {rate_mbits}\nend\n"
    given = raws("", **_NO_RDMA, netdevs=netdevs)
    (found,) = [one for one in examine("node-07", given, CHECKS).results
                if one.check == "network.ports.any"]  # fmt: skip
    assert found.status is status


def test_a_board_with_nvswitches_and_no_rdma_fails_and_a_workstation_does_not() -> None:
    board = judged(ibstat="", **_NO_RDMA)["network.ports.any"]
    assert board.status is Status.FAIL
    assert "8 x NVIDIA H100 80GB HBM3 with NVSwitches, and no adapter of RDMA" in board.reason
    for gpus in ("nvidia_smi_xml/rtx_a5000_x2_nvlink_590.44_v13.xml",
                 "nvidia_smi_xml/rtx_pro_6000_blackwell_590.44_v13.xml"):  # fmt: skip
        given = [Raw("ws", "nvidia-smi", ("x",), 0, sample(gpus)),
                 Raw("ws", "nics", ("x",), 0, _NONE)]  # fmt: skip
        (found,) = [one for one in examine("ws", given, CHECKS).results
                    if one.check == "network.ports.any"]  # fmt: skip
        assert found.status is Status.SKIP


def test_a_board_whose_ports_are_for_storage_alone_fails() -> None:
    text = ca("mlx5_8", 25, model="MT4117", layer="Ethernet")
    given = [Raw("node-07", "ibstat", ("x",), 0, text), Raw("node-07", "nvidia-smi-q", (), 0, _X8)]
    (found,) = [one for one in examine("node-07", given, CHECKS).results
                if one.check == "network.ports.any"]  # fmt: skip
    assert (found.status, found.measured) == (Status.FAIL, "mlx5_8/1 25 Gb/s Ethernet")


def test_the_command_takes_it_tells_it_and_refuses_what_is_no_list() -> None:
    ibstat = str(SAMPLES / "infiniband" / "ibstat_h100_12hca_active.txt")
    ran = preflight("run", "--from", ibstat, "--nics", "mlx5_77", "--format", "json")
    stated = {"id": "nics", "value": "mlx5_77", "source": "--nics"}
    assert stated in json.loads(ran.out)["overrides"]
    assert ran.rc == 1 and "network.ports.stated" in ran.out
    assert "network.ports.stated" not in preflight("run", "--from", ibstat, "-vv").out
    refused = preflight("topo", "--from", ibstat, "--nics", "mlx5_0;x")
    assert refused.rc == 2
    assert "error: --nics 'mlx5_0;x' is no list of adapters" in refused.err


def test_what_is_measured_goes_over_the_same_list() -> None:
    plan = plan_of(Options(nics="=mlx5_0,mlx5_1"))
    assert Plan(**plan).nics == "=mlx5_0,mlx5_1"
    question = Question("run", ("collectives",))
    options = Options(nics="^mlx5_4", level="standard")
    assert make_plan(question, options).benches == {**BETWEEN_GPUS, "nics": "^mlx5_4"}
    assert "nics" not in (make_plan(question, Options(level="standard")).benches or {})
