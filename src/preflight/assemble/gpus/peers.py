"""What a GPU has more of than the GPUs beside it, where a counter's beginning is not known."""

from __future__ import annotations

from statistics import median

from msgspec.structs import replace

from preflight.facts.gpu import Gpu
from preflight.model import Known, Missing

#: Fewer have no usual among them.
_LEAST = 4
_FEW = Missing("not-applicable", f"it takes {_LEAST} GPUs that count it to compare")


def with_peers(gpus: Known[tuple[Gpu, ...]]) -> Known[tuple[Gpu, ...]]:
    """The GPUs with how much longer than the others the hardware held each of them back."""
    if isinstance(gpus, Missing):
        return gpus
    thermal = _more([gpu.throttle.hw_thermal_s for gpu in gpus])
    brake = _more([gpu.throttle.hw_power_brake_s for gpu in gpus])
    return tuple(
        replace(
            gpu, throttle=replace(gpu.throttle, hw_thermal_more_s=hot, hw_power_brake_more_s=braked)
        )
        for gpu, hot, braked in zip(gpus, thermal, brake, strict=True)
    )


def _more(values: list[Known[float]]) -> list[Known[float]]:
    """Each beyond the median of all; 0 up to twice the median: GPUs that are all held back are not
    held back to the second."""
    known = [value for value in values if not isinstance(value, Missing)]
    usual = median(known) if known else 0.0
    return [
        value
        if isinstance(value, Missing)
        else _FEW
        if len(known) < _LEAST
        else value - usual
        if value > 2 * usual
        else 0.0
        for value in values
    ]
