"""PCI held against nvidia-smi, GPU by GPU; pastes that end early; links beside their peers; ACS."""

from __future__ import annotations

import pytest

from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw, Result, Status
from tests.conftest import sample
from tests.lspci_text import HEADS, function, server

SMI = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
BUSES = ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db")
CHECKS = load(("gpu", "pcie")).checks


def gpu(bus: str, driver: str = "nvidia", modules: bool = True) -> str:
    lines = [f"{bus}:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)"]
    lines += [f"\tKernel driver in use: {driver}"] if driver else []
    lines += ["\tKernel modules: nvidiafb, nouveau, nvidia"] if modules else []
    return "\n".join(lines) + "\n"


def without(*buses: str) -> str:
    """nvidia-smi of those GPUs that are left, its head counting them."""
    head, *gpus = SMI.split("\nGPU 00000000:")
    kept = [one for one in gpus if one[:2].lower() not in buses]
    head = head.replace(": 8", f": {len(kept)}")
    return "\nGPU 00000000:".join([head, *kept])


def judged(lspci: str, smi: str = "", **others: str) -> dict[str, list[Result]]:
    given = {"lspci": lspci, "nvidia-smi-q": smi, **others}
    raws = [Raw("n", name.replace("_", "-"), stdout=text) for name, text in given.items() if text]
    found: dict[str, list[Result]] = {}
    for one in examine("n", raws, CHECKS).results:
        found.setdefault(one.check, []).append(one)
    return found


def test_a_gpu_that_lspci_shows_and_nvidia_smi_does_not_is_missing_by_name() -> None:
    (count,) = judged("".join(map(gpu, BUSES)), without("4c"))["gpu.count"]
    assert (count.status, count.measured) == (Status.FAIL, 7)
    assert count.expected == "8 (on PCI, and nvidia-smi does not list 0000:4c:00.0)"
    assert count.evidence[0].text.startswith("4c:00.0 3D controller")


def test_so_is_one_of_an_excerpt_that_shows_less_than_nvidia_smi() -> None:
    (count,) = judged(gpu("3b") + gpu("4c"), without("4c"))["gpu.count"]
    assert count.status is Status.FAIL
    assert "0000:4c:00.0" in count.expected


def test_one_that_a_virtual_machine_has_is_not_missing() -> None:
    text = "".join(gpu(bus, "vfio-pci" if bus == "4c" else "nvidia") for bus in BUSES)
    assert judged(text, without("4c"))["gpu.count"][0].status is Status.PASS


def test_where_its_driver_is_not_told_it_may_be_handed_away() -> None:
    plain = "".join(gpu(bus, "", modules=False) for bus in BUSES)
    (count,) = judged(plain, without("4c"))["gpu.count"]
    assert count.status is Status.ERROR
    assert "0000:4c:00.0" in count.reason


def test_a_report_of_one_gpu_of_many_is_no_list() -> None:
    one = SMI[: SMI.index("GPU 00000000:3B")]
    assert judged("".join(map(gpu, BUSES)), one)["gpu.count"][0].status is Status.ERROR


def test_two_lists_without_a_gpu_in_common_are_of_two_hosts() -> None:
    (count,) = judged(sample("lspci/a100_x8_nvswitch_nn.txt"), SMI)["gpu.count"]
    assert count.status is Status.ERROR
    assert "two hosts" in count.reason


def test_a_gpu_that_lspci_lacks_is_told_where_it_goes_on_behind_it() -> None:
    text = HEADS + "".join(gpu(bus) for bus in BUSES if bus != "4c")
    found = judged(text, SMI)
    assert found["gpu.count"][0].status is Status.PASS
    (off,) = found["gpu.on_pci"]
    assert (off.status, off.measured) == (Status.FAIL, "gpu2 0000:4c:00.0")


@pytest.mark.parametrize("head", ["", HEADS])
def test_an_excerpt_or_one_that_ends_before_it_has_no_say(head: str) -> None:
    (off,) = judged(head + "".join(map(gpu, BUSES[:2])), SMI)["gpu.on_pci"]
    assert off.status is Status.SKIP
    assert judged(head + gpu("19"), SMI)["gpu.count"][0].status is Status.SKIP


LSMOD = "Module                  Size  Used by\next4  655360  1\n"


def test_without_the_module_no_gpu_is_bound() -> None:
    plain = gpu("19", "", modules=False) + gpu("3b", "", modules=False)
    found = judged(plain, driver_module=LSMOD)["gpu.driver.bound"]
    assert [one.status for one in found] == [Status.FAIL] * 2
    assert "lsmod" in str(found[0].measured)
    for listed in (f"{LSMOD}vfio_pci 1 0\n", f"{LSMOD}nvidia 1 0\n", "ext4  655360  1\n"):
        found = judged(plain, driver_module=listed)["gpu.driver.bound"]
        assert {one.status for one in found} == {Status.SKIP}, listed


def test_a_gpu_whose_block_is_cut_is_not_unbound() -> None:
    whole = gpu("19") + gpu("3b")
    for keep in ("\tKernel modules: nv", "\tKernel driver in use: nv", "\tSubsys", ""):
        first, _, last = whole.partition("\tKernel modules")[0].partition("\n")
        cut = gpu("19") + gpu("3b", "", modules=False) + keep
        found = {one.subject: one.status for one in judged(cut)["gpu.driver.bound"]}
        bad = Status.FAIL if "modules" in keep else Status.ERROR
        assert found == {"0000:19:00.0": Status.PASS, "0000:3b:00.0": bad}, (first, last)
    (_, unbound) = judged(gpu("19") + gpu("3b", ""))["gpu.driver.bound"]
    assert (unbound.status, unbound.measured, unbound.evidence[0].line) == (Status.FAIL, "none", 4)


def test_a_number_that_goes_on_behind_the_cut_is_not_read() -> None:
    text = server()
    at = text.rindex("Width x16 (ok)") + len("Width x1")
    assert judged(text[:at])["pcie.link.width"][0].status is Status.ERROR


def two(speed: str, can: str = "32 16") -> str:
    """A server of which a second GPU has this link."""
    head = "3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)"
    bridge = "PCI bridge [0604]: Broadcom / LSI PEX890xx PCIe Gen 5 Switch [1000:c030] (rev b0)"
    return (
        server()
        + function("0000:17:02.0", bridge, "Downstream Port (Slot+)", can, speed, bus="17 1a 1a")
        + function("0000:1a:00.0", head, "Endpoint", "32 16", speed, driver="nvidia")
    )


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (two("32 16"), "PASS"),
        (two("16 16"), "WARN"),  # no rest: beside a GPU at full speed
        (two("2.5 16"), "WARN"),
        (two("16 16", can="16 16"), "PASS"),  # the slot has no more
        (server(gpu="16 16"), "WARN"),  # nor is a generation in between
        (server(gpu="2.5 16"), "SKIP"),  # all at rest
    ],
)
def test_a_link_unlike_its_peers_or_between_the_generations(text: str, status: str) -> None:
    found = judged(text)["pcie.link.speed"]
    assert found[-1].status.value == status
    assert status != "SKIP" or "2.5 of 32 GT/s" in found[-1].reason


def test_acs_redirect_is_told_on_metal_with_the_ports() -> None:
    found, beside = judged(server(acs="ReqRedir"))["pcie.path.acs"]
    assert (beside.subject, beside.status) == ("0000:18:00.0", Status.WARN)
    assert (found.status, found.measured) == (Status.WARN, "0000:17:01.0")
    assert "ACSCtl" in found.evidence[0].text
    assert judged(server(acs="SrcValid"))["pcie.path.acs"][0].status is Status.PASS


def test_acs_stays_on_for_virtual_machines() -> None:
    text = server(acs="ReqRedir")
    handed = text.replace("in use: mlx5_core", "in use: vfio-pci")
    assert judged(handed)["pcie.path.acs"][0].status is Status.SKIP
    inside = f"{text}0000:00:02.0 VGA compatible controller [0300]: Red Hat [1b36:0100]\n"
    assert judged(inside)["pcie.path.acs"][0].status is Status.SKIP


def test_bridges_without_a_gpu_below_them_are_named() -> None:
    text = sample("lspci/xe9680_h100_bridges_acs_and_downgraded_vvv.txt")
    (found,) = judged(text)["pcie.path.acs"]
    assert found.status is Status.SKIP
    assert "0000:82:00.0" in found.reason
