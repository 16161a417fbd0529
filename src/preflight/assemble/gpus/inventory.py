"""How many GPUs there are and how many there should be: PCI, the driver's list, the allocation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from preflight.facts.gpu import Driver, Gpu, GpuInventory, NvidiaSmi, PciGpu
from preflight.facts.host import Identity, PciFunction
from preflight.facts.services import DriverModule
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.identity import granted
from preflight.probes.values import bus_id

#: Vendors of other accelerators (pci.ids) and the PCI classes by which theirs are told from the
#: graphics chip of a server's management controller.
OTHER_VENDORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "0x1002": ("an AMD GPU", ("0x0300", "0x0302", "0x0380", "0x1200")),
    "0x19e5": ("a Huawei Ascend accelerator", ("0x1200",)),
    "0x1da3": ("an Intel Gaudi accelerator", ("0x1200",)),
    "0x8086": ("an Intel GPU", ("0x0302", "0x0380", "0x1200")),
}


def count_gpus(
    identity: Known[Identity],
    pci: Known[tuple[PciFunction, ...]],
    smi: Known[NvidiaSmi],
    module: Known[DriverModule] = NOT_IN_INPUT,
    covers: Callable[[str], bool] = lambda _: True,
) -> GpuInventory:
    """The counts by who says so, and what this host should show. `covers`: whether the list of
    functions would show a GPU of that address."""
    on_pci, others = functions_on_pci(pci)
    listed = _listed(smi, on_pci, recorded=identity is NOT_IN_INPUT)
    if on_pci == 0 and _silent(smi):
        listed = 0
    functions = _functions(pci, smi, module)
    sides = _compared(functions, pci, smi)
    off = sides.off_pci if isinstance(sides.off_pci, tuple) else ()
    expected, basis = _expected(identity, on_pci, listed, sides)
    attached = smi if isinstance(smi, Missing) else smi.attached
    apart: list[PciGpu | Gpu] = [*sides.unlisted, *off]
    first = apart[0] if apart else None
    return GpuInventory(
        on_pci=on_pci,
        functions=functions,
        unlisted=tuple(each.name for each in sides.unlisted),
        off_pci=_told(sides.off_pci, covers),
        other_vendors=others,
        attached=attached,
        listed=listed,
        expected=expected,
        basis=basis,
        fails_without_gpu=_failing(on_pci, smi),
        line=first.line if first else 0,
        probe=first.probe if first else "",
    )


def nameless(
    inventory: GpuInventory, gpus: Known[tuple[Gpu, ...]], *, recorded: bool
) -> Known[int]:
    """How many GPUs the driver tells of without their addresses, to be held against PCI. In a live
    answer an allocation may limit them, and `listed` is judged."""
    if isinstance(gpus, Missing) or any(gpu.bus_id for gpu in gpus):
        return Missing("not-applicable", "no list of GPUs without their addresses on PCI")
    if not recorded:
        return Missing("not-applicable", "what is granted here is held against PCI: gpu.count")
    return inventory.on_pci if isinstance(inventory.on_pci, Missing) else len(gpus)


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


def _failing(on_pci: Known[int], smi: Known[NvidiaSmi]) -> Known[str]:
    """nvidia-smi's sentence where PCI shows no GPU: somebody installed it for one."""
    if isinstance(on_pci, Missing):
        return on_pci
    if on_pci:
        return ""
    if isinstance(smi, Missing):
        return Missing("not-applicable", "no NVIDIA GPU on PCI")
    return "" if smi.gpus or smi.driver.state == "answers" else smi.driver.text


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
) -> tuple[Known[int], tuple[str, ...]]:
    """How many NVIDIA GPUs PCI shows, and what else there is."""
    if isinstance(pci, Missing):
        return pci, ()
    others = {
        OTHER_VENDORS[each.vendor_id][0]
        for each in pci
        if each.class_id[:6] in OTHER_VENDORS.get(each.vendor_id, ("", ()))[1]
    }
    gpus, nvidia = _in_use(pci), _nvidia(pci)
    if nvidia and not gpus:
        others.add(f"{len(nvidia)} NVIDIA GPUs handed to virtual machines")
    return len(gpus), tuple(sorted(others))


def _nvidia(pci: Sequence[PciFunction]) -> list[PciFunction]:
    gpu = ("0x0300", "0x0302")
    return [each for each in pci if each.vendor_id == "0x10de" and each.class_id[:6] in gpu]


def _in_use(pci: Sequence[PciFunction]) -> list[PciFunction]:
    gpus = [each for each in _nvidia(pci) if each.driver != "vfio-pci"]
    if any(each.driver == "nvidia" for each in gpus):
        # Beside GPUs that work, an old card that draws the console is left to nouveau.
        gpus = [each for each in gpus if each.driver != "nouveau"]
    return gpus


def _functions(
    pci: Known[tuple[PciFunction, ...]], smi: Known[NvidiaSmi], module: Known[DriverModule]
) -> Known[tuple[PciGpu, ...]]:
    """The GPUs of the host with the driver of each; without the module none is nvidia's."""
    if isinstance(pci, Missing):
        return pci
    names = {} if isinstance(smi, Missing) else {gpu.bus_id: gpu.name for gpu in smi.gpus}
    modules = () if isinstance(module, Missing) else module.absent
    found = tuple(
        PciGpu(
            names.get(bus_id(each.address), each.address), bus_id(each.address),
            _driver(each, "nvidia" in modules and "vfio_pci" in modules), each.line, each.probe,
        )
        for each in _in_use(pci)
    )  # fmt: skip
    return found or Missing("not-applicable", "no NVIDIA GPU on PCI")


def _driver(function: PciFunction, without_module: bool) -> Known[str]:
    if isinstance(function.driver, Missing):
        told = "none: lsmod does not show the module nvidia"
        return told if without_module else function.driver
    return function.driver or "none"


class _Sides(Struct, frozen=True):
    """What only one of the two shows. Where no address is in both they cannot be compared."""

    unlisted: tuple[PciGpu, ...] = ()
    off_pci: Known[tuple[Gpu, ...]] = NOT_IN_INPUT


def _compared(
    functions: Known[tuple[PciGpu, ...]],
    pci: Known[tuple[PciFunction, ...]],
    smi: Known[NvidiaSmi],
) -> _Sides:
    if isinstance(functions, Missing) or isinstance(pci, Missing):
        return _Sides(off_pci=functions if isinstance(functions, Missing) else NOT_IN_INPUT)
    if isinstance(smi, Missing):
        return _Sides(off_pci=smi)
    listed = {gpu.bus_id for gpu in smi.gpus}
    shown = {bus_id(each.address) for each in _nvidia(pci)}
    if not listed & shown or "" in listed:
        return _Sides()
    return _Sides(
        tuple(each for each in functions if each.bus_id not in listed),
        tuple(gpu for gpu in smi.gpus if gpu.bus_id not in shown),
    )


def _told(off: Known[tuple[Gpu, ...]], covers: Callable[[str], bool]) -> Known[tuple[str, ...]]:
    if isinstance(off, Missing):
        return off
    named = tuple(f"{gpu.name} {gpu.bus_id[4:]}" for gpu in off)
    if all(covers(gpu.bus_id) for gpu in off):
        return named
    return Missing("not-in-input", f"lspci is there in part only, without {', '.join(named)}")


def _listed(smi: Known[NvidiaSmi], on_pci: Known[int], *, recorded: bool) -> Known[int]:
    if isinstance(smi, Missing):
        return smi
    count = len(smi.gpus)
    if smi.driver.state != "answers" and not count:
        return silence(smi.driver)
    if smi.cut:
        return Missing("unreadable", "the input is cut short: a GPU in it is not whole")
    if isinstance(smi.attached, Missing) and smi.attached is not NOT_IN_INPUT:
        return smi.attached
    if isinstance(on_pci, int) and on_pci and not recorded:
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
    identity: Known[Identity], on_pci: Known[int], listed: Known[int], sides: _Sides
) -> tuple[Known[int], str]:
    """How many GPUs should be listed, and who says so: PCI or a limiting allocation. One that
    either of the two shows should be there."""
    if isinstance(on_pci, Missing):
        text = "how many there should be is not known; state it: --set gpu.count=N"
        return Missing(on_pci.kind, text if on_pci.kind == "not-in-input" else on_pci.text), ""
    if on_pci == 0:
        text = "PCI shows no NVIDIA GPU here; state the number: --set gpu.count=N"
        return Missing("not-applicable", text), ""
    off = 0 if isinstance(sides.off_pci, Missing) else len(sides.off_pci)
    there = on_pci + off
    if isinstance(listed, Missing) or listed >= there:
        return there, "PCI"
    if identity is NOT_IN_INPUT:
        return _unsure(sides.unlisted) or there, "PCI"
    if isinstance(identity, Missing):
        text = f"{listed} of the {on_pci} GPUs on PCI are listed, and what was granted is not known"
        return Missing(identity.kind, f"{text}: {identity.text}"), ""
    limit = granted(identity)
    if isinstance(limit, int) and listed <= limit:
        return min(limit, there), "the allocation"
    if limit is NOT_IN_INPUT or isinstance(limit, int):
        return there, "PCI"  # nothing limits the view, or not this view
    return Missing(limit.kind, f"{listed} of the {on_pci} GPUs on PCI are visible here"), ""


def _unsure(unlisted: Sequence[PciGpu]) -> Missing | None:
    """A GPU that lspci shows without its driver may be handed to a virtual machine."""
    named = [each.name for each in unlisted if isinstance(each.driver, Missing)]
    if not named:
        return None
    text = f"lspci shows {', '.join(named)} and nvidia-smi does not: lost, or handed to a virtual"
    return Missing("unreadable", f"{text} machine, which `lspci -k` tells (vfio-pci)")
