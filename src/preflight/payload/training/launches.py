"""What a step asks of its device, by torch's profiler over one step more: kernels that are launched
there and how long one of them runs, or operators on processors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from . import loop

#: As it stands in the names of all calls that launch kernels, of CUDA and of HIP.
_LAUNCH = "LaunchKernel"


def counted(run: loop.Run, state: loop.State) -> dict[str, Any]:
    """Train two steps more, and count what the second does. Empty where the profiler sees nothing.
    Batches come from another process, so that reading them is not counted."""
    on = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if run.place.gpu else [])]
    run = replace(run, settings=replace(run.settings, workers=1))
    steps = loop.steps(run, state, state.step + 2)
    next(steps).read()
    seen = profile(activities=on)
    begun = _begun(seen)
    for step in steps:  # the other ranks wait for it, counted or not
        step.read()
    if not begun:
        return {}
    seen.stop()
    events = list(seen.events() or ())
    return on_gpu(events) if run.place.gpu else on_processors(events)


def _begun(seen: profile) -> bool:
    """Not where somebody else's profiler has the device."""
    try:
        seen.start()
    except RuntimeError:
        return False
    return True


def on_gpu(events: list[Any]) -> dict[str, Any]:
    """Launches, and the seconds in which something ran there."""
    here = [one for one in events if one.device_type == DeviceType.CPU]
    # A range that is named here is drawn there too, over all kernels of it and what is between.
    named = {one.name for one in here}
    ran = [one.time_range for one in events
           if one.device_type != DeviceType.CPU and one.name not in named]  # fmt: skip
    launches = sum(_LAUNCH in one.name for one in here)
    if not ran or not launches:
        return {}
    return {"launches": launches, "busy_s": _covered((one.start, one.end) for one in ran) / 1e6}


def on_processors(events: list[Any]) -> dict[str, Any]:
    """Operators that no other operator has called."""
    count = sum(
        _is_operator(one) and not (one.cpu_parent and _is_operator(one.cpu_parent))
        for one in events
    )
    return {"operators": count} if count else {}


def _is_operator(event: Any) -> bool:
    return str(event.name).startswith("aten::")


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of them lasts: kernels of several streams run at once."""
    covered, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered
