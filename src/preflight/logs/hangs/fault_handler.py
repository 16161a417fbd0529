"""What Python's faulthandler writes: at a fatal signal, after a time, or when it is asked."""

from __future__ import annotations

import calendar
import re
import time
from typing import Any

from preflight.facts.hangs import Stack, StackProcess
from preflight.logs.hangs.py_spy import MOST_FRAMES, MOST_THREADS

_FATAL = re.compile(r".{0,80}?Fatal Python error: (.{1,200})$")
_TIMEOUT = re.compile(r"Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$")
_THREAD = re.compile(
    r"(?P<now>Current thread|Thread) (?P<id>0x[0-9a-f]{1,16})(?: \[(?P<name>[^\]]{0,80})\])?"
    r" \(most recent call first\):"
)
_FRAME = re.compile(r'  File "(.{0,1000}?)", line (\d{1,9}|\?\?\?) in (.{1,300})$')
_WITHIN = re.compile(r"  (?:\.\.\.|<.*>|Binary file .*)$|Extension modules: |$")


#: What preflight.guard writes behind the stacks, with the memory: when it was.
_WHEN = re.compile(r"== (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z, ")


class FaultText:
    """The lines of one text in turn: `take` is false for one that is no part of a stack."""

    def __init__(self, source: str) -> None:
        self.source, self.frames, self.count = source, 0, 0
        self._found: list[StackProcess] = []
        self._threads: list[dict[str, Any]] = []
        self._seen: set[str] = set()
        self._fatal, self._line, self._open = "", 0, False
        self._beside: tuple[int | None, str] = (None, "")
        self._time_s: float | None = None

    def take(self, number: int, line: str, rank: int | None, host: str) -> bool:
        """One line; `rank` and `host` are what stands beside it."""
        if self._open and (frame := _FRAME.match(line)):
            self._add(f"{frame[3]} ({frame[1]}:{frame[2]})")
        elif "hread 0x" in line and (thread := _THREAD.match(line)):
            # A thread that comes again, or a second that is the current one: another look.
            now = "now" if thread["now"].startswith("Current") else thread["id"]
            if thread["id"] in self._seen or now in self._seen:
                self._end()
            self._line, self._beside = self._line or number, (rank, host)
            self._seen |= {thread["id"], now}
            self._threads.append({"line": number, "id": thread["id"], "name": thread["name"] or "",
                                  "frames": []})  # fmt: skip
            self._open = True
        elif "Fatal Python error: " in line and (fatal := _FATAL.match(line)):
            self._end()
            self._fatal, self._line = fatal[1], number
        elif line.startswith("Timeout (") and _TIMEOUT.match(line):
            self._end()
        elif line.startswith("== ") and (when := _WHEN.match(line)):
            self._time_s = _seconds(when[1])
            self._end()
        else:
            within = self._open and _WITHIN.match(line) is not None
            self._open = within
            return within
        return True

    def close(self) -> None:
        """What follows is of something else."""
        self._end()

    def done(self) -> list[StackProcess]:
        """All that was found."""
        self._end()
        return self._found

    def _add(self, frame: str) -> None:
        frames = self._threads[-1]["frames"]
        if len(frames) < MOST_FRAMES:
            frames.append(frame)
            self.frames += 1

    def _end(self) -> None:
        if self._threads:
            self.count += 1
            self._found.append(self._process())
        self._threads, self._seen = [], set()
        self._fatal, self._line, self._open = "", 0, False
        self._time_s = None

    def _process(self) -> StackProcess:
        rank, host = self._beside
        main = self._main()
        kept = sorted({*range(min(len(self._threads), MOST_THREADS)), main})
        return StackProcess(
            self._line, tuple(
                Stack(self.source, one["line"], rank, host, None, one["name"] or one["id"], "",
                      tuple(one["frames"]), main=at == main)
                for at in kept for one in (self._threads[at],)),
            rank=rank, host=host, mark=self._threads[main]["id"], fatal=self._fatal,
            time_s=self._time_s,
        )  # fmt: skip

    def _main(self) -> int:
        """The first thread of the process is told last, and begins in a module."""
        for at, one in enumerate(self._threads):
            if any(frame.startswith("<module> (") for frame in one["frames"][-2:]):
                return at
        others = [
            at for at, one in enumerate(self._threads)
            if not any(frame.startswith("_bootstrap (") for frame in one["frames"][-1:])
        ]  # fmt: skip
        return others[-1] if others else len(self._threads) - 1


def _seconds(text: str) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S")))
    except (ValueError, OverflowError):
        return None
