"""The way from a GPU to its root: which link is the slowest, and whether that is a fault."""

from __future__ import annotations

import re
from typing import Any

import pytest

from preflight.collect import examine
from preflight.expect.pcie import link_gbps
from preflight.judge.load import load
from preflight.model import Raw, Result
from tests.conftest import sample
from tests.lspci_text import server

RTX = sample("nvidia_smi_xml/rtx3060_570.124.xml")
LSCPU = "Architecture: x86_64\nCPU(s): 8\nFlags: fpu {}\n"


def _results(text: str, **others: str) -> dict[str, list[Result]]:
    raws = [Raw("node-07", "lspci", ("lspci",), 0, text)]
    raws += [Raw("node-07", probe, (probe,), 0, said) for probe, said in others.items()]
    found: dict[str, list[Result]] = {}
    for one in examine("node-07", raws, load(("gpu", "pcie")).checks).results:
        found.setdefault(one.check, []).append(one)
    return found


def _bad(found: dict[str, list[Result]]) -> set[str]:
    return {
        f"{one.status.value} {one.check} {one.subject}"
        for results in found.values()
        for one in results
        if one.status.value not in ("PASS", "SKIP")
    }


@pytest.mark.parametrize(
    ("speed", "width", "gbps"),
    [(2.5, 16, 4.0), (5, 16, 8.0), (8, 16, 15.75), (16, 16, 31.51), (32, 16, 63.02), (32, 8, 31.51),
     (64, 16, 121.0), (2.5, 1, 0.25)],
)  # fmt: skip
def test_what_a_link_carries(speed: float, width: int, gbps: float) -> None:
    assert link_gbps(speed, width) == gbps


def test_a_sound_server_passes() -> None:
    found = _results(server())
    assert _bad(found) == set()
    for check in ("pcie.device.answers", "pcie.link.width", "pcie.nic.link", "pcie.path.rate",
                  "pcie.path.errors"):  # fmt: skip
        assert "PASS" in {one.status.value for one in found[check]}, check


def test_a_bridge_that_does_not_answer_fails_and_takes_what_was_below_it_along() -> None:
    blocks = server().rstrip("\n").split("\n\n")
    at = next(at for at, one in enumerate(blocks) if "Upstream Port" in one)
    head = blocks[at].split("\n")[0]
    address = head.split(" ")[0]
    dead = f"{head.partition(' (rev')[0]} (rev ff) (prog-if ff)\n\t!!! Unknown header type 7f"
    below = range(at + 1, at + 4)
    left = [one for number, one in enumerate(blocks) if number not in below]
    left[at] = dead
    found = _results("\n\n".join(left) + "\n\n")
    assert f"FAIL pcie.device.answers {address}" in _bad(found)


@pytest.mark.parametrize(
    ("shape", "bad"),
    [
        # The switch's uplink lost half its lanes, or a generation: all behind it are slower.
        ({"uplink": "32 8"}, {"FAIL pcie.path.rate 0000:19:00.0"}),
        ({"uplink": "16 16"}, {"FAIL pcie.path.rate 0000:19:00.0"}),
        # It is built no faster: true, nothing to mend.
        ({"uplink": "16 16", "root_can": "16 16"}, {"WARN pcie.path.rate 0000:19:00.0"}),
        ({"uplink": "32 8", "uplink_can": "32 8"}, {"WARN pcie.path.rate 0000:19:00.0"}),
        # Below what it is built for, but no slower than the GPU's own link can be.
        ({"uplink": "16 16", "slot_can": "16 16", "slot": "16 16", "gpu": "16 16"}, set()),
        # The GPU's own lanes.
        ({"gpu": "32 8", "slot": "32 8"}, {"FAIL pcie.link.width 0000:19:00.0"}),
        # A slot with half the lanes, a card that has all of them.
        (
            {"gpu": "32 8", "slot": "32 8", "slot_can": "32 8"},
            {"WARN pcie.link.slot 0000:19:00.0"},
        ),
        # A low generation of the GPU's own link saves power at rest.
        ({"gpu": "2.5 16", "slot": "2.5 16"}, set()),
        ({"nic": "16 16"}, {"WARN pcie.nic.link 0000:18:00.0"}),
        ({"uesta": "DLP"}, {"WARN pcie.path.errors 0000:19:00.0"}),
        ({"root_uesta": "CmpltTO UnsupReq"}, {"WARN pcie.path.errors 0000:19:00.0"}),
        ({"uesta": "UnsupReq", "root_uesta": "UnsupReq"}, set()),
        (
            {"acs": "SrcValid ReqRedir"},
            {"WARN pcie.path.acs 0000:19:00.0", "WARN pcie.path.acs 0000:18:00.0"},
        ),
    ],
    # Sorted: the order of a set differs between the workers of a run.
    ids=lambda one: str(sorted(one)) if isinstance(one, set) else str(one),
)  # fmt: skip
def test_what_is_a_fault_and_what_is_not(shape: dict[str, str], bad: set[str]) -> None:
    assert _bad(_results(server(**shape))) == bad


def test_the_slow_link_is_named_with_the_arithmetic_and_its_line() -> None:
    text = server(uplink="32 8")
    (slow,) = _results(text)["pcie.path.rate"]
    assert slow.measured == 31.51
    assert slow.unit == "GB/s"
    assert "at least 63" in slow.expected
    assert slow.expected == (
        "at least 63 (32 GT/s x 16 lanes, link above 0000:16:00.0: device 32 GT/s x16, "
        "port above 32 GT/s x16)"
    )
    (evidence,) = slow.evidence
    assert evidence.text == "LnkSta:\tSpeed 32GT/s (ok), Width x8 (downgraded)".replace("\t", " ")
    head = max(
        at for at, line in enumerate(text.split("\n")[: evidence.line]) if line[:4] == "0000"
    )
    assert text.split("\n")[head].startswith("0000:16:00.0")


def test_an_error_on_a_bridge_is_told_with_its_address() -> None:
    (wrong,) = [
        one
        for one in _results(server(root_uesta="CmpltTO"))["pcie.path.errors"]
        if one.status.value == "WARN"
    ]
    assert wrong.measured == "0000:15:01.0 CmpltTO"
    assert "CmpltTO+" in wrong.evidence[0].text


def test_in_a_virtual_machine_links_are_shown_and_not_judged() -> None:
    found = _results(server(gpu="32 8", uplink="16 4"), lscpu=LSCPU.format("hypervisor"))
    assert _bad(found) == set()
    assert {one.status.value for one in found["pcie.link.width"]} == {"SKIP"}


def test_a_gpu_on_the_root_bus_is_one_that_a_hypervisor_put_there() -> None:
    text = "00:1e.0 3D controller: NVIDIA Corporation GA102GL [A10G] (rev a1)\n" + "\n".join(
        line for line in server(gpu="16 8").split("19:00.0 3D", 1)[1].split("\n")[1:]
    )
    assert _bad(_results(text)) == set()


def test_the_gpu_has_the_name_that_nvidia_smi_gives_it() -> None:
    xml = re.sub("0000[0-9A-F]{4}:[0-9A-F]{2}:00.0", "00000000:19:00.0", RTX)
    found = _results(server(uplink="32 8"), **{"nvidia-smi": xml})
    assert [one.subject for one in found["pcie.path.rate"]] == ["gpu0"]
    # What nvidia-smi tells of its own link is judged there: one fault, one failure.
    assert {one.status.value for one in found["pcie.link.width"]} == {"SKIP"}


def test_without_root_the_way_cannot_be_told() -> None:
    text = "".join(
        f"{block.splitlines()[0]}\n\tCapabilities: <access denied>\n\tKernel driver in use: x\n\n"
        for block in server().strip().split("\n\n")
    )
    found = _results(text)
    (width,) = found["pcie.link.width"]
    assert (width.status.value, "--sudo" in width.reason) == ("ERROR", True)


def test_absent_it_is_skipped_and_the_package_is_named() -> None:
    raws = [Raw("node-07", "lspci", ("lspci",), 127)]
    results = examine("node-07", raws, load(("pcie",)).checks).results
    (skipped,) = [one for one in results if one.check == "pcie.path.rate"]
    assert (skipped.status.value, "apt install pciutils" in skipped.reason) == ("SKIP", True)


def test_in_a_container_it_belongs_to_the_host() -> None:
    inside = "hostname node-07\ncontainer_file /.dockerenv\n"
    found = _results(server(uplink="32 8"), identity=inside)
    assert _bad(found) == set()


@pytest.mark.parametrize(
    ("head", "status", "check"),
    [
        # A server's GPU: by its name, by the management controller's graphics, or one of several.
        ("3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev ff)", "FAIL", "answers"),
        ("3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev ff)", "FAIL", "answers"),
        ("3D controller: NVIDIA Corporation AD102GL [L40S] (rev ff)", "FAIL", "answers"),
        ("3D controller: NVIDIA Corporation TU104GL [Tesla T4] (rev ff)", "FAIL", "answers"),
        ("3D controller: NVIDIA Corporation GM108M [GeForce 940M] (rev ff)", "WARN", "asleep"),
        ("VGA compatible controller: NVIDIA Corporation Device 0fd1 (rev ff)", "WARN", "asleep"),
        ("3D controller: NVIDIA Corporation TU117GLM [T550 Laptop GPU] (rev ff)", "WARN", "asleep"),
        ("3D controller: NVIDIA Corporation [RTX A2000 Mobile] (rev ff)", "WARN", "asleep"),
        ("Ethernet controller: Mellanox Technologies MT2910 Family (rev ff)", "FAIL", "answers"),
        ("Bridge: NVIDIA Corporation Device 22a3 (rev ff)", "FAIL", "answers"),
    ],
)
def test_a_device_that_does_not_answer(head: str, status: str, check: str) -> None:
    assert _bad(_results(f"3b:00.0 {head}\n")) == {f"{status} pcie.device.{check} 0000:3b:00.0"}


def test_a_nameless_gpu_of_a_server_is_lost_and_not_asleep() -> None:
    bmc = "06:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family\n"
    lost = "3b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev ff)\n"
    other = lost.replace("3b", "4c").replace("rev ff", "rev a1")
    for text in (bmc + lost, lost + other):
        assert "FAIL pcie.device.answers 0000:3b:00.0" in _bad(_results(text))


def _inventory(text: str, **others: str) -> dict[str, Any]:
    raws = [Raw("node-07", "lspci", (), 0, text)]
    raws += [Raw("node-07", probe, (), 0, said) for probe, said in others.items()]
    report = examine("node-07", raws, load(("gpu",)).checks, facts=True)
    assert report.facts is not None
    return {
        **{one.check: one for one in report.results},
        "on_pci": report.facts["gpu_inventory"]["on_pci"],
    }


def test_lspci_alone_tells_how_many_gpus_and_makes_nothing_undetermined() -> None:
    found = _inventory(sample("lspci/xe9680_h100_x8_cx7_vvv_devices.txt"))
    assert found["on_pci"] == 8
    assert found["gpu.driver.bound"].status.value == "PASS"
    assert found["gpu.temperature"].status.value == "SKIP"


def test_an_excerpt_of_lspci_has_no_say_in_how_many_there_should_be() -> None:
    smi = sample("nvidia_smi_q/rtx4090_x8_535.154_idle.txt")
    one = "01:00.0 VGA compatible controller: NVIDIA Corporation AD102 (rev a1)\n"
    assert _inventory(one, **{"nvidia-smi-q": smi})["gpu.count"].status.value == "SKIP"


def test_lspci_beside_nvidia_smi_is_held_against_it() -> None:
    eight = sample("lspci/xe9680_h100_x8_cx7_vvv_devices.txt")
    smi = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
    count = _inventory(eight, **{"nvidia-smi-q": smi})["gpu.count"]
    assert (count.status.value, count.measured) == ("PASS", 8)


def test_bus_numbers_that_lead_in_a_circle_end() -> None:
    text = (
        server()
        .replace("primary=15, secondary=16", "primary=19, secondary=16")
        .replace("0000:15:01.0", "0000:19:01.0")
    )
    assert _results(text)["pcie.path.rate"][0].status.value in ("PASS", "SKIP", "ERROR")
