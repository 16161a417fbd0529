"""How busy the processors of this host are, with our own ranks among what keeps them so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from .plan import Plan


def load(_plan: Plan, _at: int, _order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Processes that ran or waited for a processor, as a mean of the last minute (getloadavg(3)),
    and how many processors there are."""
    yield {"kind": "load", "load": round(os.getloadavg()[0], 1), "cpus": os.cpu_count() or 1}
