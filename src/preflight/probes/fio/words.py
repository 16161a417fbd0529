"""What the name of a job says that it does, held beside what it does."""

from __future__ import annotations

import re

from preflight.model import NOT_IN_INPUT, Known, Missing

_SILENT = Missing("not-applicable", "its name says nothing of what it does")
_WORDS = {
    "random": "random", "rand": "random", "rnd": "random", "sequential": "sequential",
    "seq": "sequential", "read": "read", "reads": "read", "write": "write", "writes": "write",
}  # fmt: skip
#: Two words written as one.
_GLUED = re.compile(r"(random|rand|rnd|sequential|seq)[-_ ]?(reads?|writes?)")


def in_words(name: str, rw: Known[str]) -> tuple[Known[str], Known[str]]:
    """What the name says and, in the same words, what `rw` does: `random read`, `random write`. A
    name with both of two opposites, or a job that does both, tells nothing of them."""
    if isinstance(rw, Missing):
        return rw, rw
    split = _GLUED.sub(r"\1 \2", name.lower())
    said = [_WORDS[word] for word in re.findall(r"[a-z]+", split) if word in _WORDS]
    order = _one_of(said, "random", "sequential")
    way = _one_of(said, "read", "write")
    does = "random" if rw.startswith("rand") else "sequential"
    ways = [one for one in ("read", "write") if one in rw] if rw not in ("rw", "randrw") else []
    named = [one for one in (order, way if len(ways) == 1 else "") if one]
    if not named or not rw:
        return _SILENT, NOT_IN_INPUT
    done = [does if one in ("random", "sequential") else ways[0] for one in named]
    return " ".join(named), " ".join(done)


def _one_of(said: list[str], one: str, other: str) -> str:
    found = {word for word in said if word in (one, other)}
    return found.pop() if len(found) == 1 else ""
