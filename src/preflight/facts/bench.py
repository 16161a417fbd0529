"""What a bench of collectives tells besides its tables: settings held against each other, how one
collective went over a long time, and what counters grew meanwhile."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class SettingGain(Struct, frozen=True):
    """One value of a variable in one size, held against the variable not set."""

    value: str
    size_bytes: int
    turns: int
    usual_us: float  # the median where the variable is not set
    median_us: float
    #: More bandwidth, in percent of what there is without it: the median over turns, its interval
    #: and how far turns lie apart (1.4826 x the median distance).
    gain_percent: float
    low_percent: float
    high_percent: float
    spread_percent: float
    chance: float  # that values which are alike seem as different
    verdict: str  # faster | slower | alike | open


class FailedSetting(Struct, frozen=True):
    """A value with which the ranks did not come to their end."""

    value: str
    turn: Known[int] = NOT_IN_INPUT  # from 0; not applicable in the trial before
    text: str = ""


class SettingSweep(Struct, frozen=True):
    """One variable."""

    name: str
    collective: str
    gains: tuple[SettingGain, ...] = ()
    failed: tuple[FailedSetting, ...] = ()
    failed_values: Known[tuple[str, ...]] = NOT_IN_INPUT  # their names; missing where none ran
    turns: int = 0
    elapsed_s: float = 0.0
    sure_percent: float = 0.0  # of the intervals
    least_percent: float = 0.0  # a smaller gain names no winner
    line: int = 0
    probe: str = ""
