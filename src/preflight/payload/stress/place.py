"""One device, as its process sees it, and how long something takes on it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

#: Runs of one thing: at least, and at most; and those before them, which are not counted.
_LEAST, _MOST, _WARM = 5, 400, 2


@dataclass(frozen=True)
class Place:
    """`number` among the devices of this run."""

    number: int
    device: torch.device
    threads: int = 1  # on a CPU

    @property
    def gpu(self) -> bool:
        return str(self.device.type) == "cuda"

    def wait(self) -> None:
        """Until the device has done all that it was given."""
        if self.gpu:
            torch.cuda.synchronize(self.device)

    def give_back(self) -> None:
        """What no test holds any more goes back to the device: the next takes all it can get."""
        if self.gpu:
            torch.cuda.empty_cache()

    def generator(self, seed: int) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(seed)


def near(device: torch.device) -> None:
    """Run on the cores beside the GPU: copies to it start in memory that is near, too."""
    one = torch.cuda.get_device_properties(device)
    where = (getattr(one, name, None) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id"))
    domain, bus, slot = where
    if bus is None:  # torch before 2.4 does not tell
        return
    path = f"/sys/bus/pci/devices/{domain:04x}:{bus:02x}:{slot:02x}.0/local_cpulist"
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            cores = set(_cores(file.read())) & os.sched_getaffinity(0)
    except OSError:
        return
    if cores:
        os.sched_setaffinity(0, cores)


def _cores(text: str) -> Iterator[int]:
    for piece in text.strip().split(","):
        first, _, last = piece.partition("-")
        if first.isdigit():
            yield from range(int(first), int(last or first) + 1)


def timed(place: Place, work: Callable[[], Any], budget_s: float) -> list[float]:
    """Seconds of each of some runs, by the device's own clock where it has one. At least five,
    however long they take; as many more as fit into the budget."""
    for _ in range(_WARM):
        work()
    place.wait()
    began = time.perf_counter()
    work()
    place.wait()
    one_s = max(time.perf_counter() - began, 1e-7)
    runs = min(max(int(budget_s / one_s), _LEAST), _MOST)
    return _by_events(place, work, runs) if place.gpu else _by_clock(work, runs)


def _by_events(place: Place, work: Callable[[], Any], runs: int) -> list[float]:
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    place.wait()
    return [one.elapsed_time(two) / 1e3 for one, two in zip(marks, marks[1:])]  # noqa: B905, RUF007


def _by_clock(work: Callable[[], Any], runs: int) -> list[float]:
    marks = [time.perf_counter()]
    for _ in range(runs):
        work()
        marks.append(time.perf_counter())
    return [two - one for one, two in zip(marks, marks[1:])]  # noqa: B905, RUF007


def spread(amount: float, seconds: list[float]) -> dict[str, Any]:
    """`amount` by seconds: how often, the median, and the 10th and 90th percentile."""
    rates = sorted(amount / max(one, 1e-12) for one in seconds)
    last = len(rates) - 1
    return {
        "n": len(rates), "median": round(statistics.median(rates)),
        "low": round(rates[round(0.1 * last)]), "high": round(rates[round(0.9 * last)]),
    }  # fmt: skip
