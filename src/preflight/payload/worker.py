"""One GPU, watched by a process of its own: it may hang in the driver and hold up nobody."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pynvml

from . import nvml
from .holdups import state_of
from .parent import die_with_launcher

_CALL_BYTES = 64


class Worker:
    """A forked process that writes lines into a pipe; as its parent sees it."""

    def __init__(self, work: Callable[[Worker], None], gpu: int = -1) -> None:
        self.gpu = gpu
        self.zero_s = 0.0
        self._call = mmap.mmap(-1, _CALL_BYTES)  # shared: what the process is doing just now
        self.fd, writing = os.pipe()
        reading, self._go = os.pipe()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid:
            os.close(writing)
            os.close(reading)
            os.set_blocking(self.fd, False)
            return
        self._start, self._out = reading, writing
        status = 1
        try:
            _close_all_but(reading, writing)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            die_with_launcher(signal.SIGKILL)
            work(self)
            status = 0
        except BrokenPipeError:
            pass
        except Exception as error:  # noqa: BLE001 - told to the parent, whatever it is
            self.tell({"failed": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(status)

    # In the process

    def tell(self, line: dict[str, Any]) -> None:
        """Put one line into the pipe; a line is far shorter than what a pipe takes at once."""
        head = {"gpu": self.gpu} if self.gpu >= 0 else {}
        os.write(self._out, json.dumps({**head, **line}, separators=(",", ":")).encode() + b"\n")

    def now(self, call: str) -> None:
        """Note the call that is about to be made: the parent reads it if it does not return."""
        self._call[:] = call.encode()[:_CALL_BYTES].ljust(_CALL_BYTES, b"\0")

    def wait_for_start(self) -> None:
        """Sleep until the parent says that all are ready: that is the common time zero."""
        told = os.read(self._start, 64)
        if not told:
            raise BrokenPipeError
        self.zero_s = float(told)

    def sleep_until(self, moment_s: float) -> bool:
        """Until then, by CLOCK_MONOTONIC; False as soon as the parent says that it is enough."""
        return not select.select([self._start], [], [], max(moment_s - time.monotonic(), 0))[0]

    def at_s(self) -> float:
        """Seconds since the start; 0 before."""
        return round(time.monotonic() - self.zero_s, 3) if self.zero_s else 0.0

    # In the parent

    def start(self, zero_s: float) -> None:
        """Let it begin; `zero_s` is CLOCK_MONOTONIC, the same in all processes."""
        with contextlib.suppress(OSError):
            os.write(self._go, repr(zero_s).encode())

    def finish(self) -> None:
        """Let it look a last time and end."""
        with contextlib.suppress(OSError):
            os.write(self._go, b"end")

    def call(self) -> str:
        """The call in which it is."""
        return self._call[:].rstrip(b"\0").decode()

    def state(self) -> str:
        """The kernel's letter for its state."""
        return state_of(self.pid)

    def ended_by(self) -> int:
        """The signal that ended it, 0 where none did: one that has closed its pipe is gone soon."""
        for _ in range(20):
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                return 0
            if pid:
                return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            time.sleep(0.01)
        return 0

    def end(self) -> None:
        """Kill it, and never wait: one in uninterruptible sleep does not end."""
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, os.WNOHANG)
        except (OSError, ChildProcessError):
            pass


def _close_all_but(*kept: int) -> None:
    """Whoever hangs for ever must not hold open what somebody waits to see closed."""
    first, second = sorted(kept)
    os.closerange(3, first)
    os.closerange(first + 1, second)
    os.closerange(second + 1, second + 1024)


def count(worker: Worker) -> None:
    """How many GPUs there are, and whose driver it is."""
    try:
        worker.now("nvmlInit_v2")
        pynvml.nvmlInit()
        worker.now("nvmlDeviceGetCount_v2")
        number = pynvml.nvmlDeviceGetCount()
        driver = pynvml.nvmlSystemGetDriverVersion()
    except pynvml.NVMLError as error:
        worker.tell({"error": nvml.error_name(error), "text": str(error), "call": worker.call()})
        return
    worker.tell({"count": number, "driver": driver})


def watch(worker: Worker, seconds: float, interval_s: float) -> None:
    """Ask one GPU until `seconds` have passed; it ends sooner where the GPU is lost."""
    try:
        worker.now("nvmlInit_v2")
        pynvml.nvmlInit()
        worker.now("nvmlDeviceGetHandleByIndex_v2")
        handle = pynvml.nvmlDeviceGetHandleByIndex(worker.gpu)
        bus_id = pynvml.nvmlDeviceGetPciInfo(handle).busId
        card, errors = nvml.ask(nvml.CARD, handle, worker.now)
        counters, more = nvml.ask(nvml.COUNTERS, handle, worker.now)
        told = {"bus_id": bus_id, "card": card, "counters": counters, "errors": {**errors, **more}}
        worker.tell(told)
        _sample(worker, handle, seconds, interval_s)
        counters, errors = nvml.ask(nvml.COUNTERS, handle, worker.now)
        worker.tell({"t": worker.at_s(), "last": True, "counters": counters, "errors": errors})
    except nvml.LostError as lost:
        worker.tell({"t": worker.at_s(), "lost": lost.args[0], "call": lost.args[1]})
    except pynvml.NVMLError as error:
        worker.tell({"t": worker.at_s(), "lost": nvml.error_name(error), "call": worker.call()})


def _sample(worker: Worker, handle: Any, seconds: float, interval_s: float) -> None:
    """All samples: the first at time zero, the last at its end."""
    worker.wait_for_start()
    before: dict[str, str] = {}
    for number in range(int(seconds / interval_s + 1e-6) + 1):
        worker.now("sleep")
        if not worker.sleep_until(worker.zero_s + number * interval_s):
            return
        at_s = worker.at_s()
        values, errors = nvml.ask(nvml.SAMPLE, handle, worker.now)
        line: dict[str, Any] = {"t": at_s}
        if values["reasons"] is not None:
            line["throttle"] = nvml.names_of(values["reasons"])
        line.update(values)
        fresh = {name: error for name, error in errors.items() if before.get(name) != error}
        if fresh:
            line["errors"] = fresh
        before = errors
        worker.tell(line)
