"""lspci in all its forms: what each function is, what its link does, and what the text lacks."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from preflight.errors import ParseError
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.model import Missing
from preflight.probes.pci.lspci import lspci
from tests.conftest import sample
from tests.lspci_text import server

DEVICES = sample("lspci/xe9680_h100_x8_cx7_vvv_devices.txt")
BRIDGES = sample("lspci/xe9680_h100_bridges_acs_and_downgraded_vvv.txt")


def _by_name(tree: PciTree) -> dict[str, PciDevice]:
    return {each.name: each for each in tree.devices}


def _kind(value: object) -> str:
    assert isinstance(value, Missing), value
    return value.kind


def _counts(name: str) -> tuple[int, int, int]:
    """GPUs, NVSwitches and NICs."""
    devices = lspci(sample(f"lspci/{name}")).devices
    nvidia = [each.class_id for each in devices if each.vendor_id == "0x10de"]
    gpus = sum(1 for each in nvidia if each in ("0x0300", "0x0302"))
    nics = sum(1 for each in devices if each.class_id in ("0x0200", "0x0207"))
    return gpus, nvidia.count("0x0680"), nics


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("a100_x8_nvswitch_nn.txt", (8, 6, 9)),
        ("a10_nn.txt", (1, 0, 1)),
        ("gb200_plain.txt", (4, 0, 9)),
        ("xe9680_h100_x8_cx7_vvv_devices.txt", (8, 4, 12)),
    ],
)
def test_what_there_is_by_class(name: str, counts: tuple[int, int, int]) -> None:
    assert _counts(name) == counts


def test_a_gpu_of_a_server_in_full() -> None:
    gpu = _by_name(lspci(DEVICES))["0000:19:00.0"]
    assert gpu == PciDevice(
        "0000:19:00.0",
        1,
        "lspci",
        class_id="0x0302",
        class_name="3D controller",
        vendor_id="0x10de",
        product="NVIDIA Corporation Device 2330",
        revision="a1",
        port="Endpoint",
        speed_max_gtps=32.0,
        width_max=16,
        speed_gtps=32.0,
        width=16,
        speed_word="ok",
        width_word="ok",
        link_line=28,
        payload_bytes=256,
        read_request_bytes=4096,
        driver="nvidia",
        numa_node=0,
        acs=Missing("not-applicable", "it has no ACS registers"),
        uncorrected=(),
        corrected=("RxErr", "BadTLP", "Timeout"),
        errors_line=62,
    )
    assert DEVICES.split("\n")[27].strip().startswith("LnkSta:")
    assert DEVICES.split("\n")[61].strip().startswith("UESta:")


def test_bridges_with_acs_and_links_below_what_they_can() -> None:
    bridges = _by_name(lspci(BRIDGES))
    for number in range(4):
        redirecting = bridges[f"0000:82:0{number}.0"].acs
        assert redirecting == ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")
    assert all(each.acs == () for each in bridges.values() if "PEX890xx" in str(each.product))
    root = bridges["0000:80:01.0"]
    assert (root.port, root.primary, root.secondary, root.subordinate) == (
        "Root Port", 0x80, 0x81, 0x86,
    )  # fmt: skip
    assert (root.width, root.width_max, root.width_word, root.numa_node) == (2, 16, "downgraded", 1)
    below = bridges["0000:17:03.0"]
    assert (below.speed_gtps, below.speed_max_gtps, below.speed_word) == (16, 32, "downgraded")


def test_without_root_the_capabilities_are_denied() -> None:
    text = (
        "01:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)\n"
        "\tFlags: bus master, fast devsel, latency 0, IRQ 16, NUMA node 1, IOMMU group 7\n"
        "\tCapabilities: <access denied>\n\tKernel driver in use: nvidia\n"
    )
    (gpu,) = lspci(text).devices
    for field in ("speed_gtps", "width_max", "acs", "uncorrected", "port", "payload_bytes"):
        assert _kind(getattr(gpu, field)) == "denied", field
    assert "--sudo" in getattr(gpu.width, "text", "")
    assert gpu.driver == "nvidia"


@pytest.mark.parametrize(
    "line",
    [
        "01:00.0 0302: 10de:20f1 (rev a1)",
        "0000:01:00.0 0302: 10de:20f1 (rev a1) (prog-if 00)",
        "01:00.0 Class 0302: 10de:20f1 (rev a1)",
        "00000000:01:00.0 3D controller [0302]: NVIDIA Corporation [A100] [10de:20f1] (rev a1)",
        "01:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:20f1] (rev a1)",
    ],
)
def test_the_forms_of_a_line(line: str) -> None:
    (gpu,) = lspci(line).devices
    assert (gpu.class_id, gpu.vendor_id, gpu.device_id) == ("0x0302", "0x10de", "0x20f1")
    assert (gpu.revision, gpu.answers, _kind(gpu.width), _kind(gpu.driver)) == (
        "a1", True, "not-in-input", "not-in-input",
    )  # fmt: skip


def test_a_link_as_older_and_newer_versions_write_it() -> None:
    for said, expected in (
        ("Speed 8GT/s, Width x16, TrErr- Train- SlotClk+", (8.0, 16, "")),
        ("Speed 2.5GT/s (downgraded), Width x16 (ok)", (2.5, 16, "ok")),
        ("Speed 64GT/s, Width x8 (downgraded)", (64.0, 8, "downgraded")),
    ):
        text = f"01:00.0 3D controller: NVIDIA Corporation x\n\t\tLnkSta:\t{said}\n"
        (gpu,) = lspci(text).devices
        assert (gpu.speed_gtps, gpu.width, gpu.width_word) == expected
    unknown = "01:00.0 3D controller: x\n\tLnkSta: Speed unknown, Width x16\n\tLnkCap: Width x0\n"
    (gpu,) = lspci(unknown).devices
    assert _kind(gpu.speed_gtps) == "unreadable"
    assert gpu.width == 16
    assert _kind(gpu.width_max) == "not-applicable"  # as of a virtual function: no link of its own


def test_flags_that_go_on_in_the_next_lines() -> None:
    text = (
        "01:00.0 3D controller: NVIDIA Corporation x\n\tCapabilities: [100 v2] Advanced Error\n"
        "\t\tUESta:\tDLP+ SDES- TLP-\n\t\t\tECRC- UnsupReq+ ACSViol-\n"
        "\t\t\tPoisonTLPBlocked+ PCRC_CHECK-\n"
        "\t\tUEMsk:\tDLP+ SDES+ TLP+\n\t\t\tECRC+ UnsupReq+\n"
    )
    (gpu,) = lspci(text).devices
    assert gpu.uncorrected == ("DLP", "UnsupReq", "PoisonTLPBlocked")


@pytest.mark.parametrize("more", ["", "\n\t!!! Unknown header type 7f\n\tKernel modules: nvidia"])
def test_a_device_that_does_not_answer(more: str) -> None:
    (gpu,) = lspci(f"3b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev ff){more}").devices
    assert gpu.answers is False
    assert getattr(gpu.width, "text", "") == "it does not answer on PCI"
    assert _kind(gpu.driver) == "not-in-input"  # an excerpt does not show that none is bound


def test_a_list_that_names_drivers_shows_which_device_has_none() -> None:
    devices = _by_name(lspci(server().replace("\tKernel driver in use: nvidia\n", "")))
    assert devices["0000:19:00.0"].driver == ""
    assert devices["0000:18:00.0"].driver == "mlx5_core"
    cut = "".join(
        f"{line}\n" for line in server().split("\n") if not line.startswith("\tKernel driver")
    )
    assert _kind(_by_name(lspci(cut))["0000:19:00.0"].driver) == "not-in-input"


def test_one_host_asked_twice_in_different_forms_is_one_list() -> None:
    plain = sample("lspci/xe9680_h100_x8_cx7_vvv_devices.txt").split("\n\t")[0]
    tree = lspci(f"{plain}\n{DEVICES}")
    assert len(tree.devices) == 24
    assert tree.devices[0].width == 16


def test_two_hosts_in_one_text_are_refused() -> None:
    one = "01:00.0 0302: 10de:20f1 (rev a1)\n"
    with pytest.raises(ParseError, match="two different devices"):
        lspci(one + "01:00.0 0200: 15b3:1021\n")


def test_the_tree_form_is_left_out() -> None:
    text = (
        "-[0000:00]-+-00.0  Intel Corporation Device 3258\n"
        "           +-0c.0-[01]----00.0  ASPEED Technology, Inc. ASPEED Graphics Family\n"
        "           \\-1f.5  Intel Corporation Device 1ba4\n"
    )
    with pytest.raises(ParseError):
        lspci(text)
    assert lspci(DEVICES + text) == lspci(DEVICES)


def test_no_line_of_lspci_is_an_error() -> None:
    with pytest.raises(ParseError, match="expected a line"):
        lspci("pcilib: Cannot open /proc/bus/pci\n")


@pytest.mark.parametrize(
    "text",
    [
        DEVICES * 9,
        "01:00.0 " + "Express " * 120_000,
        "01:00.0 a: b\n\tCapabilities: [60] " + "Express A " * 100_000,
        "01:00.0 a: b\n" + " " * 1_000_000 + "-",
        "01:00.0 a: b\n\tUESta: " + "A+ " * 300_000 + "\n" + "B+" * 400_000,
        "01:00.0 " + "[10de:" * 170_000,
        "01:00.0 " + " (rev " * 170_000,
        "01:00.0 a: b\n\tLnkSta: " + "Speed 9" * 140_000,
        "|" * 1_000_000,
    ],
    ids=range(9),
)
def test_a_megabyte_takes_less_than_a_second(text: str) -> None:
    began = time.process_time()
    with suppress(ParseError):
        lspci(text)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("keep", [0.1, 0.33, 0.5, 0.71, 0.9])
def test_cut_anywhere_it_reads_or_says_why(keep: float) -> None:
    for text in (DEVICES, BRIDGES, server()):
        assert lspci(text[: int(len(text) * keep)]).devices
