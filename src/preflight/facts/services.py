"""What keeps the GPUs at work beside the driver: kernel modules and system services."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class DriverModule(Struct, frozen=True):
    """The kernel's side of the driver. `peermem` and so on: is the module loaded?"""

    version: Known[str] = NOT_IN_INPUT  # of the module that is loaded
    flavour: Known[str] = NOT_IN_INPUT  # open | proprietary
    modules: Known[tuple[str, ...]] = NOT_IN_INPUT  # those loaded that concern GPUs
    absent: tuple[str, ...] = ()  # of nvidia and vfio_pci those that a whole list does not show
    #: loaded | on-demand (nvidia-modprobe is there to load it at the first use) | absent
    uvm: Known[str] = NOT_IN_INPUT
    peermem: Known[bool] = NOT_IN_INPUT
    gdrdrv: Known[bool] = NOT_IN_INPUT
    nouveau: Known[bool] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""


class Service(Struct, frozen=True):
    """One unit of systemd, in systemd's own words."""

    name: str  # nvidia-fabricmanager
    load: Known[str] = NOT_IN_INPUT  # loaded | not-found | masked
    active: Known[str] = NOT_IN_INPUT  # active | activating | inactive | failed ...
    sub: Known[str] = NOT_IN_INPUT  # running | dead | auto-restart ...
    enabled: Known[str] = NOT_IN_INPUT  # enabled | disabled | static | masked ...
    restarts: Known[int] = NOT_IN_INPUT  # by systemd, since a person last started it
    result: Known[str] = NOT_IN_INPUT  # success | exit-code | signal ...
    outcome: Known[str] = NOT_IN_INPUT  # of its last start: running | ended | failed
    line: int = 0
    probe: str = ""


class Services(Struct, frozen=True):
    """One answer: the units asked for, and the daemons that were seen to run, in whatever way they
    were started."""

    units: Known[tuple[Service, ...]] = NOT_IN_INPUT
    daemons: Known[tuple[str, ...]] = NOT_IN_INPUT  # first 15 characters of their names
    fabric_manager_version: Known[str] = NOT_IN_INPUT  # of the program that is installed
    version_line: int = 0
    line: int = 1
    probe: str = ""


class FabricManager(Struct, frozen=True):
    """The daemon that configures NVSwitches."""

    needed: Known[bool] = NOT_IN_INPUT
    running: Known[bool] = NOT_IN_INPUT
    state: Known[str] = NOT_IN_INPUT  # "failed (dead, exit-code)"
    enabled: Known[str] = NOT_IN_INPUT
    restarts: Known[int] = NOT_IN_INPUT
    version: Known[str] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""
