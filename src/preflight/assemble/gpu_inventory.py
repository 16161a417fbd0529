"""How many GPUs there are and how many there should be: PCI, the driver's list, the allocation."""

from __future__ import annotations

from msgspec.structs import replace

from preflight.facts.gpu import Driver, GpuInventory, NvidiaSmi
from preflight.facts.host import Identity, PciFunction
from preflight.facts.services import DriverModule
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.identity import granted

#: Vendors of other accelerators (pci.ids) and the PCI classes by which theirs are told from the
#: graphics chip of a server's management controller.
OTHER_VENDORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "0x1002": ("an AMD GPU", ("0x0300", "0x0302", "0x0380", "0x1200")),
    "0x19e5": ("a Huawei Ascend accelerator", ("0x1200",)),
    "0x1da3": ("an Intel Gaudi accelerator", ("0x1200",)),
    "0x8086": ("an Intel GPU", ("0x0302", "0x0380", "0x1200")),
}


def count_gpus(
    identity: Known[Identity], pci: Known[tuple[PciFunction, ...]], smi: Known[NvidiaSmi]
) -> GpuInventory:
    """The counts by who says so, and what this host should show."""
    on_pci, without_driver, others = functions_on_pci(pci)
    listed = _listed(smi, on_pci)
    if on_pci == 0 and _silent(smi):
        listed = 0
    expected, basis = _expected(identity, on_pci, listed)
    attached = smi if isinstance(smi, Missing) else smi.attached
    return GpuInventory(on_pci, without_driver, others, attached, listed, expected, basis)


def not_asked(pci: Known[tuple[PciFunction, ...]], smi: Known[NvidiaSmi]) -> Known[NvidiaSmi]:
    """GPUs that PCI shows and of which nobody asked the driver are not sound: they are unknown."""
    on_pci = functions_on_pci(pci)[0]
    if not isinstance(on_pci, int) or on_pci == 0 or smi is not NOT_IN_INPUT:
        return smi
    return Missing("unreadable", f"{on_pci} GPUs on PCI, and no answer of nvidia-smi in the input")


def nothing_wrong_without_gpus(inventory: GpuInventory, smi: Known[NvidiaSmi]) -> Known[NvidiaSmi]:
    """Where PCI shows no NVIDIA GPU and nvidia-smi lists none, nothing is wrong with either."""
    if inventory.on_pci != 0 or not _silent(smi):
        return smi
    others = f"; there is {', '.join(inventory.other_vendors)}" if inventory.other_vendors else ""
    return Missing("not-applicable", f"no NVIDIA GPU on PCI{others}")


def nouveau_beside(
    module: Known[DriverModule], pci: Known[tuple[PciFunction, ...]]
) -> Known[DriverModule]:
    """Where nouveau has a card of its own beside those of the driver, it is there on purpose."""
    if isinstance(module, Missing) or isinstance(pci, Missing):
        return module
    drivers = {each.driver for each in pci if isinstance(each.driver, str)}
    if not {"nouveau", "nvidia"} <= drivers:
        return module
    return replace(module, nouveau=Missing("not-applicable", "nouveau has a card of its own here"))


def silence(driver: Driver) -> Missing:
    """Why there are no GPUs to judge where the driver did not answer."""
    if driver.state == "hangs":
        return Missing("timeout", driver.text)
    return Missing("exited", f"nvidia-smi: {driver.text}")


def _silent(smi: Known[NvidiaSmi]) -> bool:
    """Whether nvidia-smi tells of no GPU either: not installed, no driver, no device. One that
    hangs, breaks down or speaks of another driver version knows of what PCI does not show."""
    if isinstance(smi, Missing):
        return smi.kind in ("no-tool", "not-in-input")
    return not smi.gpus and smi.driver.state in ("not-running", "no-devices")


def functions_on_pci(
    pci: Known[tuple[PciFunction, ...]],
) -> tuple[Known[int], Known[int], tuple[str, ...]]:
    if isinstance(pci, Missing):
        return pci, pci, ()
    nvidia = [
        each
        for each in pci
        if each.vendor_id == "0x10de" and each.class_id[:6] in ("0x0300", "0x0302")
    ]
    gpus = [each for each in nvidia if each.driver != "vfio-pci"]
    if any(each.driver == "nvidia" for each in gpus):
        # Beside GPUs that work, an old card that draws the console is left to nouveau.
        gpus = [each for each in gpus if each.driver != "nouveau"]
    others = {
        OTHER_VENDORS[each.vendor_id][0]
        for each in pci
        if each.class_id[:6] in OTHER_VENDORS.get(each.vendor_id, ("", ()))[1]
    }
    unbound = [each for each in gpus if each.driver != "nvidia"]
    untold = next((each.driver for each in unbound if isinstance(each.driver, Missing)), None)
    if not gpus:
        none = Missing("not-applicable", "no NVIDIA GPU on PCI")
        away = len(nvidia)  # so all of them are handed away
        told = {*others, f"{away} NVIDIA GPUs handed to virtual machines"} if away else others
        return 0, none, tuple(sorted(told))
    without = len(unbound) if untold is None else untold
    return len(gpus), without, tuple(sorted(others))


def _listed(smi: Known[NvidiaSmi], on_pci: Known[int]) -> Known[int]:
    if isinstance(smi, Missing):
        return smi
    count = len(smi.gpus)
    if smi.driver.state != "answers" and not count:
        return silence(smi.driver)
    if smi.cut:
        return Missing("unreadable", "the input is cut short: a GPU in it is not whole")
    if isinstance(smi.attached, Missing) and smi.attached is not NOT_IN_INPUT:
        return smi.attached
    if isinstance(on_pci, int) and on_pci:
        return count  # held against PCI, which knows better than the list's own head
    if isinstance(smi.attached, Missing):
        return Missing("not-in-input", "the head with the number of attached GPUs is not there")
    if count < smi.attached:
        text = (
            f"{smi.attached} GPUs announced, {count} listed: the input is cut short, or nvidia-smi "
            "was asked for some of them (-i)"
        )
        return Missing("unreadable", text)
    return count


def _expected(
    identity: Known[Identity], on_pci: Known[int], listed: Known[int]
) -> tuple[Known[int], str]:
    """How many GPUs should be listed, and who says so: PCI or a limiting allocation."""
    if isinstance(on_pci, Missing):
        text = "how many there should be is not known; state it: --set gpu.count=N"
        return Missing(on_pci.kind, text), ""
    if on_pci == 0:
        text = "PCI shows no NVIDIA GPU here; state the number: --set gpu.count=N"
        return Missing("not-applicable", text), ""
    if isinstance(listed, Missing) or listed >= on_pci:
        return on_pci, "PCI"
    if isinstance(identity, Missing):
        text = f"{listed} of the {on_pci} GPUs on PCI are listed, and what was granted is not known"
        return Missing(identity.kind, f"{text}: {identity.text}"), ""
    limit = granted(identity)
    if isinstance(limit, int) and listed <= limit:
        return min(limit, on_pci), "the allocation"
    if limit is NOT_IN_INPUT or isinstance(limit, int):
        return on_pci, "PCI"  # nothing limits the view, or not this view
    return Missing(limit.kind, f"{listed} of the {on_pci} GPUs on PCI are visible here"), ""
