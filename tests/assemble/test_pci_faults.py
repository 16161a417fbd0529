"""A machine with 8 GPUs, sound and with a fault, as root sees it and as everybody does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw, Result
from preflight.probes.pci.tree import pci_tree
from preflight.recognise import recognise
from tests.probes.test_setup import asked
from tests.setup_text import NICS as RDMA
from tests.topology_hosts import (
    GPUS,
    NICS,
    Function,
    lspci,
    machine,
    names,
    sysfs,
    tree,
    write_sysfs,
)

CHECKS = load(("pcie",)).checks
METAL = "Architecture: x86_64\nCPU(s): 192\nNUMA node(s): 2\nFlags: fpu vme\n"
GUEST = METAL.replace("vme", "hypervisor")
#: The GPU at 4c, its slot 4a:01.0, its switch 49:00.0 below the root port 48:01.0.
GPU, SLOT, SWITCH, ROOT = "0000:4c:00.0", "0000:4a:01.0", "0000:49:00.0", "0000:48:01.0"

FORMS: dict[str, tuple[str, Callable[[list[Function]], str]]] = {
    "lspci -Dvvvnn": ("lspci", lspci),
    "sysfs": ("pci-tree", sysfs),
}


def judged(functions: list[Function], *forms: str, **others: str) -> list[Result]:
    given = {FORMS[form][0]: FORMS[form][1](functions) for form in forms}
    told = {"lscpu": METAL, **given, **others}
    raws = [Raw("node-07", probe, ("sh",), 0, text) for probe, text in told.items()]
    return list(examine("node-07", raws, CHECKS).results)


def bad(results: list[Result]) -> dict[str, Result]:
    off = ("WARN", "FAIL", "ERROR")
    return {
        f"{one.status.value} {one.check} {one.subject}": one
        for one in results
        if one.status.value in off
    }


@pytest.mark.parametrize("form", FORMS)
def test_a_sound_machine_passes(form: str) -> None:
    results = judged(machine(), form)
    assert bad(results) == {}
    passed = {one.check for one in results if one.status.value == "PASS"}
    assert {"pcie.link.width", "pcie.link.speed", "pcie.nic.link", "pcie.path.rate"} <= passed


#: What is unlike -> what is said of which device; and the bridge that it names.
FAULTS: list[tuple[dict[str, dict[str, Any]], str, str, str]] = [
    # The switch's uplink trained with 8 of its 16 lanes.
    ({ROOT: {"now": "32 8"}, SWITCH: {"now": "32 8"}}, f"FAIL pcie.path.rate {GPU}",
     "link above 0000:49:00.0: device 32 GT/s x16, port above 32 GT/s x16", "31.51"),
    # It is built with 8 lanes: nothing to mend, and slower all the same.
    ({ROOT: {"now": "32 8"}, SWITCH: {"now": "32 8", "can": "32 8"}},
     f"WARN pcie.path.rate {GPU}",
     "slowest above it: 0000:49:00.0, device 32 GT/s x8, port above 32 GT/s x16", "31.51"),
    # The GPU's own link to the switch.
    ({SLOT: {"now": "32 8"}, GPU: {"now": "32 8"}}, f"FAIL pcie.link.width {GPU}",
     "device 32 GT/s x16, port above 32 GT/s x16", "8"),
    ({SLOT: {"now": "16 16"}, GPU: {"now": "16 16"}}, f"WARN pcie.link.speed {GPU}",
     "device 32 GT/s x16, port above 32 GT/s x16", "16.0"),
    ({NICS[2]: {"now": "32 8"}}, f"WARN pcie.nic.link {NICS[2]}", "own link of 0000:4d:00.0",
     "31.51"),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("unlike", "said", "expected", "measured"), FAULTS)
def test_a_fault_is_found_and_named(
    form: str, unlike: dict[str, dict[str, Any]], said: str, expected: str, measured: str
) -> None:
    found = bad(judged(machine(unlike), form))
    assert set(found) == {said}
    assert expected in found[said].expected
    assert str(found[said].measured) == measured
    assert found[said].evidence, "the line that shows it"


def test_the_line_of_sysfs_that_shows_it_is_given() -> None:
    found = bad(judged(machine(FAULTS[0][0]), "sysfs"))
    (one,) = found.values()
    assert one.evidence[0].text.endswith("/0000:48:01.0/0000:49:00.0")
    assert " 32.0 8 32.0 16 " in one.evidence[0].text


def test_what_lspci_may_not_read_is_told_by_sysfs() -> None:
    functions = machine(FAULTS[0][0])
    blocks = lspci(functions).strip().split("\n\n")
    denied = "".join(
        "\n".join([*(line for line in block.split("\n") if not line.startswith("\t\t")
                     and "Capabilities" not in line), "\tCapabilities: <access denied>", "", ""])
        for block in blocks
    )  # fmt: skip
    alone = [Raw("n", "lscpu", ("lscpu",), 0, METAL), Raw("n", "lspci", ("lspci",), 0, denied)]
    both = [*alone, Raw("n", "pci-tree", ("sh",), 0, sysfs(functions))]
    before, after = (bad(list(examine("n", raws, CHECKS).results)) for raws in (alone, both))
    assert any(said.startswith("ERROR pcie.link.width") for said in before)
    assert f"FAIL pcie.path.rate {GPU}" in after
    # Errors and ACS stand in registers that root alone may read.
    left = {said.split()[1] for said in after if said.startswith("ERROR")}
    assert left == {
        "pcie.path.errors", "pcie.path.acs", "pcie.path.payload", "pcie.nic.read_request",
        "pcie.nic.read_request.same",
    }  # fmt: skip
    assert all("--sudo" in one.reason for said, one in after.items() if said[:5] == "ERROR")


def test_where_lspci_is_not_installed_what_it_alone_tells_is_skipped() -> None:
    raws = [
        Raw("n", "lscpu", ("lscpu",), 0, METAL),
        Raw("n", "lspci", ("lspci",), 127),
        Raw("n", "pci-tree", ("sh",), 0, sysfs(machine())),
    ]
    report = examine("n", raws, CHECKS)
    assert bad(list(report.results)) == {}
    (acs,) = [one for one in report.results if one.check == "pcie.path.acs"]
    assert (acs.status.value, "apt install pciutils" in acs.reason) == ("SKIP", True)
    assert report.missing == ()


def test_in_a_virtual_machine_nothing_of_it_is_judged() -> None:
    assert bad(judged(machine(FAULTS[0][0]), "sysfs", lscpu=GUEST)) == {}


def test_lspci_counts_and_its_lines_are_shown() -> None:
    functions = machine(FAULTS[0][0])
    (one,) = bad(judged(functions, "lspci -Dvvvnn", "sysfs")).values()
    assert one.evidence[0].text.startswith("LnkSta:")


def test_a_live_machine_is_asked_and_read(tmp_path: Path) -> None:
    functions = machine(FAULTS[0][0])
    root = write_sysfs(tmp_path, functions)
    text = asked(pci_tree, root, "/sys/bus/pci")
    assert text.replace(str(tmp_path), "") == sysfs(functions)
    found = bad(judged([], **{"pci-tree": text}))
    assert set(found) == {f"FAIL pcie.path.rate {GPU}"}


def test_a_drawing_and_a_list_of_names_are_one_tree() -> None:
    functions = machine()
    pasted = f"$ lspci -tv\n{tree(functions)}$ lspci -nn\n{names(functions)}"
    raws = recognise(pasted.encode(), "paste.txt")
    assert {raw.probe for raw in raws} == {"lspci", "lspci-tree"}
    host = assemble("n", raws).host
    found = {one.name: one for one in host.pci_tree.devices}  # type: ignore[union-attr]
    for one in functions:
        device = found[one.address]
        assert device.way == one.way
        assert device.probe == "lspci"
        assert one.below is None or (device.secondary, device.port) == (one.below[0], one.port)
    (first, *_) = host.pci_paths.gpus  # type: ignore[union-attr, misc]
    assert first.bridges == ("0000:17:01.0", "0000:16:00.0", "0000:15:01.0")


@pytest.mark.parametrize(
    ("unlike", "said"),
    [
        ({GPU: {"payload": 128}}, {f"WARN pcie.path.payload {GPU}"}),
        ({SWITCH: {"payload": 512}},
         {f"WARN pcie.path.payload {GPU}", f"WARN pcie.path.payload {NICS[2]}"}),
        ({NICS[0]: {"read_request": 512}}, {f"WARN pcie.nic.read_request.same {NICS[0]}"}),
        ({nic: {"read_request": 512} for nic in NICS}, set()),
        ({nic: {"read_request": 256} for nic in NICS},
         {f"WARN pcie.nic.read_request {nic}" for nic in NICS}),
    ],
)  # fmt: skip
def test_sizes_of_packets_and_requests(unlike: dict[str, dict[str, Any]], said: set[str]) -> None:
    results = judged(machine(unlike), "lspci -Dvvvnn")
    assert set(bad(results)) == said


def test_the_bridge_with_another_size_is_named() -> None:
    found = bad(judged(machine({SWITCH: {"payload": 512}}), "lspci -Dvvvnn"))
    assert found[f"WARN pcie.path.payload {GPU}"].measured == "0000:49:00.0 at 512"


@pytest.mark.parametrize(
    ("translated", "others", "statuses"),
    [
        ("identity", {"nics": RDMA}, {"PASS"}),
        ("DMA-FQ", {"nics": RDMA}, {"WARN"}),
        ("DMA", {"nics": RDMA}, {"WARN"}),
        # No adapter that could reach a GPU's memory.
        ("DMA-FQ", {"nics": "end\n"}, {"SKIP"}),
        ("DMA-FQ", {"nics": RDMA, "lscpu": GUEST}, {"SKIP"}),
    ],
)
def test_how_the_iommu_translates(
    translated: str, others: dict[str, str], statuses: set[str]
) -> None:
    functions = machine({gpu: {"translated": translated} for gpu in GPUS})
    results = judged(functions, "sysfs", **others)
    found = [one for one in results if one.check == "pcie.iommu.translated"]
    assert {one.status.value for one in found} == statuses


def test_without_an_iommu_there_is_nothing_to_translate() -> None:
    text = sysfs(machine()).replace(" identity 12 ", " - - ")
    results = judged([], **{"pci-tree": text, "nics": RDMA})
    (one,) = [one for one in results if one.check == "pcie.iommu.translated"]
    assert (one.status.value, "in no group" in one.reason) == ("SKIP", True)
