"""How much a collective may lose over a while, by how it went itself and how long."""

from __future__ import annotations

from preflight.expect.bound import Bound
from preflight.facts.bench import Lasting
from preflight.facts.host import Host
from preflight.model import Known, Missing

#: Sound networks that others use too stay within; what is less than this nobody would look for.
#: Processors do other work besides.
_LEAST_PERCENT = {"cpu": 30.0}
_USUAL_PERCENT = 15.0
#: Windows of one level lie so many times their spread apart once in 370.
_SPREADS = 3.0
#: Ranks may stand still for so much of the time, and no longer than so: on processors others may
#: have taken them meanwhile, GPUs do nothing else.
_STALLED, _STALLED_S = 0.02, {"cuda": 5.0}


def steady_drop(_host: Host, run: Lasting) -> Known[Bound]:
    """Percent of the faster level."""
    if isinstance(run.spread_percent, Missing):
        return run.spread_percent
    least = _LEAST_PERCENT.get(run.device, _USUAL_PERCENT)
    value = max(least, _SPREADS * run.spread_percent)
    told = f"{_SPREADS:g} x {run.spread_percent:.1f} %, the spread of its windows"
    return Bound(round(value, 1), f"{told}, and {least:g} % at least")


def stalled_time(_host: Host, run: Lasting) -> Known[Bound]:
    """Seconds of all stalls together."""
    share_s = _STALLED * run.lasted_s
    most_s = min(share_s, _STALLED_S.get(run.device, share_s))
    told = f"{_STALLED:.0%} of {run.lasted_s:.0f} s"
    return Bound(
        round(most_s, 2), told if most_s == share_s else f"{told}, and {most_s:g} s at most"
    )
