"""What saves of a checkpoint took, and what several hosts reached at once, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from preflight.facts.host import Host
from preflight.facts.patterns import Pattern
from preflight.model import Known, Missing
from preflight.units import format_bytes

Row = dict[str, Any]
#: Figures of them alone, for programs.
OF_SAVES = (
    "durable_s", "stall_s", "sync_s", "reached_percent", "cached_bytes", "reader_alone_mbps",
    "reader_mbps", "reader_kept_percent", "reader_starved_s",
)  # fmt: skip


def save_tables(host: Host) -> Iterator[Row]:
    """None where nothing was saved."""
    if isinstance(host.patterns, Missing):
        return
    saves = [one for one in host.patterns if not isinstance(one.durable_s, Missing)]
    if saves:
        yield {"table": "saves of a checkpoint", "host": host.name,
               "rows": [_save(one) for one in saves], "notes": list(_notes(saves))}  # fmt: skip
    if all_at_once := [one for one in host.patterns if one.hosts_mbps]:
        yield {"table": "all hosts at once", "rows": [_hosts(one) for one in all_at_once],
               "notes": list(_of_hosts(all_at_once))}  # fmt: skip


def _save(one: Pattern) -> Row:
    return {
        "save": one.part, "bytes": _bytes(one.done_bytes), "durable s": _figure(one.durable_s),
        "stall s": _figure(one.stall_s), "fsync s": _figure(one.sync_s),
        "in memory": _bytes(one.cached_bytes), "reader %": _figure(one.reader_kept_percent),
        "wrong": "" if isinstance(one.wrong, Missing) else one.wrong,
        "read from": "" if isinstance(one.read_back, Missing) else one.read_back,
    }  # fmt: skip


def _notes(saves: Sequence[Pattern]) -> Iterator[str]:
    yield ("durable: until the last file and its directory were synced; stall: until the last "
           "write had returned, all that a step waits for if the rest is done beside it; fsync: "
           "the longest; in memory: of the page cache, which the save leaves full; wrong: blocks "
           "that were read back otherwise")  # fmt: skip
    beside = next((one for one in saves if not isinstance(one.reader_mbps, Missing)), None)
    if beside:
        yield (f"a reader of 128 KiB at random: {_short(beside.reader_alone_mbps)} MB/s alone, "
               f"{_short(beside.reader_mbps)} MB/s beside the save")  # fmt: skip
    if len({one.done_bytes for one in saves if not isinstance(one.done_bytes, Missing)}) > 1:
        yield "saves are of unlike size: compare their MB/s, not their seconds"
    if any(one.read_back == "page cache" for one in saves):
        yield "read back from the page cache: it is not shown that the device has the same"


def _hosts(one: Pattern) -> Row:
    """The slowest host and its rate beside the median's."""
    rates = [rate for _, rate in one.hosts_mbps]
    slowest, least = min(one.hosts_mbps, key=lambda told: told[1])
    return {
        "all at once": one.part.removesuffix(", all hosts"), "hosts": len(rates),
        "MB/s": _short(one.bandwidth_mbps), "s": _short(one.elapsed_s), "slowest": slowest,
        "its MB/s": _short(least), "median": _short(median(rates)), "most": _short(max(rates)),
    }  # fmt: skip


def _of_hosts(rows: Sequence[Pattern]) -> Iterator[str]:
    yield "MB/s: bytes of all hosts in the time of the slowest; restore: of another host's shards"
    apart = [one.apart_s for one in rows if not isinstance(one.apart_s, Missing)]
    if apart:
        yield f"they began within {max(apart):.2g} s, by their clocks"


def _figure(value: Known[float]) -> float | str:
    """With more digits than are shown: it is rounded once, as what a check tells is."""
    return "" if isinstance(value, Missing) else float(f"{value:.7g}")


def _short(value: Known[float]) -> float | str:
    return "" if isinstance(value, Missing) else float(f"{value:.4g}")


def _bytes(value: Known[int]) -> str:
    return "" if isinstance(value, Missing) else format_bytes(value)
