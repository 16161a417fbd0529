"""GPUs watched over time. Units stand in the names, as in facts/gpu.py; a Span has those of its
field's name.
"""

from __future__ import annotations

from msgspec import Struct, field

from preflight.model import NOT_IN_INPUT, Known


class Span(Struct, frozen=True):
    """One quantity over all samples in which it was readable."""

    median: float
    min: float
    max: float
    mean: float


class ThrottleShares(Struct, frozen=True):
    """In which share of the samples the driver gave each reason for lower clocks."""

    idle_percent: Known[float] = NOT_IN_INPUT
    applications_clocks_percent: Known[float] = NOT_IN_INPUT
    sw_power_cap_percent: Known[float] = NOT_IN_INPUT
    hw_slowdown_percent: Known[float] = NOT_IN_INPUT
    hw_unnamed_percent: Known[float] = NOT_IN_INPUT  # hw_slowdown with neither cause below
    hw_thermal_percent: Known[float] = NOT_IN_INPUT
    hw_power_brake_percent: Known[float] = NOT_IN_INPUT
    sync_boost_percent: Known[float] = NOT_IN_INPUT
    sw_thermal_percent: Known[float] = NOT_IN_INPUT
    thermal_violation_percent: Known[float] = NOT_IN_INPUT  # nvidia-smi dmon's tviol
    power_violation_percent: Known[float] = NOT_IN_INPUT  # its pviol: share of time, mean


class Growth(Struct, frozen=True):
    """How much each counter grew between the first and the last look."""

    ecc_corrected: Known[int] = NOT_IN_INPUT
    ecc_uncorrected: Known[int] = NOT_IN_INPUT
    pcie_replays: Known[int] = NOT_IN_INPUT
    pcie_replays_per_min: Known[float] = NOT_IN_INPUT
    nvlink_replays: Known[int] = NOT_IN_INPUT
    nvlink_recoveries: Known[int] = NOT_IN_INPUT
    nvlink_crc: Known[int] = NOT_IN_INPUT
    nvlink_crc_per_s: Known[float] = NOT_IN_INPUT


class WatchedGpu(Struct, frozen=True):
    """One GPU; `line` is that of its first sample, or of what became of it."""

    index: int
    name: str  # the subject: gpu0
    bus_id: str = ""
    line: int = 0
    probe: str = ""
    product: Known[str] = NOT_IN_INPUT
    samples: int = 0
    watched_s: Known[float] = NOT_IN_INPUT
    answers: Known[bool] = NOT_IN_INPUT  # False: lost while it was watched
    hangs: Known[bool] = NOT_IN_INPUT  # a call into the driver did not return
    trouble: str = ""  # in words, where one of the two says so
    busy_percent: Known[float] = NOT_IN_INPUT  # median share of time with work on it
    behind_busiest_percent: Known[float] = NOT_IN_INPUT  # how far below the busiest GPU's
    sm_mhz: Known[Span] = NOT_IN_INPUT
    sm_max_mhz: Known[float] = NOT_IN_INPUT  # the card's
    # The median SM clock in percent of the card's maximum, of samples that were busy: where the
    # driver named an operator's setting as the reason, and where it named none.
    sm_locked_percent: Known[float] = NOT_IN_INPUT
    sm_unexplained_percent: Known[float] = NOT_IN_INPUT
    memory_mhz: Known[Span] = NOT_IN_INPUT
    memory_max_mhz: Known[float] = NOT_IN_INPUT
    power_w: Known[Span] = NOT_IN_INPUT
    power_limit_w: Known[float] = NOT_IN_INPUT  # enforced, as it was last
    # The mean draw in percent of that limit, of samples that the power cap held back.
    capped_at_percent: Known[float] = NOT_IN_INPUT
    gpu_c: Known[Span] = NOT_IN_INPUT
    memory_c: Known[Span] = NOT_IN_INPUT
    margin_c: Known[Span] = NOT_IN_INPUT  # degrees left to the card's own slowdown point
    memory_margin_c: Known[Span] = NOT_IN_INPUT
    memory_utilization_percent: Known[Span] = NOT_IN_INPUT
    memory_used_bytes: Known[Span] = NOT_IN_INPUT
    encoder_percent: Known[Span] = NOT_IN_INPUT
    decoder_percent: Known[Span] = NOT_IN_INPUT
    sm_active_percent: Known[Span] = NOT_IN_INPUT
    sm_occupancy_percent: Known[Span] = NOT_IN_INPUT
    tensor_active_percent: Known[Span] = NOT_IN_INPUT
    dram_active_percent: Known[Span] = NOT_IN_INPUT
    performance_state: Known[Span] = NOT_IN_INPUT  # 0 fastest
    pcie_gen: Known[int] = NOT_IN_INPUT  # highest seen; a link that rests goes down
    pcie_width: Known[int] = NOT_IN_INPUT
    pcie_tx_gbps: Known[Span] = NOT_IN_INPUT
    pcie_rx_gbps: Known[Span] = NOT_IN_INPUT
    nvlink_tx_gbps: Known[Span] = NOT_IN_INPUT
    nvlink_rx_gbps: Known[Span] = NOT_IN_INPUT
    throttle: ThrottleShares = field(default_factory=ThrottleShares)
    last_xid: Known[int] = NOT_IN_INPUT  # 0 where the driver has told of none
    ecc_uncorrected_before: Known[int] = NOT_IN_INPUT  # the counter at the first look
    growth: Growth = field(default_factory=Growth)


class Watch(Struct, frozen=True):
    """One watch of all GPUs of a host."""

    gpus: Known[tuple[WatchedGpu, ...]]
    interval_s: Known[float] = NOT_IN_INPUT
    interval_basis: str = ""  # measured, or why it is taken to be that
    ended: Known[str] = NOT_IN_INPUT  # done | interrupted | cut
    unread: tuple[str, ...] = ()  # columns that nothing here knows
    line: int = 1
    probe: str = ""
