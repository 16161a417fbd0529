"""What a GPU's temperature may be where no limit of the card itself is known."""

from __future__ import annotations

from preflight.expect.bound import Bound
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.watch import WatchedGpu
from preflight.model import Known, Missing

#: Degrees C. Data centre GPUs begin to throttle at about 84 to 90 C (stas00/ml-engineering,
#: accelerators); the slowdown points that cards name are 87 to 93 C. From 90 on most are at their
#: limit, from 95 on all are beyond it.
_HOT_C, _TOO_HOT_C = 89.0, 94.0
_TEXT = "a rule of thumb: GPUs throttle from 84 to 90 C on; the card's own limit is not known here"


def hot_c(host: Host, gpu: Gpu | WatchedGpu) -> Known[Bound]:
    """89 C, where the card's own limit is not known: the highest that is not worth a warning."""
    return _unless_limit_known(host, gpu, _HOT_C)


def too_hot_c(host: Host, gpu: Gpu | WatchedGpu) -> Known[Bound]:
    """94 C, where the card's own limit is not known: the highest that some card may allow."""
    return _unless_limit_known(host, gpu, _TOO_HOT_C)


def _unless_limit_known(host: Host, gpu: Gpu | WatchedGpu, most_c: float) -> Known[Bound]:
    """Not applicable where the card tells how far it is from its own limit, in the watch or to
    nvidia-smi beside it."""
    if isinstance(gpu, Gpu):
        unknown = isinstance(gpu.temperature.margin_c, Missing)
    else:
        known = () if isinstance(host.gpus, Missing) else host.gpus
        beside = [one.temperature.margin_c for one in known if one.index == gpu.index]
        unknown = all(isinstance(margin, Missing) for margin in (gpu.margin_c, *beside))
    if unknown:
        return Bound(most_c, _TEXT)
    return Missing("not-applicable", "the card's own limit is known, and that is judged")
