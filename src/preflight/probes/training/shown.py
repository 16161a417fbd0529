"""The line of a training run that shows a fact best."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from preflight.errors import ParseError
from preflight.probes.training.lines import WHOLE, Line, Told, finite, read

#: Kind and name of the line that tells a field of a rank.
_OF_RANK = {
    "replica": ("replica", ""), "hashes": ("proof", "repeated"),
    "peer_hashes": ("proof", "repeated"), "repeats": ("proof", "repeated"),
    "gc_percent": ("gc", ""), "memory": ("memory", ""),
    "behind_percent": ("step", ""), "busy_s": ("step", ""),
}  # fmt: skip


def locate(text: str, line: int, field: str) -> int:
    """The number of the line that shows a field, of the rank whose first line is `line` or of the
    run; `line` where none does."""
    try:
        told = read(text)
    except ParseError:
        return line
    name = field.partition(".")[0]
    found = _of_rank(told, line, name) if name in _OF_RANK else _of_run(told, name)
    return int(found["line"]) if found else line


def _of_rank(told: Told, line: int, field: str) -> Line | None:
    rank = next((one.get("rank") for one in told.lines if one["line"] == line), None)
    kind, name = _OF_RANK[field]
    mine = [
        one
        for one in told.where(kind, launch=WHOLE)
        if one.get("rank") == rank and name in ("", one.get("name"))
    ]
    if kind == "replica":
        odd = [one for one in mine if _is_odd(told, one)]
        return next(iter(odd or mine[-1:]), None)
    # Of many the last: the first steps are not like the others.
    return mine[-1] if mine else None


def _is_odd(told: Told, one: Line) -> bool:
    """Whether another rank had another digest at that step."""
    same = told.where("replica", launch=WHOLE, step_at=one.get("step_at"))
    return len({each.get("digest") for each in same}) > 1


def _of_run(told: Told, field: str) -> Line | None:
    find = _OF_RUN.get(field)
    return next(find(told), None) if find else None


def _steps(told: Told) -> list[Line]:
    return told.where("step", launch=WHOLE)


def _waited(told: Told) -> Iterator[Line]:
    """The step that waited longest for data."""
    counted = [one for one in _steps(told) if finite(one["seconds"].get("data"))]
    yield from sorted(counted, key=lambda one: -float(one["seconds"]["data"]))


def _not_finite(told: Told) -> Iterator[Line]:
    return (one for one in _steps(told) if not (finite(one["loss"]) and finite(one["norm"])))


def _of_kind(kind: str, **wanted: str) -> Callable[[Told], Iterator[Line]]:
    return lambda told: iter(told.where(kind, **wanted))


def _last_step(told: Told) -> Iterator[Line]:
    return reversed(_steps(told))


_FIRST_STEP = _of_kind("step", launch=WHOLE)
_MEMBERSHIP = _of_kind("proof", name="membership")
_OF_RUN: dict[str, Callable[[Told], Iterator[Line]]] = {
    "not_finite": _not_finite,
    "start_off_nats": _FIRST_STEP,
    "unmet": _of_kind("unmet"),
    "norm_first": _FIRST_STEP,
    "learned_percent": _last_step,
    "outside_optimizer": _MEMBERSHIP,
    "twice_in_optimizer": _MEMBERSHIP,
    "checkpoint_failed": lambda told: (one for one in told.of["done"] if one.get("failed")),
    "loader_ratio": _of_kind("loader_alone"),
    "data_percent": _last_step,
    "data_longest_s": _waited,
    "copy_percent": _last_step,
    "rest_percent": _last_step,
    "jitter_percent": _last_step,
}
