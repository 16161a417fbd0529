"""What the kernel log tells. `at_s`: seconds on the log's own axis, None where it has none."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class Xid(Struct, frozen=True):
    """One NVRM Xid line. `bus_id` in the form of Gpu.bus_id (function 0 where none is given)."""

    code: int
    bus_id: str
    line: int
    at_s: float | None
    text: str  # what follows the code, pid and name taken out
    pid: Known[int] = NOT_IN_INPUT
    process: Known[str] = NOT_IN_INPUT
    probe: str = ""  # which probe's raw `line` counts in; so in every record here


class Sxid(Struct, frozen=True):
    """One NVSwitch SXid line. `severity`: fatal | non-fatal | unknown, the line's own word."""

    code: int
    switch: str  # nvidia-nvswitch1, or the PCI address where that is all there is
    line: int
    at_s: float | None
    severity: str
    text: str
    link: Known[int] = NOT_IN_INPUT
    probe: str = ""


class KernelEvent(Struct, frozen=True):
    """A line of another kind. `kind` is a row id of checks/data/kernel_events.yaml."""

    kind: str
    subject: str  # device, interface or process that it is about; "" for the host
    line: int
    at_s: float | None
    text: str
    probe: str = ""
    count: int = 1  # how many the line tells of


class Unread(Struct, frozen=True):
    """A line that speaks of an Xid, SXid or lost GPU in a form that is not known."""

    line: int
    text: str
    probe: str = ""


class Gap(Struct, frozen=True):
    """How many messages of the kernel the journal says it missed, and the first line that does."""

    missed: Known[int] = 0
    line: int = 1
    probe: str = ""


class Start(Struct, frozen=True):
    """Where the host (what: boot) or the NVIDIA driver (what: driver) began anew."""

    what: str
    line: int
    at_s: float | None
    probe: str = ""


class KernelLog(Struct, frozen=True):
    """Every event found in the logs of a host, in their order.

    Times before the last boot are negative where `clock` is boot: at least that long before it.
    """

    lines: int
    first_at_s: float | None
    last_at_s: float | None
    clock: str  # boot: seconds since boot, wall: seconds since 1970, none
    xids: tuple[Xid, ...] = ()
    sxids: tuple[Sxid, ...] = ()
    events: tuple[KernelEvent, ...] = ()
    unread: tuple[Unread, ...] = ()
    starts: tuple[Start, ...] = ()
    #: Who wrote the lines: without the kernel's own, what it would tell is not known.
    writers: tuple[str, ...] = ("kernel",)
    truncated: bool = False  # the oldest lines are gone: the ring buffer was full
    left_out: int = 0  # events that were too many to be kept, of a flood
    hosts: tuple[str, ...] = ()  # whose kernels wrote it, where the lines name them
    reach_h: Known[float] = NOT_IN_INPUT  # hours from the first line to the look, if truncated
    utc: bool = False  # the lines name their zone, so that times are UTC and not the host's own
    gap: Gap = Gap()
    messages_left_out: tuple[Unread, ...] = ()  # lines that tell what is not there
    cut: str = ""  # why the end of the log is not there, "" where it is
    line: int = 1
    probe: str = ""
