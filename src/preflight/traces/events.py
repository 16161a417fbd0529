"""What is kept of an event of a trace; all else in it is skipped unread."""

from __future__ import annotations

from msgspec import Struct, field


class Args(Struct, gc=False):
    """Arguments of kernels, copies, calls and collectives, as profilers call them."""

    correlation: int | None = None
    stream: int | str | None = None
    device: int | str | None = None
    bytes: float | None = None
    size: float | None = None  # of a copy, where AMD's profiler tells it on the call
    name: str | None = None  # of a thread or process
    collective: str | None = field(default=None, name="Collective name")
    elements_in: float | None = field(default=None, name="In msg nelems")
    elements_out: float | None = field(default=None, name="Out msg nelems")
    group_size: int | None = field(default=None, name="Group size")
    group: str | int | None = field(default=None, name="Process Group Name")
    purpose: str | None = field(default=None, name="Process Group Description")
    seq: int | None = field(default=None, name="Seq")
    dtype: str | None = None


class Event(Struct, gc=False):
    """One event of a Chrome trace: `ts` and `dur` are microseconds, whatever the display unit."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    ts: float = 0.0
    dur: float = 0.0
    args: Args | None = None


#: Nothing that a profiler records lasts a week; CUPTI's overflows do.
LONGEST_US = 7 * 86400 * 1e6
#: The year 5138: later is no time.
LATEST_US = 1e17
