"""Samples of GPUs, from whichever tool, as the facts of a watch: medians, shares, growth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from preflight.facts.watch import Growth, Span, ThrottleShares, WatchedGpu
from preflight.model import NOT_IN_INPUT, Known, Missing

#: A sample in which the GPU had work for at least half of the time counts as busy.
BUSY_PERCENT = 50.0

#: NVML's and DCGM's clocks event (throttle) reasons (nvml.h). A mask may hold several.
IDLE, APPLICATIONS, POWER_CAP, HW_SLOWDOWN, SYNC_BOOST = 0x1, 0x2, 0x4, 0x8, 0x10
SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x20, 0x40, 0x80
_SHARES: dict[str, Callable[[int], bool]] = {
    "idle_percent": lambda mask: bool(mask & IDLE),
    "applications_clocks_percent": lambda mask: bool(mask & APPLICATIONS),
    "sw_power_cap_percent": lambda mask: bool(mask & POWER_CAP),
    "hw_slowdown_percent": lambda mask: bool(mask & HW_SLOWDOWN),
    "hw_unnamed_percent": lambda mask: (
        mask & (HW_SLOWDOWN | HW_THERMAL | POWER_BRAKE) == HW_SLOWDOWN
    ),
    "hw_thermal_percent": lambda mask: bool(mask & HW_THERMAL),
    "hw_power_brake_percent": lambda mask: bool(mask & POWER_BRAKE),
    "sync_boost_percent": lambda mask: bool(mask & SYNC_BOOST),
    "sw_thermal_percent": lambda mask: bool(mask & SW_THERMAL),
}

#: Quantities that become a Span of the same name.
SPANS = (
    "sm_mhz", "memory_mhz", "power_w", "gpu_c", "memory_c", "margin_c", "memory_margin_c",
    "memory_utilization_percent", "memory_used_bytes", "encoder_percent", "decoder_percent",
    "sm_active_percent", "sm_occupancy_percent", "tensor_active_percent", "dram_active_percent",
    "performance_state", "pcie_tx_gbps", "pcie_rx_gbps", "nvlink_tx_gbps", "nvlink_rx_gbps",
)  # fmt: skip
COUNTERS = (
    "ecc_corrected", "ecc_uncorrected", "pcie_replays", "nvlink_replays", "nvlink_recoveries",
    "nvlink_crc",
)  # fmt: skip


_NOT_HELD = {
    APPLICATIONS: "no setting held the clock for half of the time",
    0: "not busy, or with a reason for its clock, for half of the time",
}


class Series(Struct):
    """What was read of one GPU. `samples`: numbers by quantity; `missing`: why one has none."""

    index: int
    line: int
    began: int = 0  # in which round of rows, where it is a table
    bus_id: str = ""
    product: Known[str] = NOT_IN_INPUT
    samples: list[dict[str, float]] = field(default_factory=list)
    missing: dict[str, Missing] = field(default_factory=dict)
    card: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)  # counters at the start
    last: dict[str, float] = field(default_factory=dict)
    watched_s: Known[float] = NOT_IN_INPUT
    answers: Known[bool] = True
    hangs: Known[bool] = False
    trouble: str = ""

    def of(self, name: str) -> list[float]:
        """The values of one quantity, in the order of the samples."""
        return [sample[name] for sample in self.samples if name in sample]

    def why(self, name: str) -> Missing:
        """Why a quantity has no value."""
        return self.missing.get(name, NOT_IN_INPUT)


def watched(series: Sequence[Series], probe: str) -> tuple[WatchedGpu, ...]:
    """The GPUs in the order of their indices, each compared with the busiest."""
    gpus = [_gpu(one, probe) for one in sorted(series, key=lambda one: one.index)]
    busy = [gpu.busy_percent for gpu in gpus if not isinstance(gpu.busy_percent, Missing)]
    if len(gpus) < 2:
        alone = Missing("not-applicable", "one GPU was watched")
        return tuple(replace(gpu, behind_busiest_percent=alone) for gpu in gpus)
    return tuple(
        replace(gpu, behind_busiest_percent=_behind(gpu.busy_percent, busy)) for gpu in gpus
    )


def _behind(busy: Known[float], all_busy: Sequence[float]) -> Known[float]:
    return busy if isinstance(busy, Missing) else max(all_busy) - busy


def _gpu(one: Series, probe: str) -> WatchedGpu:
    _with_margins(one)
    spans = {name: _span(one, name) for name in SPANS}
    return WatchedGpu(
        one.index, f"gpu{one.index}", one.bus_id, one.line, probe, one.product,
        samples=len(one.samples),
        watched_s=one.watched_s,
        answers=one.answers,
        hangs=one.hangs,
        trouble=one.trouble,
        busy_percent=_busy(one),
        sm_max_mhz=_card(one, "sm_max_mhz"),
        sm_locked_percent=_clock_percent(one, APPLICATIONS),
        sm_unexplained_percent=_clock_percent(one, 0),
        memory_max_mhz=_card(one, "memory_max_mhz"),
        power_limit_w=_last(one, "power_limit_w"),
        capped_at_percent=_capped_at(one),
        pcie_gen=_highest(one, "pcie_gen"),
        pcie_width=_highest(one, "pcie_width"),
        throttle=_throttle(one),
        ecc_uncorrected_before=_before(one, "ecc_uncorrected"),
        growth=_growth(one),
        **spans,  # type: ignore[arg-type]
    )  # fmt: skip


def _with_margins(one: Series) -> None:
    """Degrees left, where the card tells its limit and not the distance."""
    pairs = (("margin_c", "gpu_c", "slowdown_c"), ("memory_margin_c", "memory_c", "memory_max_c"))
    for margin, value, limit in pairs:
        if one.of(margin):
            continue
        for sample in one.samples:
            if value in sample and limit in one.card:
                sample[margin] = one.card[limit] - sample[value]
        one.missing[margin] = one.missing.get(limit, one.why(value))


def span(values: Sequence[float]) -> Span:
    """Median, least, most and mean of at least one value."""
    return Span(median(values), min(values), max(values), round(fmean(values), 3))


def _span(one: Series, name: str) -> Known[Span]:
    values = one.of(name)
    return span(values) if values else one.why(name)


def _busy(one: Series) -> Known[float]:
    values = one.of("utilization_percent")
    return median(values) if values else one.why("utilization_percent")


def _card(one: Series, name: str) -> Known[float]:
    return one.card.get(name, one.why(name))


def _last(one: Series, name: str) -> Known[float]:
    values = one.of(name)
    return values[-1] if values else one.why(name)


def _highest(one: Series, name: str) -> Known[int]:
    values = one.of(name)
    return int(max(values)) if values else one.why(name)


def _clock_percent(one: Series, reason: int) -> Known[float]:
    """The clock of busy samples to which the driver gave this reason alone (0: none at all)."""
    most = _card(one, "sm_max_mhz")
    if isinstance(most, Missing):
        return most
    for name in ("sm_mhz", "reasons", "utilization_percent"):
        if not one.of(name):
            return one.why(name)
    found = [
        100 * sample["sm_mhz"] / most
        for sample in one.samples
        if sample.get("utilization_percent", 0) >= BUSY_PERCENT
        and "sm_mhz" in sample
        and sample.get("reasons") == reason
        and most > 0
    ]
    if len(found) * 2 < len(one.samples):  # a moment of it is a change of clocks, no state
        return Missing("not-applicable", _NOT_HELD[reason])
    return median(found)


def _capped_at(one: Series) -> Known[float]:
    """How near to its limit the card was while the driver said that the limit held it back."""
    for name in ("power_w", "power_limit_w", "reasons"):
        if not one.of(name):
            return one.why(name)
    found = [
        100 * sample["power_w"] / sample["power_limit_w"]
        for sample in one.samples
        if int(sample.get("reasons", 0)) & POWER_CAP
        and "power_w" in sample
        and sample.get("power_limit_w", 0) > 0
        and sample.get("utilization_percent", 100) >= BUSY_PERCENT
    ]
    if len(found) * 2 < len(one.samples):
        return Missing("not-applicable", "the power cap did not hold it back for half of the time")
    return fmean(found)


def _throttle(one: Series) -> ThrottleShares:
    masks = [int(mask) for mask in one.of("reasons")]
    shares: dict[str, Any] = {
        name: 100 * sum(map(holds, masks)) / len(masks) if masks else one.why("reasons")
        for name, holds in _SHARES.items()
    }
    thermal, power = one.of("thermal_violation"), one.of("power_violation_percent")
    heat = 100 * fmean(value > 0 for value in thermal) if thermal else one.why("thermal_violation")
    return ThrottleShares(
        thermal_violation_percent=heat,
        power_violation_percent=fmean(power) if power else one.why("power_violation_percent"),
        **shares,
    )


def _growth(one: Series) -> Growth:
    grown = {name: _grown(one, name) for name in COUNTERS}
    return Growth(
        pcie_replays_per_min=_rate(grown["pcie_replays"], one.watched_s, 60),
        nvlink_crc_per_s=_rate(grown["nvlink_crc"], one.watched_s, 1),
        **grown,
    )


def _before(one: Series, name: str) -> Known[int]:
    """What a counter said at the first look: what had happened before."""
    return int(one.first[name]) if name in one.first else one.why(name)


def _grown(one: Series, name: str) -> Known[int]:
    if name not in one.first:
        return one.why(name)
    if name not in one.last:
        return one.missing.get(f"last {name}", NOT_IN_INPUT)
    grown = int(one.last[name] - one.first[name])
    if grown < 0:
        return Missing("unreadable", f"the counter went back by {-grown}: it was reset meanwhile")
    return grown


def _rate(grown: Known[int], watched_s: Known[float], per_s: int) -> Known[float]:
    if isinstance(grown, Missing):
        return grown
    if isinstance(watched_s, Missing):
        return watched_s
    # Over less than its own unit a rate would make one event into many.
    return grown * per_s / max(watched_s, per_s)


def looked_twice(one: Series) -> None:
    """Counters that stand among the samples: the first and the last of them."""
    for name in COUNTERS:
        values = one.of(name)
        if values:
            one.first[name] = values[0]
        if len(values) > 1:
            one.last[name] = values[-1]
        else:
            once = Missing("not-in-input", "there is one look at it: growth needs two")
            one.missing[f"last {name}"] = once
