"""What a stress run measured: products, rates, patterns, attention, copies between GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

from msgspec.structs import replace

from preflight.facts.stress import Gemm, Pair, Pattern, Rate, StressAttention
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.stress.lines import (
    PROBE,
    Line,
    Told,
    bool_of,
    count_of,
    distance_of,
    median_of,
    spread_of,
)

_SHARED = Missing("not-applicable", "processors are shared with the rest of the host: shown only")
_ALONE = Missing("not-applicable", "no other GPU of its model was measured")
#: Flash attention of torch has kernels from this compute capability on.
_FLASH = (8, 0)


def gemms(told: Told) -> tuple[Gemm, ...]:
    """Each precision of each device. A device without any is there too: none can pass unseen."""
    found = [one for number in told.numbers() for one in _gemms(told, number)]
    return tuple(_with_peers(found)) if told.gpu else tuple(found)


def _gemms(told: Told, number: int) -> Iterator[Gemm]:
    name, lines = told.name(number), told.where("gemm", number)
    about: dict[str, Any] = {"device": name, "product": told.product(number), "bus_id": name}
    if not lines:
        why = told.unfinished(number)
        yield Gemm(name, precision="", tflops=why, median_tflops=why, worst=why, block_worst=why,
                   differing=why, behind_percent=why, peers=why, **about)  # fmt: skip
    for one in lines:
        tflops = spread_of(one, "flops_per_s", 1e12)
        yield Gemm(
            f"{name} {one['precision']}", precision=str(one["precision"]), tflops=tflops,
            median_tflops=median_of(tflops), worst=distance_of(one, "worst"),
            block_worst=distance_of(one, "block_worst"), differing=count_of(one, "differing"),
            behind_percent=_ALONE if told.gpu else _SHARED, peers=1 if told.gpu else _SHARED,
            line=one["line"], probe=PROBE, **about,
        )  # fmt: skip


def _with_peers(found: list[Gemm]) -> Iterator[Gemm]:
    alike: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in found:
        if not isinstance(one.median_tflops, Missing):
            alike[one.precision, str(one.product)].append(one.median_tflops)
    for one in found:
        rates = alike[one.precision, str(one.product)]
        if isinstance(one.median_tflops, Missing) or len(rates) < 2 or median(rates) <= 0:
            yield one
        else:
            behind = 100.0 * (1.0 - one.median_tflops / median(rates))
            yield replace(one, behind_percent=behind, peers=len(rates))


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
    if not lines:
        why = told.unfinished(number)
        yield Pattern(name, device=name, tested_bytes=why, errors=why, bus_id=name)
    for one in lines:
        tested, errors = count_of(one, "bytes"), count_of(one, "errors")
        if tested == 0:
            errors = Missing("exited", "no memory was free to be tested")
        yield Pattern(f"{name} {one['name']}", device=name, tested_bytes=tested, errors=errors,
                      where=_first(one), bus_id=name, line=one["line"], probe=PROBE)  # fmt: skip


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
    words = str(told.about(number).get("capability", "")).split(".")
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return NOT_IN_INPUT
    return (int(words[0]), int(words[1])) >= _FLASH


def pairs(told: Told) -> Known[tuple[Pair, ...]]:
    """Each ordered pair of GPUs."""
    if not told.gpu or len(told.numbers()) < 2:
        return Missing("not-applicable", "there are no two GPUs to copy between")
    found = tuple(_pair(told, one) for one in told.of["pair"])
    return found or told.unfinished(-1)


def _pair(told: Told, one: Line) -> Pair:
    gbps = spread_of(one, "bytes_per_s", 1e9)
    return Pair(
        f"{told.name(int(one['from']))} to {told.name(int(one['to']))}",
        reaches=bool_of(one, "reaches"),
        same=bool_of(one, "same"),
        gbps=gbps, median_gbps=median_of(gbps), line=one["line"], probe=PROBE,
    )  # fmt: skip
