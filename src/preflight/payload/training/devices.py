"""The GPUs that torch finds, and what they do beside the steps."""

from __future__ import annotations

import json
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from ..group.join import Place
from ..ranks import Tell

#: A driver starts each GPU that nothing holds.
_FOUND_S = 60.0
_SAMPLE_S = 1.0


def found() -> list[dict[str, Any]]:
    """Name, compute capability and architecture of each GPU, and whether this torch is built for
    it. Asked in a process of its own: ranks cannot be forked from one that has started CUDA."""
    if torch.version.cuda is None or not torch.cuda.device_count():
        return []
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(_devices()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    told = b""
    until_s = time.monotonic() + _FOUND_S
    while select.select([reading], [], [], max(0.0, until_s - time.monotonic()))[0]:
        data = os.read(reading, 1 << 16)
        if not data:
            break
        told += data
    os.close(reading)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return json.loads(told) if told else []


def _devices() -> list[dict[str, Any]]:
    built = torch.cuda.get_arch_list()
    free = _free()
    devices = []
    for number in range(torch.cuda.device_count()):
        one = torch.cuda.get_device_properties(number)
        capability = (one.major, one.minor)
        devices.append({
            "name": one.name, "capability": f"{one.major}.{one.minor}",
            "memory_bytes": one.total_memory,
            "free_bytes": free.get(str(getattr(one, "uuid", "")).removeprefix("GPU-")),
            "built": _runs(capability, built),
        })  # fmt: skip
    return devices


def _free() -> dict[str, int]:
    """Free memory by UUID: NVML tells it without a context on each GPU."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return {
            str(pynvml.nvmlDeviceGetUUID(one)).removeprefix("GPU-"):
                int(pynvml.nvmlDeviceGetMemoryInfo(one).free)
            for one in handles
        }  # fmt: skip
    except Exception:  # noqa: BLE001 - of a GPU that does not tell it all memory counts as free
        return {}


def _runs(capability: tuple[int, int], built: list[str]) -> bool:
    """Whether code for one of the architectures runs: binaries within a major version, PTX on all
    later ones (CUDA C++ Programming Guide, application compatibility)."""
    for one in built:
        kind, _, digits = one.partition("_")
        number = "".join(filter(str.isdigit, digits))
        major, minor = int(number[:-1]), int(number[-1])
        same = major == capability[0] and minor <= capability[1]
        if same if kind == "sm" else (major, minor) <= capability:
            return True
    return not built


class Sampler:
    """Tells power, clock and activity of this rank's GPU every second, by NVML, in a thread."""

    def __init__(self, place: Place, tell: Tell) -> None:
        self._stop = threading.Event()
        if place.gpu:
            args = (place, tell)
            threading.Thread(target=self._run, args=args, daemon=True).start()

    def close(self) -> None:
        self._stop.set()

    def _run(self, place: Place, tell: Tell) -> None:
        try:
            import pynvml

            pynvml.nvmlInit()
            handle = _handle(pynvml, place)
        except Exception:  # noqa: BLE001 - training goes on without it, and its absence shows
            return
        began = time.monotonic()
        while not self._stop.wait(_SAMPLE_S):
            told = {name: _asked(ask, handle) for name, ask in _asks(pynvml).items()}
            used = told.pop("used", None)
            tell({"kind": "device", "at_s": round(time.monotonic() - began, 3),
                  "local_rank": place.local_rank, **told,
                  "sm_percent": getattr(used, "gpu", None),
                  "memory_percent": getattr(used, "memory", None)})  # fmt: skip


def _handle(pynvml: Any, place: Place) -> Any:
    """By its UUID: CUDA_VISIBLE_DEVICES gives torch numbers of its own."""
    uuid = str(torch.cuda.get_device_properties(place.device).uuid)
    return pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")


def _asks(pynvml: Any) -> dict[str, Callable[[Any], Any]]:
    return {
        "power_w": lambda one: round(pynvml.nvmlDeviceGetPowerUsage(one) / 1000.0, 1),
        "sm_clock_mhz": lambda one: pynvml.nvmlDeviceGetClockInfo(one, pynvml.NVML_CLOCK_SM),
        "used": pynvml.nvmlDeviceGetUtilizationRates,
    }


def _asked(ask: Callable[[Any], Any], handle: Any) -> Any:
    try:
        return ask(handle)
    except Exception:  # noqa: BLE001 - what this GPU does not tell is null
        return None
