"""`preflight.pyz watch`: every GPU sampled by NVML for some seconds, as JSON lines.

A head, one line per GPU with its limits and counters, one line per sample, one with the counters
at its end, and a closing line. This process makes no call of NVML: its workers do, one per GPU.
"""

from __future__ import annotations

import json
import os
import platform
import selectors
import signal
import time
from typing import Any

from . import worker
from .lines import Lines
from .worker import Worker

FORM = "watch/1"
#: Without persistence mode the driver first starts every GPU that nothing holds: with eight of them
#: that takes up to half a minute.
START_S = 30.0
#: Longer than the driver's own limit on a command to the GPU's firmware, 6 s (Xid 119), so that a
#: GPU that it gives up is told as lost rather than as silent.
SILENT_S = 10.0
#: Exit statuses.
DONE, COULD_NOT, INTERRUPTED = 0, 3, 130


class Watch:
    """One watch; `run` returns the exit status."""

    def __init__(self, seconds: float, interval_s: float, lines: Lines) -> None:
        self.seconds, self.interval_s, self.lines = seconds, interval_s, lines
        self.zero_s = time.monotonic()
        self.stopped = False
        self.samples = 0
        self.workers: list[Worker] = []

    def run(self) -> int:
        """All of it, whatever happens to a GPU; nothing is left behind that can be ended."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGUSR1, self._finish)
        try:
            return self._run()
        except BrokenPipeError:
            return INTERRUPTED
        finally:
            for each in self.workers:
                each.end()

    def _stop(self, _number: int, _frame: Any) -> None:
        self.stopped = True

    def _finish(self, _number: int, _frame: Any) -> None:
        """Its time is over sooner: the GPUs are asked a last time."""
        self.seconds = min(self.seconds, self.now())
        for each in self.workers:
            each.finish()

    def _run(self) -> int:
        self.lines.write({
            "preflight": FORM, "seconds": self.seconds, "interval_s": self.interval_s,
            "python": platform.python_version(),
        })  # fmt: skip
        found = self._count()
        if "count" not in found:
            return self._close("interrupted" if self.stopped else "no-answer", **found)
        self.lines.write({"gpus": found["count"], "driver": found["driver"]})
        self.workers = [
            Worker(lambda me: worker.watch(me, self.seconds, self.interval_s), gpu)
            for gpu in range(found["count"])
        ]
        Following(self, self.workers).follow()
        return self._close("interrupted" if self.stopped else "done")

    def _count(self) -> dict[str, Any]:
        """What NVML says at first, asked by a process that may hang."""
        one = Worker(worker.count)
        self.workers = [one]
        deadline_s = time.monotonic() + START_S
        data = b""
        while not data.endswith(b"\n") and time.monotonic() < deadline_s and not self.stopped:
            time.sleep(0.005)
            try:
                got = os.read(one.fd, 4096)
            except BlockingIOError:
                continue
            if not got:
                break
            data += got
        if data:
            one.ended_by()
        one.end()
        if not data:
            return {"error": "", "text": _silence(one, START_S), "call": one.call()}
        found: dict[str, Any] = json.loads(data)
        return found

    def _close(self, how: str, **more: Any) -> int:
        self.lines.write({"end": how, "t": self.now(), "samples": self.samples, **more})
        return {"done": DONE, "interrupted": INTERRUPTED}.get(how, COULD_NOT)

    def now(self) -> float:
        """Seconds since the samples began."""
        return round(time.monotonic() - self.zero_s, 3)


class Following:
    """Passes the workers' lines on, and tells of those that have fallen silent."""

    def __init__(self, watch: Watch, workers: list[Worker]) -> None:
        self.watch = watch
        self.open = {each.gpu: each for each in workers}
        self.parts = {each.gpu: b"" for each in workers}
        self.heard_s = {each.gpu: time.monotonic() for each in workers}
        self.starting = set(self.open)
        self.silent: set[int] = set()
        self.started = False

    def follow(self) -> None:
        """Until all have ended, or what is left has been silent for too long after the end."""
        with selectors.DefaultSelector() as selector:
            for each in self.open.values():
                selector.register(each.fd, selectors.EVENT_READ, each)
            while self.open and not self.watch.stopped and not self._over():
                for key, _ in selector.select(0.1):
                    if not self._read(key.data):
                        selector.unregister(key.fd)
                self._start()
                self._tell_of_silence()

    def _start(self) -> None:
        """Time zero is when all GPUs have answered once, or were given up."""
        if self.started or self.starting - self.silent:
            return
        self.started = True
        self.watch.zero_s = time.monotonic()
        for each in self.open.values():
            self.heard_s[each.gpu] = self.watch.zero_s
            each.start(self.watch.zero_s)

    def _read(self, each: Worker) -> bool:
        """Take what it wrote; False at its end."""
        try:
            data = os.read(each.fd, 1 << 16)
        except BlockingIOError:
            return True
        if not data:
            self._ended(each)
            return False
        self.heard_s[each.gpu] = time.monotonic()
        self.starting.discard(each.gpu)
        self.silent.discard(each.gpu)
        whole, newline, self.parts[each.gpu] = (self.parts[each.gpu] + data).rpartition(b"\n")
        if newline:
            self.watch.lines.pass_on(whole + newline)
            self.watch.samples += whole.count(b'"sm_mhz"')
        return True

    def _ended(self, each: Worker) -> None:
        del self.open[each.gpu]
        self.starting.discard(each.gpu)
        number = each.ended_by()
        if number:
            told = f"its process was ended by signal {number} in {each.call()}"
            self.watch.lines.write({"gpu": each.gpu, "t": self.watch.now(), "failed": told})

    def _patience_s(self, gpu: int) -> float:
        return START_S if gpu in self.starting else SILENT_S + self.watch.interval_s

    def _tell_of_silence(self) -> None:
        now_s = time.monotonic()
        for gpu, each in self.open.items():
            quiet_s = now_s - self.heard_s[gpu]
            waits = not self.started and gpu not in self.starting  # for the others
            if gpu in self.silent or waits or quiet_s < self._patience_s(gpu):
                continue
            self.silent.add(gpu)
            self.watch.lines.write({
                "gpu": gpu, "t": self.watch.now(), "silent_s": round(quiet_s, 1),
                "call": each.call(), "state": each.state(),
            })  # fmt: skip

    def _over(self) -> bool:
        """Whether the time is over and nobody is left from whom something can be expected."""
        if not self.started or self.watch.now() < self.watch.seconds:
            return False
        return all(gpu in self.silent for gpu in self.open)


def _silence(each: Worker, seconds: float) -> str:
    state = " (uninterruptible sleep)" if each.state() == "D" else ""
    return f"no answer of {each.call()} within {seconds:g} s{state}"
