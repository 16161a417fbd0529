"""What was tried within a host: its GPUs, fabrics and rails, each by itself."""

from __future__ import annotations

from typing import Any

from preflight.facts.host import Host
from preflight.model import Missing


def inside_tables(host: Host) -> tuple[dict[str, Any], ...]:
    """One table; none where nothing was looked at."""
    found = host.inside
    if isinstance(found, Missing) or not found.tests:
        return ()
    several = any(one.hosts for one in found.tests)
    rows = [
        {
            "tried": one.what,
            **({"on": ", ".join(one.hosts)} if several else {}),
            "GB/s": "-" if isinstance(one.busbw_gbps, Missing) else one.busbw_gbps,
        }
        for one in found.tests
    ]
    names = ", ".join(one.name for one in found.culprits)
    slow = f"slow: {names}" if names else "none is slower than the others"
    notes = [f"all_reduce, bus bandwidth in GB/s of 1e9 bytes; {slow}"]
    return ({"table": "within the host", "host": host.name, "rows": rows, "notes": notes},)
