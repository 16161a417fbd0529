"""A stress run: every device in a process of its own, each under its own limit.

One that is wedged in its driver is named and left behind; the others go on. All of them work at the
same time, as they do when they train: power and heat are shared. Beside them NVML is asked for
clocks, power and temperature by processes of their own (payload/watch.py).
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import torch

from ..holdups import state_of
from ..host_memory import limit_bytes, oom_kills
from ..ranks import Rank, Tell
from ..training import devices as gpus_of
from .attention import shape_of
from .beside import Beside
from .inject import FAULTS
from .pairs import told_pairs
from .plan import Plan, PlanError
from .work import SECONDS, seconds_of, work

#: Until a process has said its first word: CUDA starts, the driver wakes.
_START_S = 90.0
#: The process that copies between all GPUs.
_ALL = -1
#: A device that waits for its turn says nothing.
_WAITS = "waits"


def harness(plan: Plan, tell: Tell) -> None:
    """The whole run. Whoever interrupts it gets its processes ended."""
    began = time.monotonic()
    torch.set_num_threads(1)  # devices are forked: no thread of this process may hold anything
    gpus: list[dict[str, Any]] = []
    asked = plan.devices
    try:
        plan, gpus = settled(plan)
    except PlanError as error:
        tell({"preflight": "stress/1", "kind": "cannot", "text": str(error)})
        return
    tell({"preflight": "stress/1", "kind": "begin", **_about(plan, gpus), "asked": asked})
    beside = Beside(seconds_of(plan) + plan.soak_s) if plan.device == "cuda" else None
    try:
        sound = _told(Run([of_device(plan, number) for number in range(plan.devices)]), tell)
        if plan.device == "cuda" and len(sound) > 1:
            _told(Run([Process(_ALL, lambda tell_it, _: told_pairs(sound, tell_it))]), tell)
    finally:
        if beside:
            beside.end(tell)
    tell({"kind": "end", "elapsed_s": round(time.monotonic() - began, 3)})


def _told(run: Run, tell: Tell) -> list[int]:
    """The devices that came to their end."""
    try:
        for line in run.lines():
            tell(line)
    finally:
        run.end()
    return [one.number for one in run.processes if one.status == 0]


def settled(plan: Plan) -> tuple[Plan, list[dict[str, Any]]]:
    """The plan with what it left open decided by what is here, and the GPUs. Raises PlanError."""
    gpus = gpus_of.found() if plan.device != "cpu" else []
    device = plan.device or ("cuda" if gpus else "cpu")
    if device not in SECONDS:
        raise PlanError(f"device: expected {', '.join(SECONDS)}, got {device}")
    unknown = sorted(set(plan.inject) - set(FAULTS))
    if unknown:
        raise PlanError(f"no fault {unknown[0]}: there are {', '.join(FAULTS)}")
    shape_of(plan.attention, device)
    there = len(gpus) if device == "cuda" else len(os.sched_getaffinity(0))
    count = plan.devices or (there if device == "cuda" else 1)
    if count > there or not there:
        raise PlanError(f"{count} devices are asked for, and torch finds {there}")
    for number, gpu in enumerate(gpus[:count]):
        if not gpu["built"]:
            raise PlanError(f"this torch ({torch.__version__}) is not built for GPU {number}, "
                            f"{gpu['name']} (compute capability {gpu['capability']})")  # fmt: skip
    absent = [name for name, number in plan.inject.items() if number >= count]
    if absent:
        raise PlanError(f"{absent[0]}:{plan.inject[absent[0]]}: the last device is {count - 1}")
    return replace(plan, device=device, devices=count), gpus


def _about(plan: Plan, gpus: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "plan": asdict(plan), "torch": torch.__version__, "cuda": torch.version.cuda,
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "python": sys.version.split()[0], "cores": len(os.sched_getaffinity(0)), "gpus": gpus,
    }  # fmt: skip


class Process(Rank):
    """The process of one device, as its parent sees it."""

    def __init__(self, number: int, work: Callable[[Tell, Callable[[], None]], None]) -> None:
        self.doing, self.limit_s, self.waits = "start", _START_S, False
        reading, self._turn = os.pipe()

        def alone() -> None:
            os.read(reading, 1)

        super().__init__(number, {}, lambda tell: work(tell, alone))
        os.close(reading)

    def take_turn(self) -> None:
        """It may go on, and be alone in what it does."""
        self.waits, self.heard_s = False, time.monotonic()
        with contextlib.suppress(OSError):
            os.write(self._turn, b"1")

    def told(self) -> Iterator[dict[str, Any]]:
        """Its lines but those for us."""
        for line in self.lines():
            if line["kind"] == "doing":
                self.doing, self.limit_s = line["name"], line["limit_s"]
                continue
            if line["kind"] == _WAITS:
                self.waits = True
                continue
            line["device"] = line.pop("rank")
            yield line

    def wedged(self) -> bool:
        return not self.waits and time.monotonic() - self.heard_s > self.limit_s

    def close(self) -> None:
        super().close()
        with contextlib.suppress(OSError):
            os.close(self._turn)


def of_device(plan: Plan, number: int) -> Process:
    """A device, with its share of the cores."""
    threads = max(1, len(os.sched_getaffinity(0)) // plan.devices)
    return Process(number, lambda tell, alone: work(plan, number, threads, alone, tell))


class Run:
    """Processes, from their start until the last has ended or was given up."""

    def __init__(self, processes: list[Process]) -> None:
        self.processes, self.running = processes, list(processes)
        self.alone: Process | None = None
        self._oom_kills = oom_kills()

    def lines(self) -> Iterator[dict[str, Any]]:
        with selectors.DefaultSelector() as selector:
            for one in self.running:
                selector.register(one.fd, selectors.EVENT_READ, one)
            while self.running:
                for key, _ in selector.select(0.05):
                    yield from key.data.told()
                    if key.data.fd < 0:
                        selector.unregister(key.fd)
                for one in [each for each in self.running if each.ended() or each.wedged()]:
                    self.running.remove(one)
                    if one.fd >= 0:
                        selector.unregister(one.fd)
                        yield from one.told()
                    yield from self._end_of(one)
                    one.close()
                self._next()

    def _next(self) -> None:
        """The turn goes to the first that waits, once no other has work to do."""
        if self.alone in self.running or not all(one.waits for one in self.running):
            return
        self.alone = self.running[0] if self.running else None
        if self.alone:
            self.alone.take_turn()

    def end(self) -> None:
        """Kill what is left; never wait for one that cannot be killed."""
        for one in self.running:
            one.kill()
            one.close()

    def _end_of(self, one: Process) -> Iterator[dict[str, Any]]:
        about = {"device": one.number, "doing": one.doing}
        if one.status is None:
            state = state_of(one.pid)
            one.kill()
            yield {"kind": "wedged", **about, "state": state, "after_s": one.limit_s}
        elif one.status:
            killed = oom_kills() - self._oom_kills if one.status == -signal.SIGKILL else 0
            yield {"kind": "died", **about, "status": one.status, "oom_kills": killed,
                   "limit_bytes": limit_bytes()}  # fmt: skip
