"""Which GPU is nearest to an adapter."""

from __future__ import annotations

import contextlib
from functools import lru_cache

from .. import alone
from . import adapters


@lru_cache(maxsize=1)
def places() -> tuple[str, ...]:
    """Of each GPU that can be used here, by the numbers of CUDA in the order of PCI: its way
    through PCI."""
    import pynvml

    found = []
    for _, handle in alone.visible_gpus():
        place = ""
        with contextlib.suppress(pynvml.NVMLError, OSError):
            told = pynvml.nvmlDeviceGetPciInfo(handle).busId
            bus_id = (told.decode() if isinstance(told, bytes) else str(told)).lower()[-12:]
            place = str((adapters.SYS / "bus/pci/devices" / bus_id).resolve(strict=True))
        found.append(place)
    return tuple(found)


def near(place: str) -> int:
    """The number of the nearest GPU; there is one."""
    return adapters.nearest(place, places())
