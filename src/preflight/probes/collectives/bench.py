"""A bench of the bundled engine, from the JSON lines that it tells (payload/collectives)."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.collectives import Bench, Collective, Side, SizeRow
from preflight.facts.localisation import Culprit, Localisation, LocateTest
from preflight.model import Known, Missing
from preflight.nodesets import fold
from preflight.probes.collectives.derived import largest, numbered, shape_of, sides
from preflight.probes.spec import probe

PROBE, FORM = "nccl-bench", "nccl-bench/1"
#: Shares of (n-1)/n that are bus bandwidth over that of the algorithm (nccl-tests,
#: doc/PERFORMANCE.md); the others carry each byte once.
_SHARES = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}
_WHOLE = ("broadcast", "reduce", "sendrecv")
_PROCESSORS = Missing(
    "not-applicable", "processors are shared with the rest of the host: shown only"
)
_ONE_SIDE = Missing("not-applicable", "torch has one form of each collective")
_LOST = ("failed", "died", "silent", "gone", "absent")

Line = dict[str, Any]


class _Told:
    """All lines, each with its number as `line`."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        self.of: dict[str, list[Line]] = defaultdict(list)
        for one in lines:
            self.of[one["kind"]].append(one)
        self.begin = next(iter(self.of["begin"]), {})
        self.plan: Line = dict(self.begin.get("plan", {}))

    def text(self, kind: str) -> str:
        return next((str(one["text"]) for one in self.of[kind]), "")


@probe(PROBE, ["python3", "-I", "-", "bench"], timeout_s=7200)
def bench(text: str) -> Bench:
    """One run. Raises ParseError where a line is no JSON of ours, or none is there."""
    try:
        return _facts(_read(text))
    except (
        KeyError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError,
    ) as error:  # fmt: skip
        raise ParseError(f"expected values as a bench tells them: {error}", 1) from error


def _read(text: str) -> _Told:
    whole = text.rpartition("\n")[0].split("\n")
    lines = []
    for number, line in enumerate(whole, 1):
        if line.strip():
            told = json.loads(line)
            if not isinstance(told, dict) or not isinstance(told.get("kind"), str):
                raise ParseError("expected a JSON object with a kind", number)
            lines.append({**told, "line": number})
    if not lines:
        raise ParseError("expected JSON lines of a bench", 1)
    return _Told(lines)


def _facts(told: _Told) -> Bench:
    return Bench(
        runs=_runs(told), located=_located(told), cannot=told.text("cannot"),
        busy=told.text("busy"), lacks_torch=any("why" in one for one in told.of["cannot"]),
        unmet=told.text("unmet"), interrupted=bool(told.of["interrupted"]),
        leads=not told.plan.get("hosts") or told.plan["hosts"][0] == told.begin.get("host"),
        probe=PROBE,
    )  # fmt: skip


def _runs(told: _Told) -> tuple[Collective, ...]:
    """A run for each collective, in the order in which they were timed."""
    by: dict[str, list[Line]] = defaultdict(list)
    for one in told.of["size"]:
        by[str(one["collective"])].append(one)
    trouble = _trouble(told)
    if not by and trouble and told.begin:
        by["all_reduce"] = []
    found = [_run(told, name, lines) for name, lines in by.items()]
    if found and trouble:  # what came before it was measured
        found[-1] = _stopped(found[-1], trouble)
    return numbered(found)


def _run(told: _Told, name: str, lines: Sequence[Line]) -> Collective:
    plan, world = told.plan, int(told.begin["world"])
    rows = tuple(_row(one, name, world) for one in lines if "median_us" in one)
    hosts = tuple(map(str, plan.get("hosts") or ()))
    gpu = plan.get("device") == "cuda"
    busbw, at = largest(rows, f"preflight nccl-bench -e 1G --collective {name}")
    names = {str(one["device"]) for one in told.of["started"]}
    shown = [side.busbw_gbps for one in rows for side in sides(one)]
    first = lines[0]["line"] if lines else told.begin["line"]
    return Collective(
        name, f"torch {told.begin['torch']}, {told.begin['backend']}", collective=name, ranks=world,
        hosts=hosts or Missing("not-applicable", "one host"), host_count=max(1, len(hosts)),
        ranks_per_host=int(plan["ranks"]), rows=rows,
        product=names.pop() if gpu and len(names) == 1 else _PROCESSORS if not gpu
        else Missing("unreadable", "GPUs of several models"),
        ended=True, together=True, wrong=sum(int(one["wrong"]) for one in lines if "wrong" in one),
        average_gbps=sum(shown) / len(shown) if shown else Missing("unreadable", "no size"),
        busbw_gbps=busbw if gpu else _PROCESSORS, at_bytes=at if gpu else _PROCESSORS,
        shape=shape_of(rows, name, first, PROBE) if gpu else _PROCESSORS, line=first, probe=PROBE,
    )  # fmt: skip


def _row(one: Line, name: str, world: int) -> SizeRow:
    size, time_us = int(one["bytes"]), float(one["median_us"])
    algbw = size / time_us / 1e3
    side = Side(time_us, algbw, algbw * _factor(name, world), float(one["wrong"]))
    in_place = name in ("all_reduce", "broadcast", "reduce")
    return SizeRow(size, _ONE_SIDE if in_place else side, side if in_place else _ONE_SIDE,
                   one["line"])  # fmt: skip


def _factor(name: str, ranks: int) -> float:
    return 1.0 if name in _WHOLE else _SHARES[name] * (ranks - 1) / ranks


def _trouble(told: _Told) -> str:
    """Whatever ended the tables before their end."""
    return next((_said(one) for one in told.lines if one["kind"] in _LOST), "")


def _said(one: Line) -> str:
    who = f"{one['of']}, " if "of" in one else ""
    rank = f"{who}rank {one['rank']}" if "rank" in one else who.rstrip(", ")
    if one["kind"] == "died":
        return f"{rank} ended with {one['status']}"
    if one["kind"] == "silent":
        ranks = ", ".join(map(str, one["suspects"]))
        return f"{who}rank {ranks} said nothing for {one['after_s']:g} s"
    if one["kind"] == "absent":
        return f"{who.rstrip(', ')} did not come"
    return f"{rank}: {str(one['text'])[:300]}"


def _stopped(run: Collective, trouble: str) -> Collective:
    return replace(run, ended=False, trouble=trouble)


def _located(told: _Told) -> Known[Localisation]:
    """What the search found."""
    tests = tuple(map(_test, told.of["test"]))
    found = next(iter(told.of["found"]), None)
    hosts = tuple(map(str, told.plan.get("hosts") or ()))
    if not hosts:
        return Missing("not-applicable", "one host: there are no others to tell it from")
    if found is None:
        if not told.plan.get("locate", True):
            return Missing("not-asked", "--no-locate: no slow host was looked for")
        if len(hosts) < 3:
            return Missing("not-applicable", "of two hosts neither can be told from the other; "
                           "it takes three")  # fmt: skip
        why = told.text("gone") or ("interrupted" if told.of["interrupted"] else "it was cut short")
        return Missing("exited", f"the search did not come to its end: {why}")
    culprits = tuple(_culprits(found, {one.number: one for one in tests}))
    return Localisation(
        hosts, tests, culprits, int(found["rounds"]), str(found["undetermined"]),
        str(found["covered"]), {str(key): float(one) for key, one in found["level_gbps"].items()},
        tuple((str(a), str(b), float(gbps)) for a, b, gbps in found.get("matrix", ())),
        size_bytes=int(next((one["bytes"] for one in told.of["test"]), 0)),
        line=found["line"], probe=PROBE,
    )  # fmt: skip


def _test(one: Line) -> LocateTest:
    gbps = [float(each) for each in one["busbw_gbps"]]
    if any(not math.isfinite(each) for each in gbps):
        raise ValueError(f"test {one['test']}: no numbers")
    trouble = "; ".join(_said(each) for each in one.get("trouble", ()))[:400]
    none = Missing("exited", trouble or "it did not come to its end")
    return LocateTest(int(one["test"]), tuple(map(str, one["among"])), str(one["why"]),
                      median(gbps) if gbps else none, len(gbps), trouble, one["line"])  # fmt: skip


def _culprits(found: Line, tests: dict[int, LocateTest]) -> Iterator[Culprit]:
    runs = {tuple(map(str, one["culprit"])): one["tests"] for one in found["runs"]}
    named: list[tuple[tuple[str, ...], str, str]]
    named = [((str(one),), "host", str(one)) for one in found["nodes"]]
    named += [(tuple(map(str, one)), "link", " to ".join(map(str, one))) for one in found["links"]]
    if found["boundary"]:
        sides = [list(map(str, side)) for side in found["boundary"]]
        named.append((tuple(sides[0]), "boundary", " | ".join(fold(one) for one in sides)))
    for key, kind, name in named:
        mine = [tests[one] for one in runs.get(key, ()) if one in tests]
        yield Culprit(
            name, kind, _behind(mine, found["level_gbps"]), tuple(one.number for one in mine),
            "; ".join(map(_shown, mine)), found["line"], PROBE,
        )  # fmt: skip


def _behind(tests: Sequence[LocateTest], level: dict[str, float]) -> Known[float]:
    """Of the tests that prove it, the median."""
    if tests and all(isinstance(one.busbw_gbps, Missing) for one in tests):
        return 100.0
    shares = [
        1 - one.busbw_gbps / level[kind]
        for one in tests
        if (kind := "pairs" if len(one.hosts) == 2 else "groups") in level
        and not isinstance(one.busbw_gbps, Missing) and level[kind] > 0
    ]  # fmt: skip
    return 100 * median(shares) if shares else Missing("unreadable", "no healthy level is known")


def _shown(one: LocateTest) -> str:
    told = one.trouble or "it did not end"
    told = told if isinstance(one.busbw_gbps, Missing) else f"{one.busbw_gbps:.3g} GB/s"
    return f"test {one.number} ({', '.join(one.hosts)}): {told}"
