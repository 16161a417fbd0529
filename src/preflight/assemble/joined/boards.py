"""Whether what NVLink should join is all there: bridges between cards, GPUs of a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.assemble.joined.domains import on_board
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host, PciFunction
from preflight.facts.nvlink import Nvlink
from preflight.facts.topology import NvlinkDomain
from preflight.model import Known, Missing
from preflight.probes.identity import granted

#: GPUs that such a board has, or a part that a fabric manager cuts from it for a virtual machine
#: (NVIDIA Fabric Manager User Guide: HGX with 4, 8 and 16 GPUs and their partitions).
WHOLE = (1, 2, 4, 8, 16)
_PART = Missing("not-applicable", "a part of a board may be granted here: the input does not tell")
_NO_BOARD = Missing("not-applicable", "no board with NVSwitches joins the GPUs of this host")
_NO_BRIDGES = Missing("not-applicable", "no bridges between the GPUs of this host")
_NO_FAULT = Missing("not-applicable", "no bridge to another card, which is no fault")

Domains = Known[tuple[NvlinkDomain, ...]]


def bridged(
    names: Sequence[str], gpus: Mapping[str, Gpu], domains: Domains
) -> dict[str, Known[bool]]:
    """Whether each card has a bridge to its like. That one has none is told where a single bridge
    is away, of three or more that are alike."""
    if isinstance(domains, Missing):
        return _by_links(names, gpus, domains)
    if not domains or any(map(on_board, domains)):
        return dict.fromkeys(names, _NO_BRIDGES)
    joined = {name for one in domains for name in one.gpus}
    apart = [name for name in names if name not in joined]
    sizes = {len(one.gpus) for one in domains}
    return _told(names, apart, len(domains) > 1 and sizes == {len(apart)} and _alike(names, gpus))


def _by_links(
    names: Sequence[str], gpus: Mapping[str, Gpu], why: Missing
) -> dict[str, Known[bool]]:
    """The same by the links that are up, where no matrix tells to whom: of bridges of two."""
    up = [_links_up(gpus[name]) if name in gpus else why for name in names]
    if any(isinstance(one, Missing) for one in up):
        return dict.fromkeys(names, why)
    apart = [name for name, links in zip(names, up, strict=True) if not links]
    return _told(names, apart, len(apart) == 2 and len(names) >= 6 and _alike(names, gpus))


def _links_up(gpu: Gpu) -> Known[int]:
    """Those of a card with an edge for a bridge."""
    if isinstance(gpu.nvlink, Nvlink) and not isinstance(gpu.design, Missing):
        return gpu.nvlink.up if gpu.design.bridged else _NO_BRIDGES
    return _NO_BRIDGES


def _told(names: Sequence[str], apart: Sequence[str], lost: bool) -> dict[str, Known[bool]]:
    without: Known[bool] = False if lost else _NO_FAULT
    return {name: without if name in apart else True for name in names}


def _alike(names: Sequence[str], gpus: Mapping[str, Gpu]) -> bool:
    """Of one model, as far as it is known, and none cut up by MIG, which uses no NVLink."""
    known = [gpus[name] for name in names if name in gpus]
    return len({str(gpu.product) for gpu in known}) <= 1 and not any(
        gpu.mig.mode == "Enabled" for gpu in known
    )


def board_gpus(host: Host, names: Sequence[str], domains: Domains) -> Known[int]:
    """How many GPUs a board with NVSwitches shows: by NVLink, else by PCI. Numbers that a job may
    have been granted are left open where the input does not tell of that."""
    if isinstance(domains, Missing):
        return domains
    boards = [len(one.gpus) for one in domains if one.switched is True]
    if not boards:
        return _NO_BOARD
    counts = {*boards, len(names), _on_pci(host.pci)}
    if (found := counts.intersection(WHOLE)) and max(found) >= max(boards):
        return max(found)
    count = max(boards)
    return count if (count + 1 in WHOLE and count > 3) or _all_is_shown(host) else _PART


def _on_pci(pci: Known[Sequence[PciFunction]]) -> int:
    """NVIDIA's GPUs without a display, those too that are handed to virtual machines."""
    functions = () if isinstance(pci, Missing) else pci
    return sum(
        each.vendor_id == "0x10de" and each.class_id.startswith("0x0302") for each in functions
    )


def _all_is_shown(host: Host) -> bool:
    """Whether nothing limits what is seen of the machine."""
    identity = host.identity
    if isinstance(identity, Missing) or identity.container != "none":
        return False
    limit = granted(identity)
    return isinstance(limit, Missing) and limit.kind == "not-in-input"
