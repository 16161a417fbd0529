"""What all_reduce_bench.py of stas00/ml-engineering printed: a table of sizes, or one payload."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from preflight.errors import ParseError
from preflight.facts.collectives import Collective, Collectives, Side, SizeRow
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.collectives.derived import largest, numbered, ranks_of, rough, shape_of, small
from preflight.probes.collectives.labels import Labelled, labelled
from preflight.probes.spec import probe

TOOL = "all-reduce-bench"
_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
_OVER = re.compile(r"The average bandwidth of all_reduce over (\d{1,7}) ranks?\b")
_ONE = re.compile(
    rf"The average bandwidth of all_reduce with an? {_NUMBER} ?GB payload .{{0,60}}?"
    r"(\d{1,7}) ranks"
)
_ROW = re.compile(
    rf"\|\s*(\d{{1,6}})(B|[KMGT]i?B)\s*\|\s*{_NUMBER} ?GBps\s*\|\s*{_NUMBER} ?GBps\s*\|"
)
_BOTH = re.compile(rf"\s*(algbw|busbw):\s*{_NUMBER} ?GBps\b")
#: Of its first form each rank told each trial, in any order: bits a second of twice the payload
#: (`size * 2 / duration * 8`), and (n-1)/n of that.
_TRIAL = re.compile(
    rf"\s*algo throughput: (\d{{1,15}})\.\d{{1,9}} bps,|\s*(busbw): {_NUMBER} {{1,4}}Gbps\b"
    rf"|\s*(duration): {_NUMBER} sec\b"
)
_DEVICE = re.compile(r"hardware:.{0,60}?name='([^']{1,80})'")
_POWERS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_NO_HOSTS = Missing("not-in-input", "all_reduce_bench does not tell on which hosts its ranks were")
_NO_GPUS = Missing("not-in-input", "which GPUs it had is not in the input (- hardware: ...)")
_NOT_CHECKED = Missing("not-applicable", "all_reduce_bench does not check the results")
_OUT_ONLY = Missing("not-applicable", "all_reduce_bench measures one side")
_AGAIN = "let it end: it goes up to 16 GiB by itself"


@probe(TOOL, ["all_reduce_bench"], timeout_s=60)
def all_reduce_bench(text: str) -> Collectives:
    """A run for each table, and for each single payload of older versions."""
    runs = numbered([_run(lines) for lines in _parts(text)])
    runs = tuple(one for one in runs if one.rows) or _of_trials(text)
    if not runs:
        raise ParseError("expected a table: | payload | busbw | algbw |", 1)
    return Collectives(runs, probe=TOOL)


def _parts(text: str) -> Iterator[list[Labelled]]:
    """The lines of each run: what it says of its devices stands before its table."""
    part: list[Labelled] = []
    complete = False
    for line in labelled(text):
        begins = _OVER.search(line.text) or _ONE.search(line.text) or "Environment:" in line.text
        if begins and complete:
            yield part
            part, complete = [], False
        part.append(line)
        complete |= bool(_ROW.search(line.text) or _BOTH.match(line.text))
    if part:
        yield part


def _of_trials(text: str) -> tuple[Collective, ...]:
    """The run of the first form: medians over all trials of all ranks."""
    told: dict[str, list[float]] = {"tput": [], "busbw": [], "duration": []}
    first, pairs = 0, list[float]()
    for one in labelled(text):
        if match := _TRIAL.match(one.text):
            first = first or one.number
            bps, busbw, gbits, duration, seconds = match.groups()
            name = "tput" if bps else busbw or duration
            told[name].append(float(bps or gbits or seconds))
            if busbw and told["tput"]:
                pairs.append(float(gbits) * 1e9 / told["tput"][-1])
    if not all(told.values()):
        return ()
    tput, seconds_s = median(told["tput"]), median(told["duration"])
    share = median(pairs)  # (n-1)/n; ranks write between each other's lines
    ranks: Known[int] = round(1 / (1 - share)) if 0 < share < 1 else NOT_IN_INPUT
    size = int(float(f"{tput * seconds_s / 16:.3g}"))
    side = Side(round(1e6 * seconds_s, 1), size / seconds_s / 1e9, median(told["busbw"]) / 8,
                _NOT_CHECKED)  # fmt: skip
    return numbered([_of((SizeRow(size, side, _OUT_ONLY, first),), ranks, _NO_GPUS, first)])


def _run(lines: list[Labelled]) -> Collective:
    rows: list[SizeRow] = []
    ranks: Known[int] = NOT_IN_INPUT
    product: Known[str] = _NO_GPUS
    payload, both, line = 0, dict[str, float](), lines[0].number
    for one in lines:
        if match := _OVER.search(one.text):
            ranks, line = int(match[1]), one.number
        elif match := _ONE.search(one.text):
            payload, ranks, line = int(float(match[1]) * 1e9), int(match[2]), one.number
        elif match := _DEVICE.search(one.text):
            product = match[1]
        elif match := _ROW.search(one.text):
            size = int(match[1]) << 10 * _POWERS[match[2][0]]
            rows.append(_row(size, float(match[4]), float(match[3]), one.number))
        elif match := _BOTH.match(one.text):
            both[match[1]] = float(match[2])
    if payload and len(both) == 2:
        rows.append(_row(payload, both["algbw"], both["busbw"], line))
    return _of(tuple(rows), ranks, product, line)


def _row(size: int, algbw: float, busbw: float, line: int) -> SizeRow:
    time_us = size / algbw / 1e3 if algbw else 0.0
    return SizeRow(size, Side(round(time_us, 1), algbw, busbw, _NOT_CHECKED), _OUT_ONLY, line)


def _of(rows: tuple[SizeRow, ...], ranks: Known[int], product: Known[str], line: int) -> Collective:
    ranks = ranks_of(rows, "all_reduce") if isinstance(ranks, Missing) else ranks
    busbw, at_bytes = largest(rows, _AGAIN)
    rough_gbps, rough_bytes = rough(rows)
    return Collective(
        "all_reduce", TOOL, "all_reduce", ranks,
        _NO_HOSTS, _NO_HOSTS, _NO_HOSTS, _NO_HOSTS, product,
        rows=rows, ended=True, together=ranks if isinstance(ranks, Missing) else ranks > 1,
        wrong=_NOT_CHECKED, reaches_own_limit=Missing("not-applicable", "it knows no limit"),
        busbw_gbps=busbw, at_bytes=at_bytes, rough_gbps=rough_gbps, rough_bytes=rough_bytes,
        small_us=small(rows, "all_reduce_perf -b 8 -e 8G -f 2"),
        shape=shape_of(rows, "all_reduce", line, TOOL),
        line=line, probe=TOOL,
    )  # fmt: skip
