"""The lines of the bundled bench of an object store (payload/objects)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from preflight.errors import ParseError
from preflight.facts.objects import Objects, ObjectStore, ObjectWay
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe
from preflight.probes.told import Line, lines_of
from preflight.units import format_bytes

PROBE = "objects"
FORM = "objects/1"
_UNREACHED = Missing("not-applicable", "the store was not reached")
_ENDED = Missing("exited", "the bench was ended before it")
_NO_WIRE = Missing("not-applicable", "there is no network in between")
_NONE_ANSWERED = Missing("exited", "no request of it was answered")
_CACHED = Missing("unreadable", "these files stay in the memory of the host: it would be measured")
_TIMED = ("per_s", "bandwidth_mbps", "p50_us", "p99_us", "max_us")
_WHOLE = Missing("not-applicable", "files have no parts")
_LOCAL = ("file", "local", "memory")
#: No bench counts so many, or lasts so long.
_MOST, _LONGEST_S = 1 << 50, 86400
#: Of a way, what is never below 0.
_COUNTS = ("failed", "hung", "lost", "size_bytes", "at_once", "asked")
#: From here on an object tells how much comes through.
_LARGE_BYTES = 1 << 20


@probe(PROBE, ["python3", "-I", "-", "objects"], timeout_s=330)
def objects_bench(text: str) -> Objects:
    """One store. Raises ParseError for what is none."""
    lines = lines_of(text, FORM)
    first = lines[0]
    for one in lines:
        _hold_range(one)
    told = str(first.get("text", ""))
    if first["kind"] == "busy":
        return Objects(busy=told, probe=PROBE)
    if first["kind"] == "cannot":
        lacks = first.get("why") in ("no-fsspec", "no-library", "no-torch")
        return Objects(cannot=told, lacks=lacks, probe=PROBE)
    ways = tuple(_way(one) for one in lines if one["kind"] == "way")
    interrupted = any(one["kind"] == "interrupted" for one in lines)
    return Objects((_store(first, lines, ways),), ways, interrupted=interrupted, probe=PROBE)


def _hold_range(told: Line) -> None:
    """Raises ParseError for numbers that no bench tells."""
    for name in _COUNTS if told["kind"] == "way" else ():
        count = _count(told.get(name, 0))
        if count is None or count < 0:
            raise ParseError(f"{name}: expected a count", told["line"])
    elapsed = told.get("elapsed_s", 0)
    if not _is_time(elapsed) or not 0 <= elapsed <= _LONGEST_S:
        raise ParseError("elapsed_s: expected seconds, a day at most", told["line"])


def _store(first: Line, lines: Sequence[Line], ways: Sequence[ObjectWay]) -> ObjectStore:
    by_kind = {one["kind"]: one for one in lines}
    plan = first.get("plan")
    url = str(plan.get("url", "")) if isinstance(plan, dict) else ""
    library = str(first.get("library", ""))
    about: dict[str, Any] = {"name": url or "object store", "library": library,
                             "folder": str(first.get("folder", ""))}  # fmt: skip
    reached = by_kind.get("reached")
    if reached is None:
        return ObjectStore(reached=_ENDED, **_all(_ENDED), **about)
    if reached.get("ok") is not True:
        trouble = str(reached.get("text", "")) or "no reason was told"
        left = {"left": _left(by_kind, _UNREACHED)}
        return ObjectStore(
            reached=False, trouble=trouble, line=reached["line"], probe=PROBE,
            **{**_all(_UNREACHED), **left, **about},
        )  # fmt: skip
    is_local = first.get("protocol") in _LOCAL
    said = (each for one in lines if one["kind"] == "way" for each in _texts(one.get("said")))
    return ObjectStore(
        reached=True, said=tuple(dict.fromkeys(said)), swept=_count(reached.get("left")) or 0,
        **_requests(ways, whole="end" in by_kind),
        **_wire(by_kind.get("exchanges"), ways, library, is_local),
        **_contents(by_kind), **_in_parts(by_kind.get("parts"), is_local),
        left=_left(by_kind, _ENDED), put_mbps=_best(ways, "put"), get_mbps=_best(ways, "get"),
        **about,
    )  # fmt: skip


def _all(why: Missing) -> dict[str, Any]:
    names = ("requests", "failed", "exchanges", "throttled_percent", "retried_percent", "read",
             "wrong", "unlisted", "parts", "left", "put_mbps", "get_mbps")  # fmt: skip
    return dict.fromkeys(names, why)


def _requests(ways: Sequence[ObjectWay], *, whole: bool) -> dict[str, Any]:
    if not ways or not whole:  # how many there would have been is not known
        return {"requests": _ENDED, "failed": _ENDED}
    return {"requests": sum(one.requests for one in ways),
            "failed": sum(one.failed for one in ways)}  # fmt: skip


def _wire(
    line: Line | None, ways: Sequence[ObjectWay], library: str, is_local: bool
) -> dict[str, Any]:
    """Known where every request was seen to go over the wire."""
    requests = sum(one.requests for one in ways)
    seen = 0 if line is None else _count(line.get("seen")) or 0
    names = ("exchanges", "throttled_percent", "retried_percent")
    if is_local:
        return dict.fromkeys(names, _NO_WIRE)
    if line is None:
        return dict.fromkeys(names, _ENDED)
    if not seen or seen < requests:
        told = f"{library} does not show what it tries again: counted is what it gave up alone"
        return dict.fromkeys(names, Missing("unreadable", told))
    failed = sum(one.failed for one in ways)
    throttled = _count(line.get("throttled")) or 0
    retried = max(0, (_count(line.get("troubled")) or 0) - throttled - failed)
    statuses = line.get("statuses")
    told_by = statuses.items() if isinstance(statuses, dict) else ()
    return {
        "exchanges": seen, "retried_percent": 100 * retried / seen,
        "throttled_percent": 100 * throttled / seen,
        "statuses": tuple((str(one), _count(many) or 0) for one, many in told_by),
    }  # fmt: skip


def _contents(by_kind: dict[str, Line]) -> dict[str, Any]:
    content, listed = by_kind.get("content"), by_kind.get("listed")
    unlisted: Known[int] = _ENDED
    if listed is not None:
        missing = _count(listed.get("missing"))
        told = Missing("exited", str(listed.get("text", "")) or "the list tells nothing")
        unlisted = told if missing is None or missing < 0 else missing
    if content is None:
        return {"read": _ENDED, "wrong": _ENDED, "unlisted": unlisted}
    read = _count(content.get("read")) or 0
    none = Missing("exited", "no object was got")
    wrong, lost = _count(content.get("wrong")), _count(content.get("lost")) or 0
    return {"read": read, "wrong": none if not read + lost or wrong is None else wrong + lost,
            "lost": lost, "unlisted": unlisted}  # fmt: skip


def _in_parts(line: Line | None, is_local: bool) -> dict[str, Any]:
    if is_local:
        return {"parts": _WHOLE}
    if line is None:
        return {"parts": _ENDED}
    if line.get("ok") is not True:
        return {"parts": str(line.get("text", "")) or "it failed"}
    size = (_count(line.get("parts")) or 0) * (_count(line.get("part_bytes")) or 0)
    return {"parts": "whole", "parts_put_mbps": _rate(size, line.get("put_s")),
            "parts_get_mbps": _rate(size, line.get("get_s"))}  # fmt: skip


def _left(by_kind: dict[str, Line], unknown: Missing) -> Known[int]:
    line = by_kind.get("removed")
    count = None if line is None else _count(line.get("left"))
    if count is None or count < 0:
        said = "" if line is None else str(line.get("text", ""))
        return Missing("exited", said) if said else unknown
    return count


def _way(line: Line) -> ObjectWay:
    op, at_once = str(line.get("op")), _count(line.get("at_once")) or 0
    size, elapsed = _count(line.get("size_bytes")) or 0, line.get("elapsed_s")
    given = line.get("taken_us")
    taken = sorted(one for one in given if _is_time(one)) if isinstance(given, list) else []
    failed = (_count(line.get("failed")) or 0) + (_count(line.get("hung")) or 0)
    lost = _count(line.get("lost")) or 0
    timed: dict[str, Any] = dict.fromkeys(_TIMED, _NONE_ANSWERED)
    if line.get("cached") is True:
        timed = dict.fromkeys(_TIMED, _CACHED)
    elif taken:
        timed = {
            "per_s": _per_s(len(taken), elapsed), "p50_us": _at(taken, 0.5),
            "p99_us": _at(taken, 0.99), "max_us": float(taken[-1]),
            "bandwidth_mbps": _rate(size * len(taken), elapsed),
        }  # fmt: skip
    name = f"{op} {format_bytes(size)}, {at_once} at once"
    return ObjectWay(name, op, size, at_once, len(taken) + failed + lost, failed, **timed,
                     line=line["line"], probe=PROBE)  # fmt: skip


def _is_time(value: object) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 <= value <= 1e15  # type: ignore[operator]


def _at(ordered: Sequence[float], share: float) -> float:
    """The smallest that so many are not above (nearest rank)."""
    return float(ordered[max(0, math.ceil(share * len(ordered)) - 1)])


def _best(ways: Sequence[ObjectWay], op: str) -> Known[float]:
    large = [one.bandwidth_mbps for one in ways if one.op == op and one.size_bytes >= _LARGE_BYTES]
    if _CACHED in large:
        return _CACHED
    rates = [one for one in large if not isinstance(one, Missing)]
    return max(rates) if rates else Missing("exited", f"no large object was {op}")


def _rate(size: int, seconds: object) -> Known[float]:
    found = _per_s(size, seconds)
    return found if isinstance(found, Missing) else found / 1e6


def _per_s(count: int, seconds: object) -> Known[float]:
    if not isinstance(seconds, (int, float)) or not math.isfinite(seconds) or seconds <= 0:
        return NOT_IN_INPUT
    return count / seconds


def _count(value: object) -> int | None:
    """None for what counts nothing; -1 where the bench does not know it."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and -1 <= value <= _MOST
    return value if is_count else None  # type: ignore[return-value]


def _texts(value: object) -> list[str]:
    return [str(one)[:500] for one in value] if isinstance(value, list) else []
