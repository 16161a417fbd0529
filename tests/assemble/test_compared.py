"""The distance of a host's clock; network adapters where there are none."""

from __future__ import annotations

from preflight.assemble.compared import gpu_product
from preflight.assemble.host import assemble
from preflight.assemble.sources import commands_for
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host, Identity
from preflight.judge.load import load
from preflight.model import NOT_IN_INPUT, Known, Missing, Raw
from tests.conftest import sample
from tests.setup_text import NICS, SETUP, TOPOLOGY


def _host(*raws: Raw) -> Host:
    return assemble("node-07", raws).host


def _offset(date: str, started_at: str) -> Known[int]:
    text = f"hostname node-07\ndate {date}\n"
    identity = _host(Raw("node-07", "identity", ("sh",), 0, text, started_at=started_at)).identity
    assert isinstance(identity, Identity)
    return identity.clock_offset_s


def test_a_clock_that_is_right_ahead_or_behind() -> None:
    asked = "2026-01-02T03:04:05Z"
    assert _offset(asked, asked) == 0
    assert _offset("2026-01-03T03:04:05Z", asked) == 86400
    assert _offset("2025-12-31T23:59:59Z", "2026-01-01T00:00:09Z") == -10


def test_a_clock_that_nothing_can_be_held_against() -> None:
    for date, started_at, kind in (
        ("2026-01-02T03:04:05Z", "", "not-in-input"),
        ("2026-01-02T03:04:05Z", "yesterday", "not-in-input"),
        ("Fri Jan 2", "2026-01-02T03:04:05Z", "unreadable"),
        ("", "2026-01-02T03:04:05Z", "unreadable"),
    ):
        found = _offset(date, started_at)
        assert isinstance(found, Missing)
        assert found.kind == kind


def test_a_host_with_and_without_adapters() -> None:
    host = _host(Raw("node-07", "nics", ("sh",), 0, NICS))
    assert host.nic_count == 2
    assert not isinstance(host.nic_ports, Missing)
    assert [port.name for port in host.nic_ports] == ["mlx5_0/1", "mlx5_1/1"]
    none = _host(Raw("node-07", "nics", ("sh",), 0, "end\n"))
    assert none.nic_count == 0
    assert isinstance(none.nics, Missing)
    assert none.nics.kind == "not-applicable"
    unread = _host(Raw("node-07", "nics", ("sh",), 2, "", "no /sys/class"))
    assert isinstance(unread.nic_count, Missing)
    assert unread.nic_count.kind == "exited"


def test_virtual_functions_are_not_counted() -> None:
    text = NICS.replace("address 0000:2a:00.0", "address 0000:2a:00.0\nvirtual")
    assert _host(Raw("node-07", "nics", ("sh",), 0, text)).nic_count == 1


def test_the_questions_are_asked_where_hosts_are_compared() -> None:
    limits_s = {one.probe: one.timeout_s for one in commands_for(load(("fleet",)).checks)}
    assert set(SETUP) <= set(limits_s)
    assert max(limits_s[probe] for probe in SETUP) <= 10
    asked = list(limits_s)
    assert asked.index("packages") < asked.index("nvidia-smi")  # cheap ones first


def test_a_host_without_python_says_what_to_type() -> None:
    packages = _host(Raw("node-07", "packages", ("python3", "-c", ""), 127)).packages
    assert isinstance(packages, Missing)
    assert packages.kind == "no-tool"
    assert "--python" in packages.text


def test_the_shape_is_the_hosts() -> None:
    shape = _host(Raw("node-07", "pci-tree", ("sh",), 0, TOPOLOGY)).topology_shape
    assert isinstance(shape, str)
    assert shape.startswith("numa0: 2 x (")


def _gpus(*products: Known[str]) -> tuple[Gpu, ...]:
    return tuple(Gpu(at, f"gpu{at}", "", product=each) for at, each in enumerate(products))


def test_the_kind_of_a_host_is_the_model_of_most_of_its_gpus() -> None:
    unknown = Missing("unreadable", "?")
    for gpus, product in (
        (_gpus("A100", "H100", "H100"), "H100"),
        (_gpus("H100", "A100"), "A100"),  # the same on each host
        (_gpus("H100", unknown, unknown), "H100"),
        (_gpus(unknown), unknown),
        (Missing("not-applicable", "no NVIDIA GPU on PCI"), "none"),
        (Missing("timeout", "30 s"), Missing("timeout", "30 s")),
    ):
        assert gpu_product(gpus) == product


def test_what_a_host_told_by_parts() -> None:
    host = _host(
        Raw("node-07", "nics", ("sh",), 0, NICS), Raw("node-07", "board", ("sh",), 124),
        Raw("node-07", "nvidia-smi", ("nvidia-smi",), 9, "NVIDIA-SMI has failed because it "
            "couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver "
            "is installed and running."),
    )  # fmt: skip
    told = {one.name: one.answer for one in host.told}
    assert (told["nics"], told["gpus"]) == (True, True)  # the driver's sentence is an answer
    assert isinstance(told["board"], Missing)
    assert told["packages"] == NOT_IN_INPUT


def test_a_report_that_is_cut_in_a_gpu_was_not_told() -> None:
    whole = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
    for text, answer in ((whole, True), (whole[: len(whole) // 2], Missing)):
        host = _host(Raw("node-07", "nvidia-smi-q", stdout=text))
        (told,) = (one.answer for one in host.told if one.name == "gpus")
        assert told is answer or isinstance(told, Missing) is (answer is Missing)
