"""GPU, switch, link and host errors, from the kernel log in any of its forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.kernel import Gap, KernelEvent, KernelLog, Start, Sxid, Xid
from preflight.model import Known, Missing
from preflight.probes.kernel_log.hosts import hosts_of, several, written
from preflight.probes.kernel_log.kept import EVENTS_MAX, REPEATS_MAX, Found, Kept
from preflight.probes.kernel_log.lines import Clock, Line
from preflight.probes.kernel_log.text import LogText, log_text
from preflight.probes.kernel_log.times import (
    before_boots,
    boots,
    driver_loads,
    is_boot,
    through_new_year,
)
from preflight.probes.kernel_log.union import told_twice
from preflight.probes.spec import probe

#: The last boots of a log; more are no record of use.
STARTS_MAX = 50
#: dmesg that begins later than this after boot has lost its oldest lines: the first message,
#: the kernel's version, is written before the clock runs.
_BOOT_BEGINS_S = 1.0
#: Where a boot or a load of the driver is told, which of them, and when.
_Mark = tuple[int, str, float | None]
#: Lines at either end that may name the host, and below a mark between boots that may date it.
_NEAR = 3
#: Beside the kernel, whose clean log is worth a verdict of its own: on the switches.
_FABRIC = "nv-fabricmanager"

_DENIED = (
    "You are currently not seeing messages from other users", "No journal files were",
    "-- No entries --", "read kernel buffer failed", "klogctl: Operation not permitted",
)  # fmt: skip


@probe("dmesg", ["dmesg"], timeout_s=10, needs_root=True)
def dmesg(text: str) -> KernelLog:
    """The kernel's ring buffer."""
    return parse_kernel_log(text, "dmesg")


@probe(
    "journalctl",
    ["journalctl", "-k", "-b", "-o", "short-iso-precise", "--no-pager"],
    timeout_s=20,
    needs_root=True,
)
def journalctl(text: str) -> KernelLog:
    """The kernel's messages of this boot, as the journal kept them."""
    return parse_kernel_log(text, "journalctl")


@probe("kernel-log", ["dmesg"], timeout_s=10)
def kernel_log(text: str) -> KernelLog:
    """Recorded text of any form; never asked live."""
    return parse_kernel_log(text, "kernel-log")


def parse_kernel_log(text: str, probe: str = "") -> KernelLog:
    """Every event of the log. ParseError where nothing in it was written by the kernel."""
    log = log_text(text)
    kept = Kept(probe, EVENTS_MAX if log.gaps.events else REPEATS_MAX, dropped=log.gaps.events)
    for at, number in log.hits():
        raw = log.raw(at)
        kept.take(at, number, log.read(at, raw), raw)
    writers = _writers(log, kept)
    edges = [log.edge(first) for first in (True, False)]
    if not (kept.records or kept.seconds or kept.unread):
        if edges == [None, None]:
            raise ParseError(_why_nothing(text))
        if not writers & {"kernel", _FABRIC}:
            raise ParseError(_no_kernel(writers))
    return _on_one_axis(log, kept, edges, writers, probe)


def _why_nothing(text: str) -> str:
    denied = next((words for words in _DENIED if words in text), None)
    if denied:
        return (
            f"the kernel log may not be read by this user, it says {denied!r}: record it with "
            "`sudo dmesg` or `sudo journalctl -k`, or run preflight on the host with --sudo"
        )
    if not text.strip():
        return "the kernel log is empty: try with --sudo"
    return "expected a kernel log as dmesg, journalctl or syslog write it; no line has that form"


def _no_kernel(writers: set[str]) -> str:
    others = ", ".join(sorted(writers)[:5])
    told = f", only of {others}" if others else ""
    return f"it holds no line of the kernel{told}: give `sudo dmesg` or `journalctl -k`"


def _writers(log: LogText, kept: Kept) -> set[str]:
    """Whose lines there are; the kernel alone as soon as one of its is seen."""
    if "kernel" in kept.writers:
        return {"kernel"}
    found: set[str] = set(kept.writers)
    for line in log.lines():
        if line.known:
            found.add(line.program)
            if line.program == "kernel":
                return {"kernel"}
    return found


def _missed(kept: Kept, writers: set[str]) -> Known[int]:
    """Messages that are not there; a log without a line of the kernel does not tell."""
    told = kept.missed or "kernel" in writers
    return kept.missed if told else Missing("not-in-input", "no line of the kernel is in the input")


def _on_one_axis(
    log: LogText, kept: Kept, edges: Sequence[Line | None], writers: set[str], probe: str
) -> KernelLog:
    """The log with all times on the axis that most of its lines have; the others have none."""
    text, found = log.text, kept.in_order()
    clocks: list[Clock] = [one.clock for one in found]
    clocks += [edge.clock for edge in edges if edge]
    dated = Counter(clock for clock in clocks if clock != "none").most_common(1)
    axis: Clock = dated[0][0] if dated else "none"
    first, last = (edge.at_s if edge and edge.clock == axis else None for edge in edges)
    begins_late = axis == "boot" and first is not None and first > _BOOT_BEGINS_S
    times = [one.record.at_s if one.clock == axis else None for one in found]
    dates = axis in ("wall", "yearless")  # such a log tells boots to others
    fresh = boots(text, log.line_at)[-STARTS_MAX:] if found or dates else []
    starts_at = _starts(log, fresh, axis) if found or dates else []
    hosts = hosts_of(list(written(_lines_with_host(log, found, starts_at))))
    if len(hosts) > 1:
        raise ParseError(several(hosts))
    if axis == "yearless":
        first, times, starts_at, last = _through_new_year(first, found, times, starts_at, last)
    elif axis == "boot" and fresh:
        ends = [log.last_time_before(at) for at in fresh]
        starts = [0, *(one.start for one in found)]
        first, *times = before_boots(starts, fresh, [first, *times], ends)
    known = [at for at in times if at is not None]
    first = min(known, default=None) if first is None else first
    last = max(known, default=None) if last is None else last
    records = [
        replace(one.record, at_s=at, probe=probe) for one, at in zip(found, times, strict=True)
    ]
    again = told_twice(records, [one.clock not in (axis, "none") for one in found])
    records = [one for at, one in enumerate(records) if at not in again]
    return KernelLog(
        lines=log.count(),
        first_at_s=first,
        last_at_s=last,
        clock="wall" if axis == "yearless" else axis,
        xids=tuple(one for one in records if isinstance(one, Xid)),
        sxids=tuple(one for one in records if isinstance(one, Sxid)),
        events=tuple(one for one in records if isinstance(one, KernelEvent)),
        unread=kept.not_told(),
        utc=axis == "wall" and all(edge.zoned for edge in edges if edge and edge.clock == axis),
        gap=Gap(_missed(kept, writers), kept.missed_line or 1, probe),
        messages_left_out=tuple(kept.left_out),
        starts=tuple(Start(what, log.number(at), at_s, probe) for at, what, at_s in starts_at),
        writers=tuple(sorted(writers)),
        truncated=kept.dropped > 0 or begins_late,
        left_out=kept.dropped,
        hosts=hosts,
        probe=probe,
    )


def _starts(log: LogText, fresh: Sequence[int], axis: Clock) -> list[_Mark]:
    """Boots, and loads of the driver, in the log's order; without a time where that would be one
    since boot. A boot that a log with dates begins with ends what other logs tell."""
    begins = [0] if axis in ("wall", "yearless") and is_boot(log.raw(0), log.line_at(0)) else []
    loads = driver_loads(log.text, log.line_at)[-STARTS_MAX:]
    places = [(at, "boot") for at in (*begins, *fresh)] + [(at, "driver") for at in loads]
    dated = axis != "boot"
    return [(at, what, _time_of(log, at, axis) if dated else None) for at, what in sorted(places)]


def _time_of(log: LogText, at: int, axis: Clock) -> float | None:
    """The time of a line; of a mark that journalctl wrote between boots that of the line below."""
    line = log.line_at(at)
    for _ in range(_NEAR if log.text.startswith("-- ", at) else 0):
        below = log.text.find("\n", at) + 1
        if line.at_s is not None or not below:
            break
        at, line = below, log.line_at(below)
    return line.at_s if line.clock == axis else None


def _through_new_year(
    first: float | None, found: Sequence[Found], times: Sequence[float | None],
    starts: Sequence[_Mark], last: float | None,
) -> tuple[float | None, list[float | None], list[_Mark], float | None]:  # fmt: skip
    """All times of a log without years, each with the year that its place in the log tells."""
    places = [*(one.start for one in found), *(at for at, _, _ in starts)]
    known = [*times, *(at_s for _, _, at_s in starts)]
    order = sorted(range(len(places)), key=places.__getitem__)
    first, *told, last = through_new_year([first, *(known[at] for at in order), last])
    dated = dict(zip(order, told, strict=True))
    marks = [(at, what, dated[len(found) + number]) for number, (at, what, _) in enumerate(starts)]
    return first, [dated[at] for at in range(len(found))], marks, last


def _lines_with_host(
    log: LogText, found: Sequence[Found], starts: Sequence[_Mark]
) -> Iterator[tuple[str, float | None, bool]]:
    """The lines whose host matters, in the log's order: both ends, events, boots and loads."""
    booted = {at for at, what, _ in starts if what == "boot"}
    texts = {one.start: one.text for one in found}
    for at in sorted({*log.ends(_NEAR), *texts, *(at for at, _, _ in starts)}):
        raw = texts.get(at) or log.raw(at)
        yield raw, log.read(at, raw).at_s, at in booted
