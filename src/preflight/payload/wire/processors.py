"""Whether the processors were what limited a test: then a link is as fast as that, or faster."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

_STAT, _THREAD = Path("/proc/stat"), Path("/proc/thread-self/schedstat")
#: Of a control group, version 2 and 1: how often it had used up its quota.
_QUOTAS = (Path("/sys/fs/cgroup/cpu.stat"), Path("/sys/fs/cgroup/cpu/cpu.stat"))

Look = tuple[dict[str, tuple[int, int]], int]


def look() -> Look:
    """Ticks of each processor, of the kernel and in all, and how often a quota was used up."""
    return _ticks(), _throttled()


def busiest(before: Look, after: Look) -> float:
    """The share of the time that the kernel, in which the network is, took of the processor of
    which it took most; 1 where a quota was used up. What others compute is left out: our threads
    tell how long they waited for them."""
    if after[1] > before[1]:
        return 1.0
    shares = [0.0]
    for name, (kernel, all_) in after[0].items():
        earlier = before[0].get(name, (0, 0))
        if all_ > earlier[1]:
            shares.append((kernel - earlier[0]) / (all_ - earlier[1]))
    return round(max(shares), 3)


def had_or_awaited_s() -> float:
    """Seconds for which this thread had a processor, or was ready and waited for one (the first
    two numbers of schedstat; Documentation/scheduler/sched-stats.rst of the kernel)."""
    with contextlib.suppress(OSError, ValueError):
        had_ns, awaited_ns, _ = _THREAD.read_text(encoding="ascii").split()
        return (int(had_ns) + int(awaited_ns)) / 1e9
    return time.thread_time()


def _ticks() -> dict[str, tuple[int, int]]:
    """proc_stat(5): user nice system idle iowait irq softirq steal. What the host of a
    virtual machine took away was not there for the network either."""
    found = {}
    with contextlib.suppress(OSError, ValueError):
        for line in _STAT.read_text(encoding="ascii").splitlines():
            name, *words = line.split()
            if name.startswith("cpu") and name != "cpu":
                ticks = [int(one) for one in words[:8]]
                found[name] = (ticks[2] + sum(ticks[5:]), sum(ticks))
    return found


def _throttled() -> int:
    for path in _QUOTAS:
        with contextlib.suppress(OSError, ValueError):
            words = path.read_text(encoding="ascii").split()
            return int(words[words.index("nr_throttled") + 1])
    return 0
