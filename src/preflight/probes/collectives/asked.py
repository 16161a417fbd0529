"""What preflight knows of a run of nccl-tests that it has started itself, besides what is printed:
which binary it was, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from preflight.facts.collectives import Collective, Collectives
from preflight.model import Known, Missing

_BINARY = "_perf"


def named(found: Collectives, argv: Sequence[str]) -> Collectives:
    """Two collectives have one form of a table; the command line tells which it is."""
    binary = next((word for word in argv if word.endswith(_BINARY)), "")
    name = binary.rpartition("/")[2].removesuffix(_BINARY)
    if not name or len(found.runs) != 1:
        return found
    (run,) = found.runs
    shape = run.shape if isinstance(run.shape, Missing) else replace(run.shape, name=name)
    return replace(found, runs=(replace(run, name=name, collective=name, shape=shape),))


def stopped(found: Collectives, ended: Known[bool], why: str) -> Collectives:
    """With the reason why it came to no good end, unless it tells one itself."""
    *before, last = found.runs
    if tells(last):
        return found
    return replace(found, runs=(*before, replace(last, ended=ended, trouble=why)))


def tells(run: Collective) -> bool:
    """Whether it is told already what is wrong with it."""
    wrong = isinstance(run.wrong, int) and run.wrong > 0
    return bool(run.trouble and run.ended is not True) or wrong or run.reaches_own_limit is False
