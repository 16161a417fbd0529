"""What a bench of an object store measured, or why there is none."""

from __future__ import annotations

from typing import Any

from preflight.facts.objects import Objects
from preflight.model import NOT_IN_INPUT, Known, Missing

NO_OBJECTS = Missing(
    "not-asked",
    "recorded without a bench of an object store: `preflight io-bench --url s3://BUCKET/PREFIX`",
)
#: Up to here the time of an object is that of its request, not of its bytes.
_SMALL_BYTES = 64 << 10


def object_facts(found: Known[Objects], *, asked: bool) -> dict[str, Any]:
    """The store, and the ways in which it was asked."""
    if found is NOT_IN_INPUT:
        why = NO_OBJECTS if asked else NOT_IN_INPUT
    elif isinstance(found, Missing):
        why = found
    elif found.busy:  # active work never competes
        why = Missing("busy", found.busy)
    elif found.cannot:
        why = Missing("no-tool" if found.lacks else "exited", found.cannot)
    else:
        ways = found.ways or _no_way(found)
        small = tuple(one for one in found.ways if one.size_bytes <= _SMALL_BYTES)
        return {"object_stores": found.stores, "object_ways": ways,
                "object_small_ways": small or _no_way(found)}  # fmt: skip
    return dict.fromkeys(("object_stores", "object_ways", "object_small_ways"), why)


def _no_way(found: Objects) -> Missing:
    if any(one.reached is False for one in found.stores):
        return Missing("not-applicable", "the store was not reached")
    return Missing("exited", "the bench was ended before its first request")
