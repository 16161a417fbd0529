"""Which steps of an advice fit the place and what was found, and in which order."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: What a step says that starts a container anew: there it comes first.
_IN_CONTAINER = "docker run"
#: How a step begins that is for one of several findings.
_IF = "if "
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


def of_device(steps: Sequence[str], subject: str) -> tuple[str, ...]:
    """The steps for a GPU or for processors; those that are for one of them begin with its name."""
    mine, other = ("processors: ", "GPU: ")[:: 1 if subject.startswith("processors") else -1]
    return tuple(one.removeprefix(mine) for one in steps if not one.startswith(other))


def of_what_was_found(steps: Sequence[str], told: str) -> tuple[str, ...]:
    """The steps for what was found: `if WORDS or WORDS: STEP` is left out where it holds none of
    the words, and where it does it comes first."""
    first, rest = [], []
    for step in steps:
        words, colon, what = step.removeprefix(_IF).partition(": ")
        if not step.startswith(_IF) or not colon:
            rest.append(step)
        elif re.search(rf"(?<!\w)(?:{'|'.join(map(re.escape, words.split(' or ')))})(?!\w)", told):
            first.append(what)
    return (*first, *rest)


def fitting(steps: Sequence[str], container: object, *, at_top: bool) -> tuple[str, ...]:
    """The steps for this place: in a container what belongs there first; none that would change
    nothing, as raising a soft limit that is `at_top`, as high as the hard one."""
    kept = [step for step in steps if not (at_top and _TO_HARD in step)]
    if isinstance(container, str) and container != "none":
        kept.sort(key=lambda step: _IN_CONTAINER not in step)
    return tuple(kept)
