"""A checkpoint beside the others of its run: files that only it lacks, a shard of another size,
since when a value is no number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from preflight.diagnosis.checkpoint.damage import Reason, odd, seen
from preflight.diagnosis.checkpoint.found import VALUES, Found

#: Sizes of one file differ by less from save to save; so many others must agree.
_ALIKE, _LEAST_OTHERS = 0.01, 2
_NEIGHBOURS = 3  # on each side


def groups(found: Sequence[Found]) -> list[list[Found]]:
    """Checkpoints of one run: of one layout, side by side. Newest first, as they come."""
    told: dict[tuple[str, str, str], list[Found]] = {}
    for one in found:
        layout = one.layout.id if one.layout else ""
        parent = one.folder.rpartition("/")[0] if one.path == one.folder else one.folder
        stem = "" if one.path == one.folder else re.sub(r"\d+", "N", one.path)
        told.setdefault((layout, parent, stem), []).append(one)
    return list(told.values())


def beside(found: Found, others: Sequence[Found]) -> list[Reason]:
    """What is odd about it among the others, of which it is none."""
    if len(others) < _LEAST_OTHERS:
        return []
    mine = {_like(name): name for name in found.files}
    theirs = [{_like(name): one for name, one in each.files.items()} for each in others]
    kept = set.intersection(*(set(each) for each in theirs))
    gone = sorted(name for name in kept - set(mine) if theirs[0][name].kind in VALUES)
    told = []
    if gone:
        told.append(Reason(
            "incomplete", f"{', '.join(gone[:4])} {'is' if len(gone) == 1 else 'are'} not in it, "
            f"and in all {len(others)} others of this run", "take one of the others",
            seen(found.path, gone[0]),
        ))  # fmt: skip
    for name in sorted(kept & set(mine)):
        file, sizes = found.files[mine[name]], [one[name].size for one in theirs]
        if file.kind in VALUES and _differs(file.size, sizes):
            told.append(_sized(mine[name], file.size, sizes))
    return told


def _like(name: str) -> str:
    """Names of one file in several checkpoints differ by the step."""
    return re.sub(r"(step|ba|iter_|checkpoint_\d+_)\d+", r"\1N", name)


def _differs(size: int, others: Sequence[int]) -> bool:
    middle = median(others)
    agree = all(abs(one - middle) <= _ALIKE * middle for one in others)
    return agree and middle > 0 and abs(size - middle) > _ALIKE * middle


def _sized(name: str, size: int, others: Sequence[int]) -> Reason:
    return Reason("note", f"{name} has {size:,} bytes, and about {median(others):,.0f} in the "
                  f"{len(others)} others")  # fmt: skip


def near(run: Sequence[Found], at: int) -> list[Found]:
    """The neighbours of one of a run: of a long run not all are compared."""
    return [*run[max(0, at - _NEIGHBOURS) : at], *run[at + 1 : at + 1 + _NEIGHBOURS]]


def since(run: Sequence[Found]) -> str:
    """Since which checkpoint of a run there are values that are no numbers; "" where there are
    none, or that is not known."""
    oldest_first = [one for one in reversed(run) if one.step is not None]
    if len(oldest_first) < 2:
        return ""
    first = next((one for one in oldest_first if odd(one, "nans") or odd(one, "infs")), None)
    if first is None:
        return ""
    before = [one for one in oldest_first if (one.step or 0) < (first.step or 0)]
    told = f"since step {first.step:,}"
    return f"{told}; step {before[-1].step:,} has none" if before else f"{told}, the oldest here"
