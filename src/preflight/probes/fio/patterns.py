"""The rows of training-shaped patterns among the lines of a bench of storage
(payload/storage/patterns.py)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from preflight.facts.fio import FioLatency
from preflight.facts.patterns import Pattern
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.fio.loaders import beside_read, of_loader
from preflight.probes.fio.saves import of_save

Line = dict[str, Any]
_NONE_DONE = Missing("exited", "nothing of it was done")
_NO_BYTES = Missing("not-applicable", "its calls move no bytes that count")
_UNTOLD = Missing("unreadable", "its line does not tell it")
_ALONE = Missing("not-applicable", "one process did it")
_NOT_COMPARED = Missing("not-applicable", "nothing is compared there")


def patterns_of(lines: Iterable[Line], probe: str) -> tuple[Pattern, ...]:
    """One for each line of kind `pattern`."""
    begin, found = Line(), list[Pattern]()
    for one in lines:
        if one.get("kind") == "begin":
            begin = one
        elif one.get("kind") == "pattern":
            row = replace(_pattern(one, probe), **of_loader(one, begin), **of_save(one, begin))
            found.append(_below(row, of_device(begin)))
    return beside_read(tuple(found))


def of_device(begin: Line) -> str:
    """What figures past the page cache are of, where the bench was: most often the device."""
    told = begin.get("of")
    if isinstance(told, str) and told:
        return told
    return "memory" if begin.get("memory") is True else "device"


def _below(row: Pattern, of: str) -> Pattern:
    """The row with what holds its data in place of the device."""
    told = {name: of for name in ("through", "read_back") if getattr(row, name) == "device"}
    return replace(row, **told) if told else row


def _pattern(line: Line, probe: str) -> Pattern:
    name, part = str(line.get("name", "")), str(line.get("part", ""))
    trouble = str(line.get("trouble", ""))
    count, done = _whole(line.get("count")), _whole(line.get("done_bytes"))
    elapsed = _number(line.get("elapsed_s"))
    each = line.get("each_mbps")
    slowest = [one for one in each if _is_number(one)] if isinstance(each, list) else []
    return Pattern(
        f"{name} {part}".rstrip(), name, part, str(line.get("way", "")), not trouble, trouble,
        _whole(line.get("processes")), _whole(line.get("block_bytes")), done, elapsed, count,
        _per_second(done, elapsed, 1e6) if "done_bytes" in line else _NO_BYTES,
        _per_second(count, elapsed, 1), _latency(line.get("us")), _word(line.get("through")),
        min(slowest) if len(slowest) > 1 else _ALONE,
        _whole(line["wrong"]) if "wrong" in line else _NOT_COMPARED,
        line=int(line.get("line", 0)), probe=probe,
    )  # fmt: skip


def _per_second(amount: Known[int], elapsed: Known[float], unit: float) -> Known[float]:
    if isinstance(amount, Missing) or isinstance(elapsed, Missing):
        return amount if isinstance(amount, Missing) else _UNTOLD
    return amount / elapsed / unit if amount and elapsed > 0 else _NONE_DONE


def _latency(told: Any) -> FioLatency:
    if not isinstance(told, dict):
        return FioLatency()
    names = ("mean", "p50", "p99", "p999", "max")
    return FioLatency(*(_number(told[one]) if one in told else NOT_IN_INPUT for one in names))


def _is_number(told: Any) -> bool:
    return isinstance(told, (int, float)) and not isinstance(told, bool) and math.isfinite(told)


def _number(told: Any) -> Known[float]:
    return float(told) if _is_number(told) and told >= 0 else _UNTOLD


def _whole(told: Any) -> Known[int]:
    return int(told) if _is_number(told) and told >= 0 else _UNTOLD


def _word(told: Any) -> Known[str]:
    return told if isinstance(told, str) and told else _UNTOLD
