"""A bench of the bundled engine, from the JSON lines that it tells (payload/collectives)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.collectives import Bench, BenchStack, Collective, Side, SizeRow
from preflight.model import Known, Missing
from preflight.probes.collectives.derived import largest, numbered, rough, shape_of, sides, small
from preflight.probes.collectives.growth import growth
from preflight.probes.collectives.inside import inside
from preflight.probes.collectives.lasting import lasting
from preflight.probes.collectives.lines import PROBE, Line, Told, is_lost, read, said
from preflight.probes.collectives.located import located
from preflight.probes.collectives.settings import settings
from preflight.probes.collectives.wire import rdma_of, wire
from preflight.probes.spec import probe

#: Shares of (n-1)/n that are bus bandwidth over that of the algorithm (nccl-tests,
#: doc/PERFORMANCE.md); the others carry each byte once.
_SHARES = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}
_WHOLE = ("broadcast", "reduce", "sendrecv")
_PROCESSORS = Missing("not-applicable", "what processors reach nobody tells")
_ONE_SIDE = Missing("not-applicable", "torch has one form of each collective")
_ONE_HOST = Missing("not-applicable", "one host")
_NO_SIZE = Missing("unreadable", "no size was measured")
#: Of a host that measured nothing.
_NONE, _TOOL = "bench", "torch"
_STOPPED = Missing("not-applicable", "no size was measured: see collectives.ended")
_NO_LIMIT = Missing("not-applicable", "the bundled bench has no limit of its own")
_STOPS = ("failed", "died", "silent", "gone")
#: Lines of the parts that follow the tables (payload/collectives/parts.py).
_AFTER = (
    "round", "test", "found", "tried", "inside", "wire_site", "wire_round", "setting", "lasting",
)  # fmt: skip
#: Why a host cannot take part, where that is its own fault (payload/site.py, cli/apart.py).
_OWN_FAULTS = ("interface", "unreached")


@probe(PROBE, ["python3", "-I", "-", "bench"], timeout_s=7200)
def bench(text: str) -> Bench:
    """One run. Raises ParseError where a line is no JSON of ours, or none is there."""
    try:
        return _facts(read(text))
    except (
        KeyError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError,
    ) as error:  # fmt: skip
        raise ParseError(f"expected values as a bench tells them: {error}", 1) from error


def _facts(told: Told) -> Bench:
    return Bench(
        runs=_runs(told), located=located(told), stack=_stack(told), wire=wire(told),
        rdma=rdma_of(told), inside=inside(told, _product(told)), cannot=told.text("cannot"),
        busy=told.text("busy"), lacks_torch=_why(told) == "no-torch",
        few_gpus=_why(told) == "few-gpus",
        settings=settings(told), lasting=lasting(told), growth=growth(told),
        fault=_fault(told), unmet=_unmet(told), interrupted=bool(told.of["interrupted"]),
        leads=_leads(told), speaks_for_all=_leads(told) and len(told.plan.get("hosts") or ()) > 1,
        ended_job=_ended_job(told),
        probe=PROBE,
    )  # fmt: skip


def _leads(told: Told) -> bool:
    """Whether this host tells what all of them measured; one alone does."""
    hosts = told.plan.get("hosts")
    return not hosts or hosts[0] == told.begin.get("host")


def _ended_job(told: Told) -> bool:
    """Whether what stopped it was this host's own: its fault, or a rank of it that is gone. One
    that failed or waits may do so for another."""
    host = str(told.begin.get("host", ""))
    stops = (one for one in _of_tables(told) if one["kind"] in _STOPS)
    first = next(stops, None)
    if _fault(told) or first is None or first.get("of", host) != host:
        return bool(_fault(told))
    return first["kind"] == "died" or bool(first.get("stopped"))


def _stack(told: Told) -> Known[BenchStack]:
    if not told.begin:
        return Missing("not-applicable", "no rank of this host was started")
    nccl = told.begin.get("nccl")
    return BenchStack(
        str(told.begin["torch"]), str(nccl) if nccl else _PROCESSORS,
        str(told.begin.get("backend", "")), str(told.plan.get("interface", "")),
        told.begin["line"], PROBE,
    )  # fmt: skip


def _unmet(told: Told) -> str:
    """Why the hosts did not come together, and whom this one did not reach."""
    text = told.text("unmet")
    closed = [way for one in told.of["ways"] for way in one["ways"] if way["why"]]
    told_of = "; ".join(f"{way['host']}: {way['why']}" for way in closed[:4])
    return f"{text}; this host does not reach {told_of}" if text and told_of else text


def _why(told: Told) -> str:
    return next((str(one.get("why", "")) for one in told.of["cannot"]), "")


def _runs(told: Told) -> tuple[Collective, ...]:
    """A run for each collective, in the order in which they were timed."""
    by: dict[str, list[Line]] = defaultdict(list)
    for one in told.of["size"]:
        by[str(one["collective"])].append(one)
    ended, trouble = _ending(told)
    if not by and not told.begin and _fault(told):
        return (Collective(_NONE, _TOOL, ended=False, trouble=trouble, probe=PROBE),)
    if not by and not trouble and (trouble := _unlike(told)):
        ended = False
    if not by and trouble and told.begin:
        by["all_reduce"] = []
    found = [_run(told, name, lines) for name, lines in by.items()]
    if found and trouble:  # what came before it was measured
        found[-1] = replace(found[-1], ended=ended, trouble=trouble)
        if ended is not True and not found[-1].rows:  # one cause, told once
            found[-1] = replace(found[-1], wrong=_STOPPED)
    return numbered(found)


def _run(told: Told, name: str, lines: Sequence[Line]) -> Collective:
    plan, world = told.plan, _world(told)
    rows = tuple(_row(one, name, world) for one in lines if "median_us" in one)
    hosts = tuple(map(str, plan.get("hosts") or ()))
    gpu = plan.get("device") == "cuda"
    busbw, at = largest(rows, f"preflight nccl-bench -e 1G --collective {name}")
    rough_gbps, rough_bytes = rough(rows)
    shown = [side.busbw_gbps for one in rows for side in sides(one)]
    first = lines[0]["line"] if lines else told.begin["line"]
    return Collective(
        name, f"torch {told.begin['torch']}, {told.begin['backend']}", collective=name, ranks=world,
        hosts=hosts or _ONE_HOST, host_count=max(1, len(hosts)),
        ranks_per_host=int(plan["ranks"]), even=_even(told), rows=rows,
        reaches_own_limit=_NO_LIMIT,
        left_out=tuple((int(one["asked_bytes"]), str(one["skipped"])) for one in lines
                       if "skipped" in one),
        product=_product(told),
        ended=_ended(told), together=True,
        wrong=sum(int(one["wrong"]) for one in lines if "wrong" in one) if rows else _NO_SIZE,
        average_gbps=sum(shown) / len(shown) if shown else _NO_SIZE,
        busbw_gbps=busbw if gpu else _PROCESSORS, at_bytes=at if gpu else _PROCESSORS,
        rough_gbps=rough_gbps if gpu else _PROCESSORS,
        rough_bytes=rough_bytes if gpu else _PROCESSORS,
        small_us=small(rows, f"preflight nccl-bench -b 8 --collective {name}") if gpu
        else _PROCESSORS,
        shape=shape_of(rows, name, first, PROBE) if gpu else _PROCESSORS,
        variables=_variables(told), line=first, probe=PROBE,
    )  # fmt: skip


def _product(told: Told) -> Known[str]:
    """Of the GPUs of all ranks."""
    if told.plan.get("device") != "cuda":
        return _PROCESSORS
    names = {str(one["device"]) for one in told.of["started"]}
    return names.pop() if len(names) == 1 else Missing("unreadable", "GPUs of several models")


def _variables(told: Told) -> tuple[str, ...]:
    """Of NCCL: what the host that leads found set, and what the plan sets above it."""
    asked = {"NCCL_IB_HCA": told.plan["nics"]} if told.plan.get("nics") else {}
    named = {**told.begin.get("environment", {}), **asked}
    return tuple(f"{name}={value}" for name, value in sorted(named.items()))


def _world(told: Told) -> int:
    """Ranks of all hosts that came and took part: of those that measured, where any did."""
    told_of = next((one["ranks"] for one in told.of["size"] if "ranks" in one), None)
    if told_of is not None:
        return int(told_of)
    away = len(told.of["absent"]) + len(told.of["unlike"])
    return max(1, int(told.begin["world"]) - int(told.plan["ranks"]) * away)


def _ending(told: Told) -> tuple[Known[bool], str]:
    """Whether the tables came to their end, and what stopped them. Where that is another host it is
    told of that one, and here it is not known what was to be measured; those that are left may
    have measured all of it without."""
    fault = _fault(told)
    if fault:
        return False, fault
    tables, sizes = _of_tables(told), told.of["size"]
    stops = [*told.of["absent"], *(one for one in tables if one["kind"] in _STOPS)]
    if sizes and stops and (stops[-1]["line"] < sizes[-1]["line"] or _went_on(told, stops)):
        return _ended(told), said(stops[0])
    lost = next((one for one in stops if _elsewhere(told, one)), None)
    if lost is not None:
        text = f"not measured from then on: {said(lost)}"
        return Missing("exited", text), text
    return (False, said(stops[0])) if stops else (_ended(told), "")


def _went_on(told: Told, stops: Sequence[Line]) -> bool:
    """Whether only hosts are lacking that did not come: nobody waits for them."""
    return bool(told.plan.get("hosts")) and all(one["kind"] == "absent" for one in stops)


def _elsewhere(told: Told, one: Line) -> bool:
    """Whether another host is lost: by name, or the one that leads this one."""
    if not told.plan.get("hosts"):
        return False
    lead_is_lost = one["kind"] == "gone" and "of" not in one and not _leads(told)
    return lead_is_lost or is_lost(one, str(told.begin.get("host", "")))


def _of_tables(told: Told) -> list[Line]:
    """The lines up to what follows the tables."""
    return list(takewhile(lambda one: one["kind"] not in _AFTER, told.lines))


def _ended(told: Told) -> Known[bool]:
    """What is cut short, or was interrupted, may lack anything."""
    if told.of["interrupted"]:
        return Missing("exited", "the bench was interrupted")
    cut = "no end was told: the bench was killed, or its recording is cut short"
    return True if told.of["end"] else Missing("unreadable", cut)


def _even(told: Told) -> Known[bool]:
    """Whether all hosts have as many GPUs: of the others only so many were used."""
    if not told.plan.get("hosts"):
        return _ONE_HOST
    gpus = next(iter(told.of["job"]), {}).get("gpus", {})
    return len(set(gpus.values())) < 2


def _row(one: Line, name: str, world: int) -> SizeRow:
    size, time_us = int(one["bytes"]), float(one["median_us"])
    algbw = size / time_us / 1e3
    side = Side(time_us, algbw, algbw * _factor(name, world), float(one["wrong"]))
    in_place = name in ("all_reduce", "broadcast", "reduce")
    return SizeRow(size, _ONE_SIDE if in_place else side, side if in_place else _ONE_SIDE,
                   one["line"])  # fmt: skip


def _factor(name: str, ranks: int) -> float:
    return 1.0 if name in _WHOLE else _SHARES[name] * (ranks - 1) / ranks


def _fault(told: Told) -> str:
    """What is wrong with this host itself; "" where nothing is known of that."""
    own = told.text("cannot") if _why(told) in _OWN_FAULTS else ""
    lost = [str(one["text"]) for one in told.of["lost"]]  # the last is what the others saw
    return lost[-1] if lost else own


def _unlike(told: Told) -> str:
    """Who was left out: where others are enough it stops nothing."""
    return "; ".join(map(said, told.of["unlike"]))
