"""The GPUs of the job over the look, by NVML, in a process that may hang in the driver."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pynvml

from .. import nvml
from ..worker import Worker

_START_S = 3.0


class Gpus:
    """A process that samples every GPU until it is finished; its lines are read at the end."""

    def __init__(self, seconds: float) -> None:
        self.worker = Worker(lambda me: _sample(me, seconds))
        self.data = b""

    def holders(self) -> tuple[set[int], str]:
        """PIDs that hold a GPU, and why they are not known."""
        until_s = time.monotonic() + _START_S
        while b"\n" not in self.data and time.monotonic() < until_s and self._read():
            time.sleep(0.01)
        first = self.data.split(b"\n")[0]
        if b"\n" not in self.data:
            return set(), f"no answer of {self.worker.call() or 'the driver'}"
        told = json.loads(first)
        if "error" in told or "failed" in told:
            return set(), str(told.get("error") or told["failed"])
        return {pid for one in told["gpus"] for pid in one["pids"]}, ""

    def lines(self, wait_s: float = 2.0) -> list[dict[str, Any]]:
        """All that it told."""
        self.worker.finish()
        until_s = time.monotonic() + wait_s
        while self._read() and time.monotonic() < until_s:
            time.sleep(0.02)
        self.worker.end()
        return [json.loads(one) for one in self.data.split(b"\n")[:-1] if one]

    def _read(self) -> bool:
        try:
            data = os.read(self.worker.fd, 1 << 16)
        except BlockingIOError:
            return True
        self.data += data
        return bool(data)


def _sample(worker: Worker, seconds: float) -> None:
    try:
        worker.now("nvmlInit_v2")
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        worker.tell({"error": nvml.error_name(error)})
        return
    worker.tell({"gpus": [{"index": n, "pids": _pids(one)} for n, one in enumerate(handles)]})
    samples: list[list[dict[str, Any]]] = [[] for _ in handles]
    began_s, cost_s = time.monotonic(), 0.0
    while time.monotonic() < began_s + seconds:
        at_s = time.monotonic()
        for n, handle in enumerate(handles):
            samples[n].append(_asked(worker, handle))
        cost_s = time.monotonic() - at_s
        if not worker.sleep_until(at_s + max(0.5, 20 * cost_s)):
            break
    for n, handle in enumerate(handles):
        card, _ = nvml.ask(nvml.CARD[:2], handle, worker.now)
        worker.tell({"kind": "gpu", "index": n, "pids": _pids(handle), **card,
                     "samples": samples[n][-40:]})  # fmt: skip


_NAMES = ("reasons", "sm_mhz", "power_w", "power_limit_w", "gpu_c", "utilization_percent",
          "memory_utilization_percent", "pcie_tx_kbps", "pcie_rx_kbps")  # fmt: skip
_CALLS = tuple(one for one in nvml.SAMPLE if one[0] in _NAMES)


def _asked(worker: Worker, handle: Any) -> dict[str, Any]:
    try:
        values, _ = nvml.ask(_CALLS, handle, worker.now)
    except nvml.LostError as lost:
        return {"lost": lost.args[0]}
    return values


def _pids(handle: Any) -> list[int]:
    try:
        return [one.pid for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    except (pynvml.NVMLError, AttributeError):
        return []
