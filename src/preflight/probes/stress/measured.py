"""What a stress run measured: products, rates, patterns, attention, copies between GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import permutations
from typing import Any

from msgspec.structs import replace

from preflight.facts.stress import Gemm, Pair, Pattern, Rate, StressAttention
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.stress.lines import (
    BETWEEN,
    PROBE,
    Line,
    Told,
    bool_of,
    count_of,
    distance_of,
    median_of,
    spread_of,
)
from preflight.probes.stress.peers import ALONE, behind

_SHARED = Missing("not-applicable", "processors are shared with the rest of the host: shown only")
_NO_SIDES = Missing("unreadable", "its line tells no sides of matrices")
#: From which compute capability on a GPU has units for a precision (payload/stress/gemm.py).
_UNITS = {"fp32": (0, 0), "tf32": (8, 0), "bf16": (8, 0), "fp16": (7, 0), "fp8": (8, 9)}
_TORCH_WITH_FP8 = (2, 1)
#: Those of payload/stress/pattern.py; a test holds them together.
PATTERNS = ("address", "walking ones", "walking zeros", "random", "random inverted")
#: A block of each is tested at least, where there is memory; a small host has not so much.
_LEAST_BYTES = {True: 32 << 20, False: 1 << 20}
#: Flash attention of torch has kernels from this compute capability on.
_FLASH = (8, 0)


def gemms(told: Told) -> tuple[Gemm, ...]:
    """Each precision of each device. A device without any is there too: none can pass unseen."""
    found = [one for number in told.numbers() for one in _gemms(told, number)]
    return tuple(_with_peers(found)) if told.gpu else tuple(found)


def _gemms(told: Told, number: int) -> Iterator[Gemm]:
    name, lines = told.name(number), told.where("gemm", number)
    about: dict[str, Any] = {"device": name, "product": told.product(number), "bus_id": name}
    absent = told.absent(number, "gemm", "precision", _precisions(told, number)) if lines else [""]
    for precision in absent:
        why = told.unfinished(number)
        yield Gemm(f"{name} {precision}".rstrip(), precision=precision, tflops=why,
                   median_tflops=why, worst=why, block_worst=why, differing=why,
                   behind_percent=why, peers=why, **about)  # fmt: skip
    for one in lines:
        sound = _is_shape(one.get("sides"))
        tflops = spread_of(one, "flops_per_s", 1e12) if sound else _NO_SIDES
        yield Gemm(
            f"{name} {one['precision']}", precision=str(one["precision"]), tflops=tflops,
            median_tflops=median_of(tflops),
            worst=distance_of(one, "worst") if sound else _NO_SIDES,
            block_worst=distance_of(one, "block_worst") if sound else _NO_SIDES,
            differing=count_of(one, "differing") if sound else _NO_SIDES,
            behind_percent=ALONE if told.gpu else _SHARED, peers=1 if told.gpu else _SHARED,
            line=one["line"], probe=PROBE, **about,
        )  # fmt: skip


def _is_shape(sides: Any) -> bool:
    whole = isinstance(sides, list) and all(isinstance(one, int) and one > 0 for one in sides)
    return whole and len(sides) == len(("m", "n", "k"))


def _precisions(told: Told, number: int) -> list[str]:
    """Those that the device has units for, and this torch can ask for."""
    if not told.gpu:
        return ["fp32", "bf16"]
    capability = _capability(told, number)
    release = re.match(r"(\d+)\.(\d+)", str(told.begin.get("torch")))
    old = release is not None and (int(release[1]), int(release[2])) < _TORCH_WITH_FP8
    return [
        name for name, first in _UNITS.items()
        if capability >= first and not (name == "fp8" and old)
    ]  # fmt: skip


def _with_peers(found: list[Gemm]) -> Iterator[Gemm]:
    told = behind([((one.precision, str(one.product)), one.median_tflops) for one in found])
    for one, (percent, peers) in zip(found, told, strict=True):
        unknown = isinstance(one.median_tflops, Missing)
        yield one if unknown else replace(one, behind_percent=percent, peers=peers)


def rates(told: Told, kind: str) -> Known[tuple[Rate, ...]]:
    """Of memory, or of copies between it and the host's."""
    if kind == "copy" and not told.gpu:
        return Missing("not-applicable", "the memory of processors is the host's")
    return tuple(each for number in told.numbers() for each in _rates(told, kind, number))


def _rates(told: Told, kind: str, number: int) -> Iterator[Rate]:
    name, lines = told.name(number), told.where(kind, number)
    about: dict[str, Any] = {"device": name, "product": told.product(number), "bus_id": name}
    if not lines:
        why = told.unfinished(number)
        yield Rate(name, what="", gbps=why, median_gbps=why, **about)
    for one in lines:
        gbps = spread_of(one, "bytes_per_s", 1e9)
        yield Rate(f"{name} {one['name']}", what=str(one["name"]), gbps=gbps,
                   median_gbps=median_of(gbps), line=one["line"], probe=PROBE, **about)  # fmt: skip


def patterns(told: Told) -> tuple[Pattern, ...]:
    """Each pattern of each device."""
    return tuple(each for number in told.numbers() for each in _patterns(told, number))


def _patterns(told: Told, number: int) -> Iterator[Pattern]:
    name, lines = told.name(number), told.where("pattern", number)
    for absent in told.absent(number, "pattern", "name", PATTERNS) if lines else [""]:
        why = told.unfinished(number)
        yield Pattern(f"{name} {absent}".rstrip(), device=name, tested_bytes=why, errors=why,
                      bus_id=name)  # fmt: skip
    for one in lines:
        tested = count_of(one, "bytes")
        yield Pattern(f"{name} {one['name']}", device=name, tested_bytes=tested,
                      errors=_errors(told, one, tested), where=_first(one), bus_id=name,
                      line=one["line"], probe=PROBE)  # fmt: skip


def _errors(told: Told, one: Line, tested: Known[int]) -> Known[int]:
    """Words that differ: those that were found stay found; that there are none takes a test."""
    errors = count_of(one, "errors")
    if isinstance(errors, Missing) or errors:
        return errors
    if one.get("first"):
        return Missing("unreadable", "its line tells of no error, and where the first is")
    if isinstance(tested, Missing):
        return tested
    if tested == 0:
        return Missing("exited", "no memory was free to be tested")
    if tested < _LEAST_BYTES[told.gpu]:
        return Missing("exited", f"only {tested:,} bytes were tested")
    return errors


def _first(one: Line) -> str:
    """`the first at 0x7f10, byte 512 of what was tested, bit 13`."""
    first = one.get("first")
    if not isinstance(first, list) or not first:
        return ""
    bits = [str(bit) for bit in first[0]["bits"]]
    shown = f"bit{'s' if len(bits) > 1 else ''} {', '.join(bits[:8])}"
    at = f"the first at {first[0]['address']}, byte {first[0]['offset']} of what was tested"
    return f"{at}: {shown}{' and more' if len(bits) > 8 else ''}"


def attention(told: Told) -> tuple[StressAttention, ...]:
    """The user's shape on each device."""
    return tuple(each for number in told.numbers() for each in _attention(told, number))


def _attention(told: Told, number: int) -> Iterator[StressAttention]:
    name, lines = told.name(number), told.where("attention", number)
    if not lines:
        why = told.unfinished(number)
        yield StressAttention(name, "", "", why, apart=why, tflops=why, can_flash=why, bus_id=name)
    for one in lines:
        if one.get("beyond"):
            why = Missing("exited", f"{one['beyond']}: a smaller --attention")
            yield StressAttention(name, str(one["shape"]), str(one["precision"]), why, apart=why,
                                  tflops=why, can_flash=why, bus_id=name, line=one["line"],
                                  probe=PROBE)  # fmt: skip
            continue
        kernel = one.get("kernel")
        yield StressAttention(
            name, shape=str(one["shape"]), precision=str(one["precision"]),
            kernel=kernel if isinstance(kernel, str) and kernel
            else Missing("exited", "torch does not tell which kernel it takes"),
            why_not_flash=str(one.get("why_not_flash") or ""), apart=distance_of(one, "apart"),
            tflops=spread_of(one, "flops_per_s", 1e12), can_flash=_can_flash(told, number),
            bus_id=name, line=one["line"], probe=PROBE,
        )  # fmt: skip


def _can_flash(told: Told, number: int) -> Known[bool]:
    if not told.gpu:
        return Missing("not-applicable", "processors: torch has one kernel for all of them")
    capability = _capability(told, number)
    return capability >= _FLASH if capability else NOT_IN_INPUT


def _capability(told: Told, number: int) -> tuple[int, ...]:
    """Empty where it is not told."""
    words = str(told.about(number).get("capability", "")).split(".")
    known = len(words) == len(_FLASH) and all(re.fullmatch("[0-9]{1,3}", one) for one in words)
    return tuple(map(int, words)) if known else ()


def pairs(told: Told) -> Known[tuple[Pair, ...]]:
    """Each ordered pair of GPUs that came to their end; last, how many were not copied."""
    if not told.gpu or len(told.numbers()) < 2:
        return Missing("not-applicable", "there are no two GPUs to copy between")
    found = tuple(_pair(told, one) for one in told.of["pair"])
    unsure = [one for one in told.numbers() if not (told.where("done", one) or told.lost(one))]
    if unsure:
        return found or told.unfinished(unsure[0])
    sound = [one for one in told.numbers() if told.where("done", one)]
    if len(sound) < 2:
        return Missing("not-applicable", "there are no two sound GPUs to copy between")
    wanted = list(permutations(sound, 2))
    there = {(one["from"], one["to"]) for one in told.of["pair"]}
    absent = [one for one in wanted if one not in there]
    if not found or not absent:
        return found or told.unfinished(BETWEEN)
    return (*found, _not_copied(told, absent, len(wanted)))


def _not_copied(told: Told, absent: list[tuple[int, int]], count: int) -> Pair:
    first = " to ".join(map(told.name, absent[0]))
    why = told.unfinished(BETWEEN)
    text = f"{len(absent)} of {count} pairs were not copied, the first {first}: {why.text}"
    why = Missing(why.kind, text)
    return Pair(told.name(BETWEEN), reaches=why, same=why, gbps=why, median_gbps=why)


def _pair(told: Told, one: Line) -> Pair:
    gbps = spread_of(one, "bytes_per_s", 1e9)
    return Pair(
        f"{told.name(int(one['from']))} to {told.name(int(one['to']))}",
        reaches=bool_of(one, "reaches"),
        same=bool_of(one, "same"),
        gbps=gbps, median_gbps=median_of(gbps), line=one["line"], probe=PROBE,
    )  # fmt: skip
