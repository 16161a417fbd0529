"""One process of the run after the other."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any

from preflight.facts.training import DeviceLoad, RankMemory, TrainFailure, TrainRank
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.training.failures import ended
from preflight.probes.training.lines import (
    PROBE,
    WHOLE,
    Line,
    Told,
    count_of,
    finite,
    middle,
    text_of,
)
from preflight.probes.training.timing import (
    behind,
    busy,
    length,
    shares,
    spent,
    total,
    warm,
)

_NO_REPLICA = Missing("not-applicable", "no two ranks hold the same parameters")
_OTHER_MODEL = Missing("not-applicable", "its device is of another model than most of the host's")
_NO_GPU = Missing("not-applicable", "it runs on processors")
_LOADS = ("power_w", "sm_clock_mhz", "sm_percent", "memory_percent")


def ranks(told: Told, failures: tuple[TrainFailure, ...]) -> tuple[TrainRank, ...]:
    """All ranks of this host."""
    numbers = told.ranks()
    devices = [_device(told, local) for local in range(len(numbers))]
    usual = Counter(map(str, devices)).most_common(1)
    of = {number: busy(told.steps[WHOLE].get(number, [])) for number in numbers}
    lost = any(one.launch == WHOLE for one in failures)
    of_all: dict[int, Known[float]] = {**told.busy_elsewhere(), **of}
    return tuple(
        TrainRank(
            name=f"rank {number}",
            device=devices[local],
            behind_percent=behind(of_all, number, hosts=told.hosts(), lost=lost),
            busy_s=of[number],
            load=_load(told, local),
            **_end(told, number, failures),
            **_of_steps(told, number),
            **_hashes(told, number, alike=str(devices[local]) == usual[0][0]),
            pieces=_named_pieces(told),
            replica=_replica(told, number),
            memory=_memory(told, number),
            probe=PROBE,
        )
        for local, number in enumerate(numbers)
    )


def _device(told: Told, local: int) -> Known[str]:
    devices = told.begin.get("devices")
    if not isinstance(devices, list) or local >= len(devices):
        return "cpu" if told.plan.get("device") == "cpu" else NOT_IN_INPUT
    return text_of(devices[local], "name")


def _end(told: Told, number: int, failures: tuple[TrainFailure, ...]) -> dict[str, Any]:
    came, trouble = ended(told, number, failures)
    steps = told.steps[WHOLE].get(number, [])
    mine = [one.line for one in failures if one.name == f"rank {number}"]
    first = steps[0]["line"] if steps else 1
    return {"ended": came, "trouble": trouble, "line": mine[0] if mine else first}


def _of_steps(told: Told, number: int) -> dict[str, Any]:
    steps = told.steps[WHOLE].get(number, [])
    collected = next(iter(told.where("gc", launch=WHOLE, rank=number)), {})
    whole = sum(map(total, steps))
    known = finite(collected.get("seconds")) and whole > 0
    unknown = NOT_IN_INPUT if collected else told.unfinished()
    return {
        "steps": len(steps),
        "step_s": middle(map(length, warm(steps))),
        "shares": shares(warm(steps)),
        "data_s": middle(spent(one, ("data",)) for one in warm(steps)),
        "gc_percent": 100.0 * collected["seconds"] / whole if known else unknown,
        "gc_longest_s": collected.get("longest_s", unknown),
    }


def _hashes(told: Told, number: int, *, alike: bool) -> dict[str, Any]:
    lines = told.where("proof", name="repeated", rank=number)
    if not lines:
        return dict.fromkeys(("hashes", "peer_hashes", "repeats"), told.unfinished())
    first, second = lines[0]["hashes"][:2]
    hashes = tuple(map(str, first))
    return {
        "hashes": hashes,
        "peer_hashes": hashes if alike else _OTHER_MODEL,
        "repeats": first == second,
    }


def _replica(told: Told, number: int) -> Known[str]:
    """The digest where those of the ranks first differ; where they never do the last. Where one
    rank holds a piece of the parameters, with the usual digests of the other pieces: so all ranks
    of a host can be compared."""
    if told.world() < 2 or _pieces(told) == told.world():
        return _NO_REPLICA
    at: dict[int, dict[int, str]] = {}
    for one in told.where("replica", launch=WHOLE):
        at.setdefault(one["step_at"], {})[one["rank"]] = one["digest"]
    # A rank that was lost is behind the others, which is no difference.
    of_all = [found for _, found in sorted(at.items()) if set(found) == set(told.ranks())]
    if not of_all:
        return told.unfinished()
    odd = [found for found in of_all if any(len(each) > 1 for each in _held(told, found).values())]
    found = (odd or of_all[-1:])[0]
    pieces = _held(told, found)
    mine = number % _pieces(told)
    return "+".join(found[number] if at == mine else _usual(pieces[at]) for at in sorted(pieces))


def _held(told: Told, found: dict[int, str]) -> dict[int, Counter[str]]:
    """The digests of each piece of the parameters, one of each rank that holds it."""
    pieces: dict[int, Counter[str]] = {}
    for rank, digest in found.items():
        pieces.setdefault(rank % _pieces(told), Counter())[digest] += 1
    return pieces


def _usual(digests: Counter[str]) -> str:
    (first, count), *_ = digests.most_common(1)
    return first if 2 * count > sum(digests.values()) else "?"


def _pieces(told: Told) -> int:
    """In how many one model lies over consecutive ranks: with DDP in one, with FSDP in as many as
    there are, or as the mesh says."""
    if told.plan.get("sharding") != "fsdp":
        return 1
    of_mesh = str(told.plan.get("mesh", "")).partition("x")[2]
    return int(of_mesh) if of_mesh.isdigit() and int(of_mesh) else told.world()


def _named_pieces(told: Told) -> str:
    pieces = _pieces(told)
    here = sorted({number % pieces + 1 for number in told.ranks()})
    return f"{', '.join(map(str, here))} of {pieces}" if pieces > 1 else "all"


def _memory(told: Told, number: int) -> RankMemory:
    line: Line = next(iter(told.where("memory", launch=WHOLE, rank=number)), {})
    gpu = told.plan.get("device") == "cuda"
    unknown = told.unfinished() if gpu else _NO_GPU
    counted = [one for one in RankMemory.__struct_fields__ if one.endswith("_bytes")]
    return RankMemory(
        **{one: count_of(line, one) if line else told.unfinished() for one in counted},
        inactive_split_percent=_split_percent(line, unknown),
        alloc_retries=count_of(line, "retries") if "retries" in line else unknown,
    )


def _split_percent(line: Line, unknown: Missing) -> Known[float]:
    """Free pieces at the moment when most was allocated. The allocator's own peak of them is of any
    moment, and between steps many are free; more than what was reserved beyond that peak they were
    not."""
    reserved, split, peak = (
        line.get(f"{name}_bytes") for name in ("reserved_peak", "inactive_split_peak", "peak")
    )
    if not (finite(reserved) and finite(split) and finite(peak)) or not reserved:
        return unknown
    return 100.0 * max(0.0, min(split, reserved - peak)) / reserved


def _load(told: Told, local: int) -> Known[DeviceLoad]:
    lines = told.where("device", local_rank=local)
    if not lines:
        return NOT_IN_INPUT if told.plan.get("device") == "cuda" else _NO_GPU
    seen = {
        name: median(found)
        for name in _LOADS
        if (found := [float(one[name]) for one in lines if finite(one.get(name))])
    }
    return DeviceLoad(len(lines), **seen)
