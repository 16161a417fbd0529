"""The lines about a file of the user's data that was decoded (payload/storage/shard.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from preflight.facts.shard import Decoder, Shard, ShardAnswer
from preflight.model import Known, Missing
from preflight.probes.spec import probe
from preflight.probes.told import Line, lines_of
from preflight.units import format_bytes

PROBE = "shard"
FORM = "shard/1"

_UNTOLD = Missing("unreadable", "its line does not tell it")
_TOO_LITTLE = Missing("not-applicable", "too little was decoded to tell how fast")
_NO_RECORDS = Missing("not-applicable", "its lines are not of JSON")
_NOT_TRIED = Missing("exited", "the question was ended before it")
_PLAIN = Missing("not-applicable", "it is not compressed as a whole: nothing is to be decoded")
_NO_DEMAND = Missing("not-asked", "how much is needed: --demand-mbps, decoded MB/s of this host")
_NOTHING = Missing("not-applicable", "nothing is to be decoded, and no records of JSON to be read")
#: Compressed as a whole, and how to get what decodes it; the others Python has.
_INSTALL = {
    "zstd": "the module zstandard (pip install zstandard) or the program zstd (apt install zstd)",
    "lz4": "the module lz4 (pip install lz4) or the program lz4 (apt install lz4)",
}
_WHOLE = ("gzip", "zstd", "lz4", "xz", "bzip2")


@probe(PROBE, ["python3", "-I", "-", "shard"], timeout_s=120)
def shard(text: str) -> ShardAnswer:
    """Raises ParseError for what is none."""
    lines = lines_of(text, FORM)
    first = lines[0]
    told = str(first.get("text", ""))
    if first.get("kind") == "busy":
        return ShardAnswer(busy=told, probe=PROBE)
    if first.get("kind") == "cannot":
        return ShardAnswer(cannot=told, probe=PROBE)
    return ShardAnswer((_shard(first, lines),), probe=PROBE)


def _shard(first: Line, lines: Sequence[Line]) -> Shard:
    form = str(first.get("format", ""))
    plan = first.get("plan")
    demand = _number(plan.get("demand_mbps")) if isinstance(plan, dict) else None
    found = [_decoder(one, form, demand) for one in lines if one["kind"] == "decoder"]
    ended = any(one["kind"] == "end" for one in lines)
    decodes, trouble = _decodes(form, found, ended=ended)
    size, sample = _whole(first.get("size_bytes")), _whole(first.get("sample_bytes"))
    wrong, wrong_said = _wrong(found)
    return Shard(
        str(first.get("path", "")), form, size, sample,
        first["shared"] if isinstance(first.get("shared"), bool) else _UNTOLD,
        str(first.get("fs", "")), _whole(first.get("processors")),
        _NO_DEMAND if demand is None else demand, tuple(found), decodes,
        _decoded(decodes, size, sample), trouble, trouble, wrong, wrong_said,
        _workers(found, demand, decodes), _dearest(form, found), first["line"], PROBE,
    )  # fmt: skip


def _decoded(decodes: Known[bool], size: Known[int], sample: Known[int]) -> Known[str]:
    """How much of the file was looked at, in words."""
    if isinstance(decodes, Missing):
        return decodes
    if not decodes:
        return "damaged"
    if isinstance(size, Missing) or isinstance(sample, Missing):
        return "its beginning, of a size that is not told"
    if sample < size:
        return f"the first {format_bytes(sample)} of {format_bytes(size)}"
    return f"what was read of {format_bytes(size)}"


def _wrong(found: Sequence[Decoder]) -> tuple[Known[int], str]:
    """Lines that are no JSON, by the decoder that came to the most lines."""
    told = [(one.json_lines, one.json_wrong, one.json_wrong_line) for one in found]
    known = [each for each in told if not any(isinstance(part, Missing) for part in each)]
    if not known:
        some = any(one.json_mbps is not _NO_RECORDS for one in found)
        return (_UNTOLD if some else _NO_RECORDS), ""
    lines, wrong, first = max(known)
    return wrong, f"line {first} is no JSON; {wrong} of the {lines} lines that were looked at"


def _dearest(form: str, found: Sequence[Decoder]) -> str:
    """What takes most of the time of the fastest."""
    known = [one for one in found if not isinstance(one.workers, Missing)]
    if not known:
        return ""
    best = min(known, key=lambda one: one.workers)  # type: ignore[arg-type,return-value]
    decoded, records = best.decoded_mbps, best.json_mbps
    if isinstance(records, Missing):
        return f"decoding {form} takes all of it"
    if isinstance(decoded, Missing) or records < decoded:
        return "most of it is json.loads"
    return f"most of it is decoding {form}"


def _decodes(form: str, found: Sequence[Decoder], *, ended: bool) -> tuple[Known[bool], str]:
    """Whether any of them can: what one refuses another may take, such as a large window."""
    if form not in _WHOLE:
        return _PLAIN, ""
    if any(one.decodes is True for one in found):
        return True, ""
    if found:
        return False, "; ".join(f"{one.by}: {one.trouble}" for one in found)
    lacks = f"nothing here decodes {form}: {_INSTALL.get(form, 'a Python that is built with it')}"
    return (Missing("no-tool", lacks) if ended else _NOT_TRIED), ""


def _workers(found: Sequence[Decoder], demand: float | None, decodes: Known[bool]) -> Known[int]:
    if demand is None:
        return _NO_DEMAND
    known = [one.workers for one in found if not isinstance(one.workers, Missing)]
    if known:
        return min(known)
    if found:
        return found[0].workers
    return _NOTHING if decodes is _PLAIN else _TOO_LITTLE


def _decoder(line: Line, form: str, demand: float | None) -> Decoder:
    by, trouble = str(line.get("by", ""))[:100], str(line.get("trouble", ""))[:300]
    records = _rate(line.get("json_bytes"), line.get("json_s"))
    records = _NO_RECORDS if "json_bytes" not in line else records
    lines = (_whole(line.get("json_wrong")), _whole(line.get("json_wrong_line")),
             _whole(line.get("json_lines")))  # fmt: skip
    if form not in _WHOLE:
        cost = _cost(records)
        return Decoder(by, _PLAIN, trouble, _PLAIN, _PLAIN, _PLAIN, records, *lines,
                       _count(demand, cost))  # fmt: skip
    enough, cpu_s = line.get("enough") is True, line.get("cpu_s")
    decoded = _rate(line.get("done_bytes"), cpu_s) if enough else _TOO_LITTLE
    taken = _rate(line.get("taken_bytes"), cpu_s) if enough else _TOO_LITTLE
    times = (
        decoded if isinstance(decoded, Missing) else taken if isinstance(taken, Missing)
        else decoded / taken
    )  # fmt: skip
    cost = _cost(decoded, records)
    return Decoder(by, not trouble, trouble, decoded, taken, times, records, *lines,
                   _count(demand, cost))  # fmt: skip


def _cost(*rates: Known[float]) -> Known[float]:
    """Seconds of one core for 1e6 bytes: decoded, and read as records where they are some."""
    first = rates[0]
    if isinstance(first, Missing):
        return first
    return sum(1 / one for one in rates if not isinstance(one, Missing))


def _count(demand: float | None, cost: Known[float]) -> Known[int]:
    if demand is None:
        return _NO_DEMAND
    return cost if isinstance(cost, Missing) else math.ceil(demand * cost)


def _rate(done: Any, seconds: Any) -> Known[float]:
    amount, took = _number(done), _number(seconds)
    if amount is None or took is None:
        return _UNTOLD
    return amount / took / 1e6 if amount > 0 and took > 0 else _TOO_LITTLE


def _number(told: Any) -> float | None:
    fine = isinstance(told, (int, float)) and not isinstance(told, bool)
    return float(told) if fine and math.isfinite(told) and 0 <= told < 1e30 else None


def _whole(told: Any) -> Known[int]:
    found = _number(told)
    return _UNTOLD if found is None else int(found)
