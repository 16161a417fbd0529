"""A row of xid.yaml, sxid.yaml or kernel_events.yaml: its keys, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from preflight.model import Action

Verdict = Literal["PASS", "WARN", "FAIL"]
#: A boot of the host; a load of NVIDIA's driver, or one after which nvidia-smi shows the GPU.
End = Literal["boot", "driver", "return"]


class ByText(Struct, frozen=True, forbid_unknown_fields=True):
    """Another verdict for the events whose text holds `matches`; the first that matches counts.

    `fix` here and below: what to do then, where it is not what the row says.
    """

    matches: str
    status: Verdict
    action: Action
    fix: tuple[str, ...] = ()


class Burst(Struct, frozen=True, forbid_unknown_fields=True):
    """A worse verdict where `count` bursts within `within_h` point at the hardware.

    by: tpc, all of them at one place in the GPU; process, on one GPU only. Either from two programs
    of different names at least: one program does the same again and again. At one place
    `long_count` bursts within `long_h` do so as well.
    """

    count: int
    within_h: float
    by: Literal["tpc", "process"]
    status: Verdict
    action: Action
    long_count: int = 0
    long_h: float = 0.0


class Follows(Struct, frozen=True, forbid_unknown_fields=True):
    """A milder verdict within `within_s` seconds after one of these Xids on any GPU."""

    xids: tuple[int, ...]
    within_s: float
    status: Verdict


class Escalate(Struct, frozen=True, forbid_unknown_fields=True):
    """A worse verdict for more than `over` events within `within_h` hours (0: the row's window)."""

    over: int
    status: Verdict
    action: Action
    within_h: float = 0.0
    fix: tuple[str, ...] = ()


class Row(Struct, frozen=True):
    """One row. Each table has some of the keys: see TABLES."""

    title: str
    status: Verdict
    action: Action
    why: str
    fix: tuple[str, ...]
    runbook: str
    source: str
    code: int | str = ""
    codes: tuple[int, ...] = ()
    id: str = ""
    kind: str = ""
    window_h: float = 24.0  # how long an event matters
    echo_of_s: float = 0.0  # this long after another Xid of the GPU it is only that one's echo
    latest: bool = False  # only the last event of a device counts
    by_text: tuple[ByText, ...] = ()
    burst: Burst | None = None
    follows: Follows | None = None
    counts: str = ""  # only events whose text holds this; the others tell the story
    at_most: int = 0  # as many events in the window are in order
    escalate: Escalate | None = None
    unless_xid: int | None = None  # an event of a device that has this Xid is told there
    named_by: tuple[int, ...] = ()  # Xids that name the program, where the event does not
    decode: Literal["", "xid74", "nvlink5"] = ""  # the table that reads the line's hex words
    settled_by: tuple[str, ...] = ()  # facts of the GPU that tell whether it still waits
    ended_by: tuple[End, ...] = ()  # what mends it, where the action does not tell
    ended_as: Literal["", "PASS"] = ""  # what is left of it then, where that is nothing
    remains: tuple[str, ...] = ()  # what to do then, where the device keeps what it tells of
    again_h: float = 30 * 24.0  # a fault that comes back within, after what mends it, is not mended
    repeats: str = ""  # events whose text holds this only repeat the others of the device
    of_gpus: bool = False  # only what a GPU is the device of
    unless_runs: bool = False  # nothing where the driver runs
    # Set when the table is read:
    table: str = ""
    known: tuple[int, ...] = ()  # of the row `other`: the codes of all other rows


_EVERY = ("title", "status", "action", "why", "fix", "runbook", "source")
#: Programs beside the kernel whose silence means something. The fabric manager repeats what the
#: kernel tells of NVSwitches for as long as it runs: where it ended at once it says nothing.
_TOLD_BY = {"link-flap": "systemd-networkd"}
#: What a boot has done already, and so need not be advised.
_BY_BOOT = frozenset({Action.RESET_GPU, Action.REBOOT, Action.DRAIN})
#: What NVIDIA's driver tells: a load of the driver begins anew for these.
_DRIVER = frozenset(
    {
        "xid",
        "sxid",
        "off-bus",
        "init-failed",
        "api-mismatch",
        "fabric-mismatch",
        "pci-lost",
        "gpu-locked",
    }
)
#: What an Xid line in an unknown form may be.
_XID_LINES = frozenset({"xid", "sxid", "off-bus"})

#: Table -> keys that every row has, keys that it may have.
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "xid": (
        ("code", *_EVERY),
        (
            "window_h",
            "echo_of_s",
            "latest",
            "by_text",
            "follows",
            "burst",
            "escalate",
            "named_by",
            "settled_by",
            "codes",
            "decode",
            "ended_by",
            "remains",
            "again_h",
        ),
    ),
    "sxid": (("code", *_EVERY), ("codes", "window_h", "by_text", "follows", "again_h")),
    "kernel-events": (
        ("id", "kind", *_EVERY),
        (
            "window_h",
            "counts",
            "at_most",
            "escalate",
            "by_text",
            "unless_xid",
            "ended_by",
            "ended_as",
            "again_h",
            "repeats",
            "of_gpus",
            "unless_runs",
        ),
    ),
}


def about(row: Row) -> str:
    """What the row's events are: an Xid, an SXid, or the kind of message."""
    return row.kind if row.table == "kernel-events" else row.table


def told_by(row: Row) -> frozenset[str]:
    """Whose lines must be there for their silence to mean something."""
    return frozenset({"kernel", _TOLD_BY.get(about(row), "kernel")})


def ends(row: Row, action: Action) -> tuple[End, ...]:
    """What mends an event of the row: what the row says, else by the action that it asks for. A
    reset is a part of a driver's load too; what needs a boot is not mended by less."""
    if row.ended_by or action not in _BY_BOOT:
        return row.ended_by
    by_load = about(row) in _DRIVER and (action is not Action.REBOOT or row.table == "sxid")
    return ("boot", "driver") if by_load else ("boot",)


def may_be_unread(row: Row) -> bool:
    """Whether an Xid line that cannot be read may be one of the row's events."""
    return about(row) in _XID_LINES


def read_row(values: Mapping[str, Any]) -> Row:
    """The row as a record; msgspec.ValidationError where a value has the wrong type."""
    return msgspec.convert(dict(values), Row)


def faults(table: str, values: Any) -> Iterator[str]:
    """Everything wrong with one row of the table."""
    if not isinstance(values, Mapping):
        yield f"a row is a mapping with {', '.join(TABLES[table][0])}"
        return
    required, optional = TABLES[table]
    unknown = [key for key in values if key not in required + optional]
    missing = [key for key in required if values.get(key) in (None, "", [])]
    yield from (f"unknown key {key!r}" for key in unknown)
    yield from (f"{key} is missing" for key in missing)
    if unknown or missing:
        return
    try:
        row = read_row(values)
    except msgspec.ValidationError as error:
        yield str(error)
        return
    for pattern in (row.counts, row.repeats, *(one.matches for one in row.by_text)):
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"{pattern!r} is no regular expression: {error}"
