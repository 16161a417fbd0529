"""Text with any damage is read or refused; nothing is raised on the way to the report."""

from __future__ import annotations

import random

import pytest

from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw
from tests.conftest import sample
from tests.lspci_text import server
from tests.probes.test_services import STATUS
from tests.topology_hosts import machine, sysfs, tree
from tests.written import MODULES, SERVICES

BASES = (
    ("lspci", server()),
    ("lspci", sample("lspci/a100_x8_nvswitch_nn.txt")),
    ("pci-tree", sysfs(machine())),
    ("lspci-tree", tree(machine())),
    ("lspci", "Slot:\t19:00.0\nClass:\t0302\nVendor:\t10de\nDevice:\t2330\nRev:\ta1\n\n"),
    ("hwloc", sample("hwloc/vm_2cpu_v2.xml")),
    ("services", SERVICES),
    ("services", STATUS),
    ("driver-module", MODULES),
)
CHECKS = load(("gpu", "pcie", "fabric")).checks
#: Digits that Python takes for digits and int() reads, or does not.
ODD = "0xfF:.[]()\n\t =-+9aZ\u0660\u00b2"


def damaged(text: str, seed: int) -> str:
    chance, letters = random.Random(seed), list(text)
    for _ in range(chance.randint(1, 30)):
        at, how = chance.randrange(len(letters)), chance.random()
        if how < 0.4:
            letters[at] = chance.choice(ODD)
        elif how < 0.7:
            del letters[at : at + chance.randint(1, 30)]
        else:
            letters[at:at] = letters[chance.randrange(len(letters)) :][: chance.randint(1, 60)]
        letters = letters or ["x"]
    return "".join(letters)


@pytest.mark.parametrize("base", range(len(BASES)))
def test_damaged_text(base: int) -> None:
    probe, text = BASES[base]
    for seed in range(40):
        examine("h", [Raw("h", probe, (probe,), 0, damaged(text, seed))], CHECKS)


def test_digits_that_are_none() -> None:
    for told in ("\u0660", "\u00b2", "9" * 5000):
        text = server().replace("NUMA node: 0", f"NUMA node: {told}")
        text = text.replace("Width x16", f"Width x{told}").replace(
            "IOMMU group: 12", f"IOMMU group: {told}"
        )
        text = text.replace("32GT/s", f"{told}GT/s").replace("MaxPayload 256", f"MaxPayload {told}")
        examine("h", [Raw("h", "lspci", ("lspci",), 0, text)], CHECKS)
        shown = SERVICES.replace("NRestarts=0", f"NRestarts={told}")
        examine("h", [Raw("h", "services", ("sh",), 0, shown)], CHECKS)
