"""Which steps of an advice fit the place, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

#: What a step says that starts a container anew: there it comes first.
_IN_CONTAINER = "docker run"
#: What raises a soft limit to the hard one.
_TO_HARD = "ulimit -Hn"


def of_layer(steps: Sequence[str], layer: object) -> tuple[str, ...]:
    """The steps for a port of this link layer; those of the other begin with its name."""
    told = []
    for step in steps:
        own, colon, rest = step.partition(": ")
        named = bool(colon) and own in ("Ethernet", "InfiniBand")
        if named and isinstance(layer, str) and layer != own:
            continue
        told.append(rest if named and isinstance(layer, str) else step)
    return tuple(told)


def fitting(steps: Sequence[str], container: object, *, at_top: bool) -> tuple[str, ...]:
    """The steps for this place: in a container what belongs there first; none that would change
    nothing, as raising a soft limit that is `at_top`, as high as the hard one."""
    kept = [step for step in steps if not (at_top and _TO_HARD in step)]
    if isinstance(container, str) and container != "none":
        kept.sort(key=lambda step: _IN_CONTAINER not in step)
    return tuple(kept)
