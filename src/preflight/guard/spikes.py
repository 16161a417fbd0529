"""Which loss or gradient norm is no noise: against median and MAD of the last values."""

from __future__ import annotations

from collections import deque
from math import exp, inf, isfinite, log, nan
from statistics import median

from .records import Event

#: Values that the level is taken from, and how many it takes before anything is judged. Of 128 (as
#: StabilityMonitor of OLMo-core has it) the MAD itself is off by a tenth, which losses that follow
#: each other closely turn into a false alarm in 50,000 steps.
LAST, WARM = 256, 64
#: Normal deviations beyond the median (the spike score of OLMo 2 has 7). A mean and its sigma would
#: be blinded by a spike among the last values; a median and its MAD are not while half are good.
DEVIATIONS = 7.0
_SIGMA_OF_MAD = 1.4826
#: And by so much more than usual: a loss that hardly scatters is no reason to wake somebody.
RISE = {"loss": 1.05, "grad_norm": 5.0}
#: Median and MAD are taken again after so many values: it is what they cost.
_AGAIN = 32
#: So many usual values in a row, and what comes is another spike; so many high ones in it, and the
#: level is another.
_CALM, _STAYS = 16, 48
#: So many in a row that are no number, and it is not the batch.
_HOPELESS = 3
#: A loss of so many times the usual is beyond what a skipped batch mends.
_DEAD = 10.0


class Level:
    """What a series usually is. Its values are compared as logarithms until one is below zero; a
    zero is no value (a batch without labels, a mask)."""

    def __init__(self, rise: float) -> None:
        self._rise = rise
        self._values: deque[float] = deque(maxlen=LAST)
        self._logs = True
        self._limit = inf
        self._middle = nan
        self._since = 0

    @property
    def usual(self) -> float:
        """The median, in the unit of the series; NaN before there is one."""
        return exp(self._middle) if self._logs else self._middle

    def high(self, value: float) -> bool:
        """Whether a finite value is far above the others; else it is one of them from now on."""
        if self._logs:
            if value == 0:
                return False
            if value < 0:
                self._straight()
            else:
                value = log(value)
        if value > self._limit:
            return True
        self._values.append(value)
        self._since += 1
        if self._since >= _AGAIN:
            self._settle()
        return False

    def begin_again(self, values: list[float]) -> None:
        """The level is that of these values."""
        self._values.clear()
        self._limit = inf
        for one in values:
            self.high(one)

    def _straight(self) -> None:
        self._values = deque(map(exp, self._values), maxlen=LAST)
        self._logs = False
        self._settle()

    def _settle(self) -> None:
        self._since = 0
        if len(self._values) < WARM:
            return
        ordered = sorted(self._values)
        self._middle = middle = ordered[len(ordered) // 2]
        mad = median([abs(one - middle) for one in ordered])
        least = log(self._rise) if self._logs else (self._rise - 1) * abs(middle)
        self._limit = middle + max(DEVIATIONS * _SIGMA_OF_MAD * mad, least)


class Spikes:
    """One series, and the episode that it is in. `trouble`: what was wrong in the last steps; "" if
    nothing was."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._level = Level(RISE[name])
        self._high: list[float] = []
        self._calm = _CALM
        self._nonfinite = 0
        self.trouble = ""

    def look(self, step: int, value: float) -> Event | None:
        """An event where one begins, stays, or becomes hopeless."""
        if not isfinite(value):
            return self._no_number(step, value)
        self._nonfinite = 0
        if self._level.high(value):
            return self._one_more(step, value)
        if self._calm < _CALM:
            self._calm += 1
            if self._calm == _CALM:
                self._high.clear()
                self.trouble = ""
        return None

    def _no_number(self, step: int, value: float) -> Event | None:
        self._nonfinite += 1
        self._calm, self.trouble = 0, f"{self._name} was no number at step {step}"
        if self._nonfinite not in (1, _HOPELESS):
            return None
        usual, name = self._level.usual, self._name
        if self._nonfinite == 1:
            was = f", and was {usual:.4g}" if isfinite(usual) else ""
            return Event("nonfinite", "skip", step, name, value, usual, f"{name} is {value}{was}")
        text = f"{name} was no number {_HOPELESS} times in a row: it is not the batch"
        return Event("nonfinite", "stop", step, name, value, usual, text)

    def _one_more(self, step: int, value: float) -> Event | None:
        usual, name = self._level.usual, self._name
        begins, self._calm = not self._high, 0
        self._high.append(value)
        self.trouble = f"{name} was far above the usual at step {step}"
        if len(self._high) >= _STAYS:
            self._level.begin_again(self._high)
            self._high = []
            text = f"{name} stays far above {usual:.4g}: {_STAYS} steps, now {value:.4g}"
            return Event("shift", "stop", step, name, value, usual, text)
        if not begins:
            return None
        dead = name == "loss" and usual > 0 and value > _DEAD * usual
        text = f"{name} is {value:.4g}, and the median of the last {LAST} is {usual:.4g}"
        return Event("spike", "stop" if dead else "skip", step, name, value, usual, text)
