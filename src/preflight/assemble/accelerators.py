"""Accelerators of other makers: what PCI shows and what their tools tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from preflight.facts.accelerators import AcceleratorAnswer, AcceleratorCount
from preflight.facts.host import PciFunction
from preflight.model import NOT_IN_INPUT, Known, Missing

#: Makers whose tools are read, and the class of an accelerator (PCI Code and ID Assignment).
_MAKERS, _ACCELERATOR = ("0x1002", "0x19e5"), "0x1200"
#: AMD's Instinct cards of class 0380, which the graphics of a processor may have too: MI25, MI50
#: and MI60, MI100, MI200, MI300 (pci.ids).
_DISPLAY = "0x0380"
_INSTINCT = ("0x686", "0x66a", "0x738", "0x740", "0x74a", "0x74b")
_FAILED = ("exited", "timeout", "unreadable", "denied")
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
    bound = _NONE if on_pci == 0 else _bound(pci)
    if told:
        each = tuple(one for answer in told for one in answer.each)
        count = AcceleratorCount(on_pci, bound, len(each), told[0].version, probe=told[0].probe)
        return {"accelerators": each, "accelerator_count": count}
    why = _why(npus, amd, pci, on_pci)
    return {"accelerators": why, "accelerator_count": AcceleratorCount(on_pci, bound, why, why)}


def _why(
    npus: Known[AcceleratorAnswer], amd: Known[AcceleratorAnswer],
    pci: Known[tuple[PciFunction, ...]], on_pci: Known[int],
) -> Missing:  # fmt: skip
    if on_pci == 0:
        return _NONE
    if isinstance(pci, Missing):
        failed = [one for one in (npus, amd) if isinstance(one, Missing) and one.kind in _FAILED]
        return failed[0] if failed else pci  # a tool that is there, and tells nothing
    vendors = {each.vendor_id for each in _accelerators(pci)}
    answer = npus if "0x19e5" in vendors else amd
    return answer if isinstance(answer, Missing) else NOT_IN_INPUT


def _on_pci(pci: Sequence[PciFunction]) -> int:
    return len(_accelerators(pci))


def _accelerators(pci: Sequence[PciFunction]) -> list[PciFunction]:
    return [
        each
        for each in pci
        if each.vendor_id in _MAKERS and _computes(each) and each.driver != "vfio-pci"
    ]


def _computes(each: PciFunction) -> bool:
    kind = each.class_id[:6]
    instinct = each.vendor_id == "0x1002" and each.device_id.startswith(_INSTINCT)
    return kind == _ACCELERATOR or (kind == _DISPLAY and instinct)


def _bound(pci: Known[Sequence[PciFunction]]) -> Known[int]:
    """How many have a driver."""
    if isinstance(pci, Missing):
        return pci
    drivers = [each.driver for each in _accelerators(pci)]
    unknown = next((each for each in drivers if isinstance(each, Missing)), None)
    return unknown or sum(bool(each) for each in drivers)
