"""Facts that hosts are compared by and that no probe alone can tell."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from msgspec.structs import replace

from preflight.facts.host import Identity
from preflight.facts.nics import Nics
from preflight.model import Known, Missing, Raw

_NO_NIC = Missing("not-applicable", "no RDMA device in /sys/class/infiniband")


def with_clock(identity: Known[Identity], raw: Raw | None) -> Known[Identity]:
    """The identity with the distance of the host's clock from that of the machine that asked: both
    dates are of the moment at which the host began to answer."""
    if isinstance(identity, Missing) or raw is None or not raw.started_at:
        return identity
    if isinstance(identity.date_s, Missing):
        return replace(identity, clock_offset_s=identity.date_s)
    try:
        asked = datetime.strptime(raw.started_at, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return identity
    asked_s = int(asked.replace(tzinfo=timezone.utc).timestamp())
    return replace(identity, clock_offset_s=identity.date_s - asked_s)


def nic_facts(nics: Known[Nics]) -> dict[str, Any]:
    """RDMA devices and ports; a host without any has none to be judged, and their number is 0."""
    if isinstance(nics, Missing):
        return {"nics": nics, "nic_ports": nics, "nic_count": nics}
    return {
        "nics": nics.devices or _NO_NIC,
        "nic_ports": nics.ports or _NO_NIC,
        "nic_count": sum(not nic.virtual for nic in nics.devices),
    }
