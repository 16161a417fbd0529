"""What counters of a host grew while a bench ran; nothing where all is as it is on sound hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.facts.bench import DeviceGrowth, NetworkGrowth
from preflight.facts.host import Host
from preflight.model import Known, Missing
from preflight.units import format_duration

Row = dict[str, Any]
#: Percent of TCP's segments from which on they are shown.
_SHOWN_PERCENT = 0.1


def growth_tables(host: Host) -> tuple[dict[str, Any], ...]:
    """One table, or none."""
    found = host.network_growth
    if isinstance(found, Missing):
        return ()
    rows = [row for one in found.devices for row in _device(one, found)]
    rows += list(_tcp(found))
    name = f"what counters grew, in {format_duration(found.seconds)}"
    return ({"table": name, "host": host.name, "rows": rows},) if rows else ()


def _device(one: DeviceGrowth, found: NetworkGrowth) -> Iterator[Row]:
    for name, more in one.grew.items():
        row = _row(one.name, name, more, found.seconds, one.packets)
        yield row | _when(found, f"{one.name} {name}")


def _tcp(found: NetworkGrowth) -> Iterator[Row]:
    told = (
        (
            "sent again",
            "RetransSegs",
            found.retransmits,
            found.segments_out,
            found.retransmits_percent,
        ),
        (
            "came after a gap",
            "TCPOFOQueue",
            found.out_of_order,
            found.segments_in,
            found.out_of_order_percent,
        ),
    )
    for name, counter, more, of, percent in told:
        if isinstance(more, int) and isinstance(percent, float) and percent >= _SHOWN_PERCENT:
            yield _row("TCP", name, more, found.seconds, of) | _when(found, counter)


def _when(found: NetworkGrowth, counter: str) -> Row:
    """Of --duration."""
    times = found.windows.get(counter, ())
    if not found.windows:
        return {}
    first = f"{len(times)}, the first after {format_duration(times[0])}" if times else "none"
    return {"windows of --duration": first}


def _row(where: str, name: str, more: int, seconds: float, of: Known[int]) -> Row:
    share = "" if isinstance(of, Missing) or not of else f"{1e6 * more / of:,.0f}"
    return {"where": where, "counter": name, "grew": more, "a second": round(more / seconds, 2),
            "of a million": share}  # fmt: skip
