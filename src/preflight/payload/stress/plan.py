"""What a stress run is to do, as it was asked for; travels as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field


class PlanError(Exception):
    """A plan that cannot be one here: why."""


@dataclass(frozen=True)
class Plan:
    """`inject`: faults by name, each with the number of its device."""

    device: str = ""  # cuda where there is one, else cpu
    devices: int = 0  # 0: all that are there; a CPU's cores are one device, or cut into so many
    seconds: float = 0.0  # of the short tests of one device; 0: by the device
    soak_s: float = 0.0  # of matrices multiplied and compared after them
    seed: int = 1
    attention: str = ""  # BATCHxHEADSxKV_HEADSxLENGTHxSIZE of the user's model; "": by the device
    #: A device that says nothing for so long is wedged: a driver that gives up on a GPU's firmware
    #: takes 6 s (Xid 119), kernels that are loaded for the first time some more.
    silent_s: float = 60.0
    memory_percent: int = 90  # of what is free on a GPU is tested; of a host a small part of it
    inject: dict[str, int] = field(default_factory=dict)
    even_if_busy: bool = False
    job: str = ""
