"""What counters of a host grew between the first and the last look of a bench.

What counts as what is told by the kernel (Documentation/ABI/stable/sysfs-class-infiniband,
Documentation/networking/statistics.rst) and by NVIDIA's documents of the counters of mlx5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.facts.bench import DeviceGrowth, NetworkGrowth
from preflight.model import Known, Missing
from preflight.probes.collectives.lines import PROBE, Line, Told

_NONE = Missing("not-in-input", "no counters were told")
_FEW = Missing("not-applicable", "hardly anything went over TCP")
#: Segments of TCP below which a share says nothing.
_LEAST_SEGMENTS = 1000
#: By what a line of counters calls it: the kind of a device, and its counters of each sort.
_KINDS = {"net": "interface", "rdma": "rdma", "pci": "pci", "pause": "interface"}
_BROKEN = frozenset((
    "link_downed", "local_link_integrity_errors", "excessive_buffer_overrun_errors",
    "rnr_nak_retry_err", "carrier_down_count", "nonfatal", "fatal",
))  # fmt: skip
_ERRORS = frozenset((
    "symbol_error", "port_rcv_errors", "rx_icrc_encapsulated", "local_ack_timeout_err",
    "rx_errors", "rx_crc_errors", "tx_errors", "tx_carrier_errors", "correctable",
))  # fmt: skip
_DROPS = frozenset((
    "port_xmit_discards", "VL15_dropped", "out_of_buffer", "rx_dropped", "tx_dropped",
    "rx_missed_errors", "rx_fifo_errors",
))  # fmt: skip
_PACKETS = frozenset(("rx_packets", "tx_packets", "port_rcv_packets", "port_xmit_packets"))


def growth(told: Told) -> Known[NetworkGrowth]:
    """Of this host. Missing where one of the looks is."""
    looks = {str(one["when"]): one for one in told.of["counters"]}
    first, last = looks.get("before"), looks.get("after")
    if first is None:
        return _NONE
    if last is None:
        why = told.text("gone") or ("interrupted" if told.of["interrupted"] else "it was cut short")
        return Missing("exited", f"no counters were told at its end: {why}")
    seconds = max(1e-3, float(last["at_s"]) - float(first["at_s"]))
    return NetworkGrowth(
        round(seconds, 1), tuple(_devices(first, last, seconds)), **_tcp(first, last),
        windows=_windows(told), line=last["line"], probe=PROBE,
    )  # fmt: skip


def _windows(told: Told) -> dict[str, tuple[float, ...]]:
    """When which counter grew."""
    found: dict[str, list[float]] = {}
    for one in told.of["counted"]:
        for device, grew in one["grew"].items():
            for name in grew:
                found.setdefault(f"{device} {name}".lstrip(), []).append(float(one["at_s"]))
    return {name: tuple(times) for name, times in found.items()}


def _devices(first: Line, last: Line, seconds: float) -> Iterator[DeviceGrowth]:
    for part in ("rdma", "net", "pci"):
        for name, counts in last[part].items():
            before = first[part].get(name, {})
            grew = _grew(before, counts)
            if part == "net":
                grew |= _grew(first["pause"].get(name, {}), last["pause"].get(name, {}))
            yield _device(name, _KINDS[part], grew, counts, seconds, last["line"])


def _grew(before: Line, after: Line) -> dict[str, int]:
    """One that went back was cleared meanwhile, and tells nothing."""
    told = {str(name): int(one) - int(before[name]) for name, one in after.items()
            if name in before}  # fmt: skip
    return {name: more for name, more in told.items() if more > 0}


def _device(
    name: str, kind: str, grew: dict[str, int], counts: Line, seconds: float, line: int
) -> DeviceGrowth:
    packets: Known[int] = Missing("not-applicable", "it counts none")
    if _PACKETS & set(counts):
        packets = sum(more for key, more in grew.items() if key in _PACKETS)
    return DeviceGrowth(
        str(name), kind, {key: more for key, more in grew.items() if key not in _PACKETS}, packets,
        tuple(f"{key} +{more}" for key, more in grew.items() if key in _BROKEN),
        _most(grew, _ERRORS) / seconds, _most(grew, _DROPS) / seconds, line, PROBE,
    )  # fmt: skip


def _most(grew: dict[str, int], names: frozenset[str]) -> int:
    """The same packet may stand in several of them."""
    return max((more for key, more in grew.items() if key in names), default=0)


def _tcp(first: Line, last: Line) -> dict[str, Any]:
    names = ("InSegs", "OutSegs", "RetransSegs", "TCPOFOQueue")
    more: list[Known[int]] = [
        int(last["tcp"][name]) - int(first["tcp"][name])
        if name in last["tcp"] and name in first["tcp"]
        else Missing("not-applicable", f"this kernel does not count {name}") for name in names
    ]  # fmt: skip
    came, sent, again, late = more
    return {
        "segments_in": came, "segments_out": sent, "retransmits": again, "out_of_order": late,
        "retransmits_percent": _percent(again, sent), "out_of_order_percent": _percent(late, came),
    }  # fmt: skip


def _percent(part: Known[int], whole: Known[int]) -> Known[float]:
    if isinstance(part, Missing):
        return part
    if isinstance(whole, Missing):
        return whole
    return 100 * part / whole if whole >= _LEAST_SEGMENTS else _FEW
