"""Lists of PCI functions that stop early: of what may stand behind their end nothing is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw
from preflight.recognise import recognise
from tests.topology_hosts import NICS, Function, lspci, machine, names, sysfs, tree

CHECKS = load(("topology",)).checks
FORMS = {"lspci": lspci, "lspci-tree": tree}


def with_nics(*kept: str) -> list[Function]:
    """The machine with these adapters alone; drives stand in the place of the others."""
    return [
        replace(one, kind="nvme") if one.kind == "nic" and one.address not in kept else one
        for one in machine()
    ]


#: One GPU without an adapter of its own, in the middle of the list.
LAME = with_nics(*(name for name in NICS if name != NICS[2]))
#: Two adapters for all GPUs: one near each processor.
FEW = with_nics(NICS[0], NICS[7])


def near(text: str, **others: str) -> set[str]:
    """Status and check of what is said of the GPUs and their adapters."""
    found = recognise(text.encode(), "paste.txt")
    found += [Raw("", probe, stdout=told) for probe, told in others.items()]
    results = examine("node-07", found, CHECKS).results
    return {
        f"{one.status.value} {one.check}" for one in results
        if one.check.startswith("topo.gpu.nic.") and one.status.value in ("WARN", "FAIL", "ERROR")
    }  # fmt: skip


def lines_of(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    return ["".join(lines[:at]) for at in range(len(lines) // 3, len(lines))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("functions", [machine(), FEW], ids=["adapter-each", "adapter-a-socket"])
def test_no_end_of_a_sound_list_is_a_finding(form: str, functions: list[Function]) -> None:
    # Every third end: a device has more lines than that.
    told = [near(part) for part in list(lines_of(FORMS[form](functions)))[::3]]
    assert not any(one.startswith("WARN") for part in told for one in part)
    assert near(FORMS[form](functions)) == set()


def test_an_adapter_that_is_gone_from_a_whole_list_is_told() -> None:
    assert near(lspci(LAME)) == {"WARN topo.gpu.nic.near"}


def test_a_second_list_that_is_whole_tells_what_the_first_lacks() -> None:
    part = lspci(LAME)
    cut = part[: part.index("0000:d9:02.0")]
    assert near(cut) == {"ERROR topo.gpu.nic.near"}
    assert near(cut, **{"pci-tree": sysfs(LAME)}) == {"WARN topo.gpu.nic.near"}


def test_names_alone_that_end_with_a_gpu() -> None:
    text = names(machine())
    cut = text[: text.rfind("d9:02.0")]
    assert not near(cut)
