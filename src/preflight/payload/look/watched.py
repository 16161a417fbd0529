"""One process over the look: its counters at both ends, its states between them."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

from .proc import cpu_s, pairs_of, processor_limit, run_wait_s, stat_of, text_of
from .tree import Member

#: Threads of a process beyond these are not told.
_THREADS = 8


class Watched:
    """`look` again and again, `told` at the end."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.path = f"/proc/{member.pid}"
        self.states: Counter[str] = Counter()
        self.wchans: Counter[str] = Counter()
        self.first, self.first_s = self._counters(), time.monotonic()
        self.threads = self._threads()
        self.ended = "" if self.first else "it ended before the look"

    def look(self) -> None:
        """One look at its state; where it sleeps in the kernel where it waits uninterruptibly."""
        _, fields = stat_of(f"{self.path}/stat")
        if not fields or fields[0] in "ZX":
            self.ended = self.ended or "it ended while it was looked at"
            return
        self.states[fields[0]] += 1
        if fields[0] == "D":
            self.wchans[text_of(f"{self.path}/wchan")] += 1

    def told(self) -> dict[str, Any]:
        """Its line: shares in percent of the look, bytes, seconds."""
        m = self.member
        line: dict[str, Any] = {
            "kind": "process", "pid": m.pid, "parent": m.of, "name": m.name, "role": m.role,
            "command": m.command, "rank": m.rank, "local_rank": m.local_rank, "trains": m.trains,
            "states": dict(self.states), "looks": sum(self.states.values()), "ended": self.ended,
            "wchan": next((name for name, _ in self.wchans.most_common(1)), ""),
        }  # fmt: skip
        last, seconds = self._counters(), time.monotonic() - self.first_s
        if not last or not self.first or self.ended:
            return {**line, "ended": self.ended or "it ended while it was looked at"}
        grown = {name: last[name] - value for name, value in self.first.items() if name in last}
        line.update(seconds=round(seconds, 3), last=last, grown=grown)
        return {**line, "threads": self._loads(seconds)}

    def _counters(self) -> dict[str, float]:
        _, fields = stat_of(f"{self.path}/stat")
        if not fields or fields[0] in "ZX":
            return {}
        io, status = pairs_of(f"{self.path}/io"), pairs_of(f"{self.path}/status")
        found: dict[str, float] = {
            "cpu_s": cpu_s(fields), "major_faults": int(fields[9]),
            "run_wait_s": run_wait_s(self.member.pid),
        }  # fmt: skip
        found.update({name: io[name] for name in ("rchar", "wchar", "read_bytes", "write_bytes")
                      if name in io})  # fmt: skip
        named = (("VmRSS", "rss_bytes"), ("VmSwap", "swapped_bytes"),
                 ("voluntary_ctxt_switches", "waits"))  # fmt: skip
        found.update({name: status[key] for key, name in named if key in status})
        return {**found, **processor_limit(self.member.pid)}

    def _threads(self) -> dict[int, tuple[str, float]]:
        if self.member.role == "other":
            return {}
        found = {}
        try:
            names = os.listdir(f"{self.path}/task")  # noqa: PTH208
        except OSError:
            names = []
        for tid in names:
            name, fields = stat_of(f"{self.path}/task/{tid}/stat")
            if fields:
                found[int(tid)] = name, cpu_s(fields)
        return found

    def _loads(self, seconds: float) -> list[dict[str, Any]]:
        """The busiest threads, and the first whatever it does."""
        loads: list[dict[str, Any]] = [
            {"tid": tid, "name": name,
             "cpu_percent": round(100 * (cpu - self.threads.get(tid, (name, cpu))[1]) / seconds, 1)}
            for tid, (name, cpu) in self._threads().items()
        ]  # fmt: skip
        loads.sort(key=lambda one: (one["tid"] != self.member.pid, -one["cpu_percent"]))
        return loads[:_THREADS]
