"""An episode of the kernel log in words: what, how often, when, by whom."""

from __future__ import annotations

from datetime import datetime, timedelta

from preflight.facts.kernel import KernelLog
from preflight.judge.kernel_log.episodes import Episode
from preflight.judge.kernel_log.rows import Row
from preflight.judge.kernel_log.seen import Seen, ago

#: A wall time before 1990 comes from a log that writes no year (see probes/kernel_log/lines.py):
#: it can be compared with the log's own times and with no others.
YEARS_KNOWN_S = 20 * 365 * 86400.0

_TEXT_MAX = 200
_AFTER, _UTC = " after boot", " UTC"


def expected(row: Row) -> str:
    """What would be in order, in a few words."""
    if row.status == "PASS":
        return "any number"
    if row.at_most:
        return f"at most {row.at_most} in {row.window_h:g} h"
    if row.echo_of_s:
        return "none but the echo of another Xid"
    return "none" if row.unless_xid is None else f"none without an Xid {row.unless_xid}"


def reason(log: KernelLog, episode: Episode) -> str:
    """What was seen, how often, when, by whom, in the kernel's words; then what it means."""
    count, first = episode.count(), episode.told[0].seen
    often = "once" if count == 1 else f"{count} times"
    often = f"at least {often}" if log.left_out and count > 1 else often
    head = f"{first.label} {often}".strip() + _when(log, episode) + _by(episode)
    text = first.text if len(first.text) <= _TEXT_MAX else first.text[:_TEXT_MAX] + "..."
    links = sorted({one.seen.link for one in episode.judged if one.seen.link is not None})
    told = [f"links {', '.join(map(str, links))}"] if len(links) > 1 else []
    return "; ".join((f"{head}: {text}", *told, *episode.notes))


def _by(episode: Episode) -> str:
    """The program of the first event and, where it is another process, of the last."""
    first, last = episode.judged[0].seen, episode.judged[-1].seen
    word = "by" if len(episode.judged) == 1 else "first by"
    told = f", {word} {_process(first)}" if first.process else ""
    if last.process and (last.process, last.pid) != (first.process, first.pid):
        told += f", last by {_process(last)}"
    return told


def _process(seen: Seen) -> str:
    told = f"{seen.process} (pid {seen.pid})" if seen.pid is not None else seen.process
    return f"{told} as {seen.named_by} tells" if seen.named_by else told


def _when(log: KernelLog, episode: Episode) -> str:
    times = [one.seen.at_s for one in episode.judged]
    known = [at_s for at_s in times if at_s is not None]
    if not known:
        return ", at an unknown time and so counted as new"
    begin, end = _time(log, known[0]), _time(log, known[-1])
    for ending in (_AFTER, _UTC):
        if begin.endswith(ending) and end.endswith(ending) and begin != end:
            begin = begin.removesuffix(ending)
    more = ", some at an unknown time" if len(known) < len(times) else ""
    return (f" at {begin}" if begin == end else f" from {begin} to {end}") + more


def _time(log: KernelLog, at_s: float) -> str:
    if log.clock == "boot" and at_s < 0:
        return f"{ago(-at_s)} or more before the boot"
    if log.clock == "boot":
        return (f"{at_s:.1f} s" if at_s < 3600 else ago(at_s)) + _AFTER
    form = "%b %d %H:%M:%S" if at_s < YEARS_KNOWN_S else "%Y-%m-%d %H:%M:%S"
    try:
        told = (datetime(1970, 1, 1) + timedelta(seconds=at_s)).strftime(form)
    except OverflowError:
        return f"{at_s:.0f} s"
    return f"{told}{_UTC}" if log.utc else told
