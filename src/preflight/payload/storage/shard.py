"""How fast one core decodes a shard of the user's: its beginning, from memory, so that storage is
not in it. It is read only."""

from __future__ import annotations

import json
import os
import resource
import stat
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from .decoders import MAGIC, Decoder, decoders, format_of
from .mounts import is_shared, mount_of
from .workers import together

FORM = "shard/1"
Row = dict[str, Any]
#: What is read of the file, and what is kept of it decoded to see what it is.
_SAMPLE, _HEAD = 64 << 20, 4 << 20
#: So many more lines that are no JSON than lines that are, and it is something else.
_TO_TELL = 100
#: Less than this took too little time to tell a speed.
_LEAST_BYTES = 64 << 10


@dataclass(frozen=True)
class Plan:
    """`seconds`: of all decoders; `demand_mbps`: 1e6 decoded bytes a second that the training of
    this host reads."""

    path: str
    seconds: float = 10.0
    demand_mbps: float | None = None
    even_if_busy: bool = False
    device: str = "cpu"


def harness(plan: Plan, tell: Callable[[Row], None]) -> None:
    """All of it."""
    try:
        path = os.path.realpath(os.path.expanduser(plan.path))  # noqa: PTH111
        data, size = _beginning(path)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        text = f"{plan.path}: {said}: --shard names one file of the data"
        tell({"preflight": FORM, "kind": "cannot", "text": text})
        return
    form, mount = format_of(data[:16]), mount_of(path)
    tell({"preflight": FORM, "kind": "begin", "plan": asdict(plan), "path": path, "format": form,
          "size_bytes": size, "sample_bytes": len(data), "fs": mount.kind,
          "shared": is_shared(mount), "processors": len(os.sched_getaffinity(0))})  # fmt: skip
    found = decoders(form)
    whole = len(data) == size
    for one in found:
        told = _told(one, data, plan.seconds / len(found), whole)
        tell({"kind": "decoder", "by": one.by, **told})
    head = data[:_HEAD]
    if form not in MAGIC and (records := _records(head, whole=len(head) == size)):
        tell({"kind": "decoder", "by": "", **records})
    tell({"kind": "end"})


def _beginning(path: str) -> tuple[bytes, int]:
    """Of a plain file, and its size: a pipe or a device would keep us."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        told = os.fstat(fd)
        if not stat.S_ISREG(told.st_mode):
            raise ValueError("it is no plain file")
        if not told.st_size:
            raise ValueError("it is empty")
        return file.read(_SAMPLE), told.st_size


def _told(one: Decoder, data: bytes, seconds: float, whole: bool) -> Row:
    """In a process of its own: a library that dies takes nothing with it."""
    return together(1, lambda _number: _timed(one, data, seconds, whole), seconds)[0]


def _timed(one: Decoder, data: bytes, seconds: float, whole: bool) -> Row:
    """`ended`: to the end of what was read; where time was over before, what was decoded is so."""
    until, began = time.monotonic() + seconds, _cpu_s(one)
    taken, done, head, trouble, ended = 0, 0, b"", "", True
    try:
        with closing(one.decode(data)) as pieces:  # type: ignore[type-var]
            for taken, piece in pieces:  # noqa: B007
                done += len(piece)
                if len(head) < _HEAD:
                    head += piece
                if time.monotonic() > until:
                    ended = False
                    break
    except EOFError as error:
        if whole or not done:
            trouble = f"the file is cut: {error}"
    except Exception as error:  # noqa: BLE001  each library has its own
        trouble = f"{type(error).__name__}: {error}"[:300]
    else:
        trouble = "" if done or not ended else "nothing comes of it: 0 bytes"
    took_s = _cpu_s(one) - began
    all_there = whole and ended and not trouble and len(head) == done
    return {"taken_bytes": taken, "done_bytes": done, "cpu_s": round(took_s, 4), "ended": ended,
            "trouble": trouble, "enough": done >= _LEAST_BYTES,
            **_records(head, whole=all_there)}  # fmt: skip


def _cpu_s(one: Decoder) -> float:
    """Of this process, or of the program that it waited for."""
    told = resource.getrusage(resource.RUSAGE_CHILDREN if one.program else resource.RUSAGE_SELF)
    return told.ru_utime + told.ru_stime


def _records(head: bytes, *, whole: bool) -> Row:
    """What Python's json takes, where the lines are of JSON, which is where most of them are; empty
    where they are not. `whole`: a last line without its end is one too.

    `json_wrong` lines are none, the first is number `json_wrong_line`; the figure is without them.
    """
    lines = head.split(b"\n")
    last = lines.pop()
    lines += [last] if whole else []
    if not head.lstrip().startswith((b"{", b"[")):
        return {}
    began, done, right, wrong = time.process_time(), 0, 0, list[int]()
    for number, line in enumerate(lines, 1):
        at = time.process_time()
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            began += time.process_time() - at
            wrong += [number] if line.strip() else []
            if len(wrong) > right + _TO_TELL:
                return {}
        else:
            done, right = done + len(line) + 1, right + 1
    took_s = time.process_time() - began
    if took_s <= 0 or right <= len(wrong):
        return {}
    return {"json_bytes": done, "json_s": round(took_s, 4), "json_lines": right + len(wrong),
            "json_wrong": len(wrong), "json_wrong_line": wrong[0] if wrong else 0}  # fmt: skip
