"""What counters of a host grow from window to window, while its ranks work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .counters import interfaces, read
from .plan import Plan

#: What grows by whatever is sent, on sound links too.
_TRAFFIC = ("packets", "Segs", "port_xmit_wait")
_AGAIN = "RetransSegs"


class Growing:
    """One rank of each host looks; the others tell nothing."""

    def __init__(self, plan: Plan, root: Path = Path("/")) -> None:
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self.looks = int(os.environ.get("RANK", "0")) % ranks == 0
        self.root, self.interfaces = root, interfaces(plan)
        self.last = self._look()

    def grew(self) -> dict[str, dict[str, int]]:
        """Since the last look, by device ("" of TCP) and counter; what did not grow is not
        there."""
        last, self.last = self.last, self._look()
        found: dict[str, dict[str, int]] = {}
        for device, counts in self.last.items():
            before = last.get(device, {})
            more = {key: one - before.get(key, one) for key, one in counts.items()}
            more = {key: one for key, one in more.items() if one > 0 and _tells(key)}
            if more:
                found[device] = more
        return found

    def _look(self) -> dict[str, dict[str, int]]:
        if not self.looks:
            return {}
        told: dict[str, Any] = read(self.root, self.interfaces)
        return {"": told["tcp"], **told["net"], **told["rdma"], **told["pci"]}


def _tells(name: str) -> bool:
    return name == _AGAIN or not name.endswith(_TRAFFIC)
