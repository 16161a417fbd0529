"""From each GPU to each other: whether it reaches it by itself, how fast, and rightly."""

from __future__ import annotations

from typing import Any

import torch

from ..ranks import Tell
from .place import Place, spread, timed

_BYTES = 256 << 20
_LIMIT_S = 30.0


def told_pairs(devices: list[int], tell: Tell) -> None:
    """One line for each ordered pair. Where the first cannot reach the second the driver takes the
    way through the host's memory: that is told, and measured too."""
    for one in devices:
        place = Place(one, torch.device("cuda", one))
        torch.cuda.set_device(place.device)
        here = torch.randint(0, 256, (_BYTES,), dtype=torch.uint8, device=place.device,
                             generator=place.generator(one))  # fmt: skip
        for other in devices:
            if other != one:
                tell({"kind": "doing", "name": f"copy {one} to {other}", "limit_s": _LIMIT_S})
                tell({"kind": "pair", "from": one, "to": other, **_copied(place, here, other)})
        del here
        torch.cuda.empty_cache()


def _copied(place: Place, here: torch.Tensor, other: int) -> dict[str, Any]:
    there = torch.zeros(_BYTES, dtype=torch.uint8, device=f"cuda:{other}")
    seconds = timed(place, lambda: there.copy_(here, non_blocking=True), 0.05)
    torch.cuda.synchronize(other)
    same = bool(torch.equal(there.cpu(), here.cpu()))
    reach = torch.cuda.can_device_access_peer(place.device, other)
    return {"reaches": reach, "same": same, "bytes_per_s": spread(_BYTES, seconds)}
