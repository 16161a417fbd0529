"""What preflight knows of a run of nccl-tests that it has started itself, besides what is printed:
which binary it was, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from preflight.facts.collectives import Collective, Collectives
from preflight.model import Known, Missing

TOOL = "nccl-tests"
_BINARY = "_perf"


def named(found: Collectives, argv: Sequence[str]) -> Collectives:
    """Two collectives have one form of a table; the command line tells which it is."""
    name = _name(argv)
    if not name or len(found.runs) != 1:
        return found
    (run,) = found.runs
    shape = run.shape if isinstance(run.shape, Missing) else replace(run.shape, name=name)
    return replace(found, runs=(replace(run, name=name, collective=name, shape=shape),))


def _name(argv: Sequence[str]) -> str:
    """What the binary in it measures; "" where there is none."""
    binary = next((word for word in argv if word.endswith(_BINARY)), "")
    return binary.rpartition("/")[2].removesuffix(_BINARY)


def not_run(argv: Sequence[str], why: Missing) -> Collectives | Missing:
    """One that was wanted and came to no table: beside others that did it must be seen."""
    name = _name(argv)
    run = Collective(name, TOOL, name, ended=why, line=1, probe=TOOL)
    return Collectives((run,), probe=TOOL) if name else why


def stopped(found: Collectives, why: str) -> Collectives:
    """With the reason why it came to no good end, unless it tells one itself."""
    *before, last = found.runs
    if tells(last):
        return found
    return replace(found, runs=(*before, replace(last, ended=False, trouble=why)))


def ended_by_us(found: Collectives, why: Missing, *, hangs: bool) -> Collectives:
    """What was measured until it was ended. One that hangs has failed, unless it never began; of
    one that was interrupted nobody knows. What it then says of its end is not the cause."""
    *before, last = found.runs
    text = f"{why.text}; it said: {last.trouble}" if last.trouble else why.text
    never = isinstance(last.ended, Missing) and last.ended.kind == "exited"
    ended: Known[bool] = False if hangs and not never else Missing(why.kind, text)
    return replace(found, runs=(*before, replace(last, ended=ended, trouble=text)))


def tells(run: Collective) -> bool:
    """Whether it is told already what is wrong with it."""
    wrong = isinstance(run.wrong, int) and run.wrong > 0
    return bool(run.trouble and run.ended is not True) or wrong or run.reaches_own_limit is False
