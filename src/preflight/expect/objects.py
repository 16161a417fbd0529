"""How fast an object store must be: for the training to say."""

from __future__ import annotations

from preflight.expect.bound import Bound
from preflight.facts.host import Host
from preflight.model import Known, Missing


def object_demand_mbps(_host: Host, _element: object) -> Known[Bound]:
    """Nothing is demanded of a store where nobody states it."""
    return Missing("not-asked", "how fast it must be is for the training to say: --set "
                   "objects.put.bandwidth=80 (MB/s), or --profile object-store")  # fmt: skip
