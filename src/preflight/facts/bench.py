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


class Window(Struct, frozen=True):
    """A part of the time."""

    at_s: float
    lasts_s: float
    calls: int
    median_us: float
    mad_us: float
    most_us: float
    sum_s: Known[float] = NOT_IN_INPUT  # of all its calls
    #: When the longest calls began, and how many seconds they took.
    longest: tuple[tuple[float, float], ...] = ()
    line: int = 0


class Stall(Struct, frozen=True):
    """A call, or a rank on its way to the next, that took far longer than those about it."""

    at_s: float
    lasts_s: float  # beyond what they take


class LevelChange(Struct, frozen=True):
    """From when on it went at another level, which lasted."""

    at_s: float
    before_us: float
    after_us: float


class Lasting(Struct, frozen=True):
    """One collective in one size, again and again."""

    name: str  # all_reduce, 4 MiB
    collective: str
    size_bytes: int
    ranks: int
    asked_s: float
    windows: tuple[Window, ...] = ()
    calls: int = 0
    lasted_s: float = 0.0
    median_us: Known[float] = NOT_IN_INPUT
    #: How far windows lie from the level of their time: 1.4826 x the median distance, in percent.
    spread_percent: Known[float] = NOT_IN_INPUT
    #: By how much the time of a call grows over the whole run: the median of all slopes.
    trend_percent: Known[float] = NOT_IN_INPUT
    first_us: Known[float] = NOT_IN_INPUT  # of the first tenth of the windows, the median
    last_us: Known[float] = NOT_IN_INPUT
    changes: tuple[LevelChange, ...] = ()
    outliers: tuple[float, ...] = ()  # when windows were far from their level, in seconds
    stalls: tuple[Stall, ...] = ()
    stalled_s: Known[float] = NOT_IN_INPUT  # all of them together
    #: Of all calls beyond the medians of their windows, as a share of the time; and the longest.
    lost_percent: Known[float] = NOT_IN_INPUT
    longest: Known[tuple[float, float]] = NOT_IN_INPUT
    device: str = ""  # cuda | cpu
    #: Bandwidth that a later level lacks of an earlier one, the worst of those that last a fifth of
    #: the time; 0 where there is none.
    drop_percent: Known[float] = NOT_IN_INPUT
    dropped_at_s: Known[float] = NOT_IN_INPUT
    when: str = ""  # its level fell for good, and calls stood still, in words
    ended: bool = False
    line: int = 0
    probe: str = ""


class DeviceGrowth(Struct, frozen=True):
    """What a port, an interface or a device on PCI counted more while a bench ran."""

    name: str  # mlx5_0/1; eth0; 0000:18:00.0
    kind: str  # rdma | interface | pci
    grew: dict[str, int] = {}  # by the kernel's names; what did not grow is not there
    packets: Known[int] = NOT_IN_INPUT  # sent and received
    #: Counters that stay where they are on a sound link: link_downed +1.
    broken: tuple[str, ...] = ()
    errors_per_s: float = 0.0  # what arrived damaged
    drops_per_s: float = 0.0  # what was thrown away for want of room
    line: int = 0
    probe: str = ""


class NetworkGrowth(Struct, frozen=True):
    """What a host counted more while a bench ran."""

    seconds: float
    devices: tuple[DeviceGrowth, ...] = ()
    #: Of --duration: "eth0 rx_dropped" -> when the windows began in which it grew, in seconds.
    windows: dict[str, tuple[float, ...]] = {}
    segments_in: Known[int] = NOT_IN_INPUT  # of TCP, of the whole network namespace
    segments_out: Known[int] = NOT_IN_INPUT
    #: Sent again, of those that were sent: lost on the way to others, or their answers were.
    retransmits: Known[int] = NOT_IN_INPUT
    retransmits_percent: Known[float] = NOT_IN_INPUT
    #: Came after a gap, of those that came: one before them was lost on the way to this host.
    out_of_order: Known[int] = NOT_IN_INPUT
    out_of_order_percent: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


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
