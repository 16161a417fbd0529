"""Accelerators of other makers: what PCI shows and what their tools tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from preflight.facts.accelerators import AcceleratorAnswer, AcceleratorCount
from preflight.facts.host import PciFunction
from preflight.model import NOT_IN_INPUT, Known, Missing

#: Makers whose tools are read. The graphics of a processor (0300, without a driver of its own
#: for computing) are no accelerators: those of AMD are told by class 0380 and 1200.
_READ = {"0x1002": ("0x0380", "0x1200"), "0x19e5": ("0x1200",)}
_NONE = Missing("not-applicable", "no accelerator of AMD or Huawei on PCI")


def accelerator_facts(
    npus: Known[AcceleratorAnswer],
    amd: Known[AcceleratorAnswer],
    pci: Known[tuple[PciFunction, ...]],
) -> dict[str, Any]:
    """`accelerators` and `accelerator_count` of a host. Where PCI shows none, a tool that is absent
    or finds none is nothing to be told."""
    told = [one for one in (npus, amd) if isinstance(one, AcceleratorAnswer)]
    on_pci = pci if isinstance(pci, Missing) else _on_pci(pci)
    if told:
        each = tuple(one for answer in told for one in answer.each)
        count = AcceleratorCount(on_pci, len(each), told[0].version, probe=told[0].probe)
        return {"accelerators": each, "accelerator_count": count}
    why = _why(npus, amd, pci, on_pci)
    return {"accelerators": why, "accelerator_count": AcceleratorCount(on_pci, why, why)}


def _why(
    npus: Known[AcceleratorAnswer], amd: Known[AcceleratorAnswer],
    pci: Known[tuple[PciFunction, ...]], on_pci: Known[int],
) -> Missing:  # fmt: skip
    if on_pci == 0:
        return _NONE
    if isinstance(on_pci, Missing) or isinstance(pci, Missing):
        return on_pci if isinstance(on_pci, Missing) else NOT_IN_INPUT
    vendors = {each.vendor_id for each in _accelerators(pci)}
    answer = npus if "0x19e5" in vendors else amd
    return answer if isinstance(answer, Missing) else NOT_IN_INPUT


def _on_pci(pci: Sequence[PciFunction]) -> int:
    return len(_accelerators(pci))


def _accelerators(pci: Sequence[PciFunction]) -> list[PciFunction]:
    return [
        each
        for each in pci
        if each.class_id[:6] in _READ.get(each.vendor_id, ()) and each.driver != "vfio-pci"
    ]
