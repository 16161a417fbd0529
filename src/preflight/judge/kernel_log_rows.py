"""A row of xid.yaml, sxid.yaml or kernel_events.yaml: its keys, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from preflight.model import Action

Verdict = Literal["PASS", "WARN", "FAIL"]


class ByText(Struct, frozen=True, forbid_unknown_fields=True):
    """Another verdict for the events whose text holds `matches`; the first that matches counts."""

    matches: str
    status: Verdict
    action: Action


class Burst(Struct, frozen=True, forbid_unknown_fields=True):
    """A worse verdict where `count` bursts within `within_h` point at the hardware.

    by: tpc, all of them at one place in the GPU; process, from as many processes, on one GPU only.
    """

    count: int
    within_h: float
    by: Literal["tpc", "process"]
    status: Verdict
    action: Action


class Follows(Struct, frozen=True, forbid_unknown_fields=True):
    """A milder verdict within `within_s` seconds after one of these Xids on any GPU."""

    xids: tuple[int, ...]
    within_s: float
    status: Verdict


class Escalate(Struct, frozen=True, forbid_unknown_fields=True):
    """A worse verdict for more than `over` events in the window."""

    over: int
    status: Verdict
    action: Action


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
    # Set when the table is read:
    table: str = ""
    known: tuple[int, ...] = ()  # of the row `other`: the codes of all other rows


_EVERY = ("title", "status", "action", "why", "fix", "runbook", "source")
#: Table -> keys that every row has, keys that it may have.
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "xid": (
        ("code", *_EVERY),
        ("window_h", "echo_of_s", "latest", "by_text", "follows", "burst", "escalate"),
    ),
    "sxid": (("code", *_EVERY), ("codes", "window_h", "by_text", "follows")),
    "kernel-events": (
        ("id", "kind", *_EVERY),
        ("window_h", "counts", "at_most", "escalate", "by_text", "unless_xid"),
    ),
}


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
    for pattern in (row.counts, *(one.matches for one in row.by_text)):
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"{pattern!r} is no regular expression: {error}"
