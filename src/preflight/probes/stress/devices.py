"""One device of a stress run after the other: whether it came to its end, what it answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from preflight.facts.stress import StressDevice
from preflight.model import Known, Missing
from preflight.probes.stress.ending import end_of
from preflight.probes.stress.lines import BETWEEN, PROBE, Told, median_of, spread_of
from preflight.probes.stress.peers import behind
from preflight.probes.stress.soak import soaked

_ALONE = Missing("not-applicable", "no other device of its model told what it computed")
_OTHER_MODEL = Missing("not-applicable", "it is of another model than most of the host's")
_SHARED = Missing("not-applicable", "processors are shared with the rest of the host: shown only")
_DIGITS = 8


def devices(told: Told) -> tuple[StressDevice, ...]:
    """All devices; after them what copied between GPUs, where it did not come to its end."""
    numbers = told.numbers()
    models = Counter(str(told.product(one)) for one in numbers).most_common(1)
    alike = [one for one in numbers if str(told.product(one)) == models[0][0]]
    parts = {one: _parts(told, one) for one in alike}
    usual = _usual(parts.values())
    found = [_device(told, one, usual if one in alike else None) for one in numbers]
    compared = [one for one in found if not isinstance(one.peer_digest, Missing)]
    if len(compared) == 1:  # it is like itself, which is no proof
        at = found.index(compared[0])
        found[at] = replace(found[at], peer_digest=_ALONE)
    found = _each_once(_with_peers(told, found))
    return (*found, *([_device(told, BETWEEN, None)] if told.lost(BETWEEN) else ()))


def _with_peers(told: Told, found: list[StressDevice]) -> list[StressDevice]:
    """Each beside the others of its model, where they are GPUs: in the soak, and from the host."""
    if not told.gpu:
        none = ("soak_behind_percent", "soak_peers", "pinned_behind_percent", "pinned_peers")
        return [replace(one, **dict.fromkeys(none, _SHARED)) for one in found]
    soaks = behind([(str(one.product), one.soak_tflops) for one in found])
    ways = behind([(str(one.product), one.pinned_gbps) for one in found])
    return [
        replace(one, soak_behind_percent=soak, soak_peers=of_soak, pinned_behind_percent=way,
                pinned_peers=of_way)
        for one, (soak, of_soak), (way, of_way) in zip(found, soaks, ways, strict=True)
    ]  # fmt: skip


def _each_once(found: list[StressDevice]) -> list[StressDevice]:
    """Two that tell one UUID are one device, or two recordings: the other was not tested."""
    counts = Counter(one.uuid for one in found if one.uuid)
    return [
        replace(one, ended=Missing("unreadable", f"{counts[one.uuid]} devices tell its UUID: "
                                   "which of them was tested is not known"))
        if counts[one.uuid] > 1 and one.ended is True else one
        for one in found
    ]  # fmt: skip


def _device(told: Told, number: int, usual: dict[str, str] | None) -> StressDevice:
    """`usual`: the answers of most devices of its model; None where it is of another."""
    ended, trouble, line = end_of(told, number)
    name, parts = told.name(number), _parts(told, number)
    return StressDevice(
        name=name,
        bus_id=name,
        uuid=str(told.about(number).get("uuid", "")).lower().removeprefix("gpu-"),
        product=told.product(number),
        ended=ended,
        trouble=trouble,
        digest=_digest(told, number, parts, usual or parts),
        peer_digest=_OTHER_MODEL if usual is None else _digest(told, number, usual | parts, {}),
        repeats=_repeats(told, number),
        **_moved(told, number),
        **soaked(told, number),
        line=line,
        probe=PROBE,
    )


def _parts(told: Told, number: int) -> dict[str, str]:
    """What it computed, each part by some digits of its own."""
    answers = told.where("answers", number)
    parts = [("training", answers[0]["digests"][0])] if answers else []
    parts += [("attention", one.get("digest")) for one in told.where("attention", number)]
    parts += [(str(one["precision"]), one.get("digest")) for one in told.where("gemm", number)]
    return {name: each[:_DIGITS] for name, each in parts if isinstance(each, str) and each}


def _usual(parts: Iterable[dict[str, str]]) -> dict[str, str]:
    """Of each part what most have told."""
    told: dict[str, Counter[str]] = {}
    for each in parts:
        for name, digest in each.items():
            told.setdefault(name, Counter())[digest] += 1
    return {name: counts.most_common(1)[0][0] for name, counts in told.items()}


def _digest(told: Told, number: int, parts: dict[str, str], wanted: Iterable[str]) -> Known[str]:
    """All parts as one text. Beside others a part that it did not tell is taken for theirs: that it
    is missing is said where it is judged by itself."""
    if not told.where("answers", number):
        return told.unfinished(number)
    absent = [one for one in wanted if one not in parts]
    if absent:
        return Missing("unreadable", f"it told no digest of {', '.join(absent)}")
    return ", ".join(f"{name} {each}" for name, each in parts.items())


def _repeats(told: Told, number: int) -> Known[bool]:
    answers = told.where("answers", number)
    if not answers:
        return told.unfinished(number)
    first, second = answers[0]["digests"][:2]
    return bool(first == second)


def _moved(told: Told, number: int) -> dict[str, Any]:
    """How fast it copies within its memory, and to and from the host's; of processors this is
    shown only."""
    if not told.gpu:
        return {"memory_gbps": _SHARED, "pinned_gbps": _SHARED}
    rates = {
        str(one["name"]): median_of(spread_of(one, "bytes_per_s", 1e9))
        for kind in ("memory", "copy")
        for one in told.where(kind, number)
    }
    pinned = [rates.get(name, told.unfinished(number)) for name in ("h2d pinned", "d2h pinned")]
    unknown = next((one for one in pinned if isinstance(one, Missing)), None)
    known = [one for one in pinned if not isinstance(one, Missing)]
    return {
        "memory_gbps": rates.get("copy", told.unfinished(number)),
        "pinned_gbps": unknown or min(known),
    }
