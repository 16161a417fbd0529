"""Which of the hosts of one job this is."""

from __future__ import annotations

import os
from collections.abc import Sequence


class PlaceError(Exception):
    """This host is none of those of the job: why."""


def place_of(hosts: Sequence[str]) -> int:
    """Which of these it is, counted from 0; the first where none are named. Raises PlaceError."""
    if not hosts:
        return 0
    name, node = os.environ.get("PREFLIGHT_HOST"), os.environ.get("SLURM_NODEID", "")
    if name is None and node.isdigit() and int(node) < len(hosts):
        return int(node)
    if name not in hosts:
        raise PlaceError(f"PREFLIGHT_HOST is {name or 'not set'}, and the hosts of this run are "
                         f"{', '.join(hosts)}")  # fmt: skip
    return hosts.index(name)
