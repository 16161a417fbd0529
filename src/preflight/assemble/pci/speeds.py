"""Which GPU's link speed can be judged from lspci: not the low one that saves power at rest."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from preflight.facts.pci_tree import PciPath
from preflight.model import Known, Missing

#: GT/s to which GPUs lower their link at rest: generations 1 and 2. One in between, such as
#: generation 4 where 5 is possible, is no saving of power.
_REST_GTPS = 5.0


def with_judged_speeds(paths: Iterable[PciPath]) -> tuple[PciPath, ...]:
    """The devices with what is to be judged of the speed of each GPU."""
    found = tuple(paths)
    awake = any(_at_full_speed(each) for each in found if each.kind == "gpu")
    return tuple(
        replace(each, link=replace(each.link, judged_gtps=_judged(each, awake)))
        if each.kind == "gpu"
        else each
        for each in found
    )


def _judged(path: PciPath, awake: bool) -> Known[float]:
    """`awake`: another GPU of the host runs at its full speed, so that this one should too."""
    speed, can = path.link.speed_gtps, path.link.speed_can_gtps
    if isinstance(speed, Missing) or isinstance(can, Missing) or speed >= can:
        return speed
    if not path.bridges and not awake:
        text = "the port above it is not in the input, and may be built for no more"
        return Missing("not-in-input", f"{speed:g} of {can:g} GT/s: {text}")
    if speed <= _REST_GTPS and not awake:
        text = "a GPU at rest may save power so; look again under load"
        return Missing("not-applicable", f"{speed:g} of {can:g} GT/s: {text}")
    return speed


def _at_full_speed(path: PciPath) -> bool:
    speed, can = path.link.speed_gtps, path.link.speed_can_gtps
    if isinstance(speed, Missing) or isinstance(can, Missing):
        return False
    return speed > _REST_GTPS and speed >= can
