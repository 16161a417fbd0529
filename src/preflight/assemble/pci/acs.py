"""ACS on the ports of switches: which send traffic between devices below them up to the root."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.facts.pci_tree import PathAcs, PciDevice, PciPath, PciTree
from preflight.model import Known, Missing

#: Requests, or their completions, go up to the root port in place of straight to the other device
#: (PCI Express Base Specification, 6.12.1.1, ACS P2P Request and Completion Redirect).
_REDIRECT = frozenset({"ReqRedir", "CmpltRedir"})
_SWITCH_PORT = "Downstream Port"
_HANDED = Missing(
    "not-applicable", "devices are handed to virtual machines here (vfio-pci), which needs ACS"
)


def path_acs(above: Sequence[PciDevice]) -> PathAcs:
    """The ports above a device, from it upwards. Below a root port alone all traffic passes the
    root whatever ACS says: only ports of switches count."""
    ports = [each for each in above if each.port == _SWITCH_PORT]
    on = [each for each in ports if _redirects(each)]
    if on:
        return PathAcs(tuple(each.name for each in on), on[0].acs_line or on[0].line, on[0].probe)
    registers = [*(each.port for each in above), *(each.acs for each in ports)]
    # A port without the registers redirects nothing.
    untold = [one for one in registers if isinstance(one, Missing) and one.kind != "not-applicable"]
    if untold:
        return PathAcs(untold[0], probe=above[0].probe)
    if not above:
        missing = Missing("not-in-input", "the bridges above it are not in the input")
        return PathAcs(missing)
    return PathAcs((), above[0].line, above[0].probe)


def judged_for_acs(
    tree: PciTree, gpus: Known[tuple[PciPath, ...]], nics: Known[tuple[PciPath, ...]]
) -> Known[tuple[PciPath, ...]]:
    """The GPUs, and the adapters that share a switch with one, for the port above either turns what
    goes between them. Where lspci shows bridges alone they are named."""
    if any(each.driver == "vfio-pci" for each in tree.devices):
        return _HANDED
    on = [each.name for each in tree.devices if _redirects(each)]
    if not isinstance(gpus, Missing):
        adapters = () if isinstance(nics, Missing) else nics
        return (*gpus, *_beside(tree, gpus, adapters))
    if not on:
        return gpus
    text = f"ACS redirects at {', '.join(on)}, and lspci shows no NVIDIA GPU below them"
    return Missing("not-in-input", text)


def _beside(tree: PciTree, gpus: Sequence[PciPath], nics: Sequence[PciPath]) -> Iterator[PciPath]:
    """The adapters below a switch that a GPU is below too, save where a GPU names the port."""
    switches = {each.name for each in tree.devices if each.port == "Upstream Port"}
    shared = switches & {bridge for each in gpus for bridge in each.bridges}
    named = {port for each in gpus for port in _ports(each)}
    for each in nics:
        again = _ports(each) and named.issuperset(_ports(each))
        if not shared.isdisjoint(each.bridges) and not again:
            yield each


def _ports(path: PciPath) -> tuple[str, ...]:
    return () if isinstance(path.acs.redirecting, Missing) else path.acs.redirecting


def _redirects(device: PciDevice) -> bool:
    return not isinstance(device.acs, Missing) and not _REDIRECT.isdisjoint(device.acs)
