"""The fabric manager: whether this host needs one, and how it is, from services, PCI and models."""

from __future__ import annotations

from msgspec.structs import replace

from preflight.assemble.pci.paths import has_nvswitch
from preflight.expect.models import model_of
from preflight.facts.gpu import NvidiaSmi
from preflight.facts.host import PciFunction
from preflight.facts.services import FabricManager, Service, Services
from preflight.model import Known, Missing

_UNIT, _DAEMON = "nvidia-fabricmanager", "nv-fabricmanage"


def fabric_manager(
    services: Known[Services],
    pci: Known[tuple[PciFunction, ...]],
    smi: Known[NvidiaSmi],
    virtualization: Known[str],
) -> FabricManager:
    """All about the fabric manager; each field says by itself why it is not known."""
    needed = _needed(pci, smi, virtualization)
    if isinstance(services, Missing):
        none = services
        return FabricManager(needed, none, none, none, none, none)
    unit = _unit(services)
    told = FabricManager(
        needed=needed,
        running=_running(services, unit),
        version=services.fabric_manager_version,
        probe=services.probe,
    )
    if isinstance(unit, Missing):
        line = services.version_line or services.line
        return replace(told, state=unit, enabled=unit, restarts=unit, line=line)
    return replace(
        told, state=_state(unit), enabled=unit.enabled, restarts=unit.restarts, line=unit.line
    )


def _needed(
    pci: Known[tuple[PciFunction, ...]], smi: Known[NvidiaSmi], virtualization: Known[str]
) -> Known[bool]:
    """True where an NVSwitch is on PCI, or the GPU model comes with NVSwitches (from Blackwell on
    they are not on the host's PCI). In a virtual machine without a switch the host's side has the
    fabric manager; in a rack of superchips the switch trays have it."""
    switch = has_nvswitch(pci)
    if switch is True:
        return True
    if isinstance(smi, Missing):
        return smi  # which GPUs these are is not known
    models = [model_of(gpu.product) for gpu in smi.gpus]
    if any(not isinstance(row, Missing) and row.nvswitch for row in models):
        if virtualization == "vm":
            return _none("a virtual machine without an NVSwitch: the other side manages the fabric")
        return virtualization if isinstance(virtualization, Missing) else True
    unknown = next((row for row in models if isinstance(row, Missing)), None)
    return unknown or _none("no NVSwitch belongs to its GPUs")


def _none(text: str) -> Missing:
    return Missing("not-applicable", text)


def _unit(services: Services) -> Known[Service]:
    """The unit; a daemon that runs without one (in a container) has none of its settings."""
    if isinstance(services.units, Missing):
        return services.units
    mine = [each for each in services.units if each.name == _UNIT]
    unit = mine[-1] if mine else None  # of several recordings the last
    if unit is None:
        return Missing("not-in-input", f"{_UNIT} is not in the input")
    by_container = not isinstance(services.daemons, Missing) and _DAEMON in services.daemons
    if unit.load == "not-found" and by_container:
        return _none("it runs without a unit of systemd, in a container")
    return unit


def _running(services: Services, unit: Known[Service]) -> Known[bool]:
    """By its process, whoever started it; else by its unit, for processes may be hidden."""
    daemons = services.daemons
    if not isinstance(daemons, Missing) and _DAEMON in daemons:
        return True
    if isinstance(unit, Missing):
        return unit
    if isinstance(unit.active, Missing):
        return unit.active
    return unit.active == "active" and unit.sub != "exited"


def _state(unit: Service) -> Known[str]:
    if isinstance(unit.active, Missing):
        return unit.active
    if unit.load == "not-found":
        return "not installed"
    more = [part for part in (unit.sub, unit.result) if isinstance(part, str) and part != "success"]
    return f"{unit.active} ({', '.join(more)})" if more else unit.active
