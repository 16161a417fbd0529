"""Which host or link is slow, as the search over several hosts told it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from preflight.facts.collectives import Culprit, Localisation, LocateTest
from preflight.model import Known, Missing
from preflight.nodesets import fold
from preflight.probes.collectives.lines import PROBE, Line, Told, said

#: Of recordings that do not tell it.
_USUAL_PERCENT = 8.0
#: Tests of more hosts are groups, and have a level of their own.
_PAIR = 3
_BUSIEST = 4


def located(told: Told) -> Known[Localisation]:
    """What the search found of this host, or of all where the others were not told."""
    own = next(iter(told.of["located"]), {})
    found = own.get("found") or next(iter(told.of["found"]), None)
    told_tests = told.of["test"] or own.get("proof", [])
    line = (own or found or {}).get("line", 0)
    tests = tuple(_test(one, line) for one in told_tests)
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
    culprits = tuple(_culprits(found, {one.number: one for one in tests}, line))
    return Localisation(
        hosts, tests, int(own.get("tests", len(tests))), culprits, int(found["rounds"]),
        _undetermined(found),
        str(found["covered"]), {str(key): float(one) for key, one in found["level_gbps"].items()},
        _matrix(next(iter(told.of["found"]), {})),
        looked_for_percent=float(told.plan.get("behind_percent", _USUAL_PERCENT)),
        size_bytes=int(next((one["bytes"] for one in told_tests), 0)),
        line=line, probe=PROBE,
    )  # fmt: skip


def _undetermined(found: Line) -> str:
    """What could not be told, and what may be why: the load of the busiest hosts. A search that
    took more repeats by itself needs no advice to do so."""
    text, loads = str(found["undetermined"]), found.get("loads") or {}
    if not text or not loads:
        return text
    text = f"{text.partition('; --repeats ')[0]}; {int(found['repeats'])} repeats were tried"
    alike: dict[str, list[str]] = defaultdict(list)
    busiest = sorted(loads.items(), key=lambda one: -float(one[1][0]) / float(one[1][1]))
    for host, (load, cpus) in busiest[:_BUSIEST]:
        alike[f"load {float(load):g} on {int(cpus)} processors"].append(host)
    return f"{text}; " + ", ".join(f"{told} of {fold(at)}" for told, at in alike.items())


def _matrix(found: Line) -> tuple[tuple[str, str, float], ...]:
    """Of what the host that led told itself, so that it is told once."""
    pairs = [(str(a), str(b), float(gbps)) for a, b, gbps in found.get("matrix", ())]
    if any(not math.isfinite(gbps) or gbps < 0 for _, _, gbps in pairs):
        raise ValueError("a pair's GB/s is no number")
    return tuple(pairs)


def _test(one: Line, line: int) -> LocateTest:
    gbps = [float(each) for each in one["busbw_gbps"]]
    if any(not math.isfinite(each) for each in gbps):
        raise ValueError(f"test {one['test']}: no numbers")
    trouble = "; ".join(said(each) for each in one.get("trouble", ()))[:400]
    none = Missing("exited", trouble or "it did not come to its end")
    return LocateTest(
        int(one["test"]), tuple(map(str, one["among"])), str(one["why"]),
        median(gbps) if gbps else none, len(gbps), trouble, one.get("line", line),
    )  # fmt: skip


def _culprits(found: Line, tests: dict[int, LocateTest], line: int) -> Iterator[Culprit]:
    runs = {tuple(map(str, one["culprit"])): one["tests"] for one in found["runs"]}
    named: list[tuple[tuple[str, ...], str, str]]
    named = [((str(one),), "host", str(one)) for one in found["nodes"]]
    named += [(tuple(map(str, one)), "link", " to ".join(map(str, one))) for one in found["links"]]
    if found["boundary"]:
        sides = [list(map(str, side)) for side in found["boundary"]]
        named.append((("boundary",), "boundary", " | ".join(fold(one) for one in sides)))
    for key, kind, name in named:
        mine = [tests[one] for one in runs.get(key, ()) if one in tests]
        yield Culprit(
            name, kind, _behind(mine, found["level_gbps"]), tuple(one.number for one in mine),
            "; ".join(map(_shown, mine)), line, PROBE,
        )  # fmt: skip


def _behind(tests: Sequence[LocateTest], level: dict[str, float]) -> Known[float]:
    """Of the tests that prove it, the median."""
    if tests and all(isinstance(one.busbw_gbps, Missing) for one in tests):
        return 100.0
    shares = [
        1 - one.busbw_gbps / level[kind]
        for one in tests
        if (kind := _kind(one, level)) in level
        and not isinstance(one.busbw_gbps, Missing) and level[kind] > 0
    ]  # fmt: skip
    return 100 * median(shares) if shares else Missing("unreadable", "no healthy level is known")


def _kind(one: LocateTest, level: dict[str, float]) -> str:
    return "groups" if len(one.hosts) > _PAIR and "groups" in level else "pairs"


def _shown(one: LocateTest) -> str:
    told = one.trouble or "it did not end"
    told = told if isinstance(one.busbw_gbps, Missing) else f"{one.busbw_gbps:.3g} GB/s"
    return f"test {one.number} ({', '.join(one.hosts)}): {told}"
