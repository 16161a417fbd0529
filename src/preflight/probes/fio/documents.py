"""The JSON reports in a text: fio writes warnings around them, and with --status-interval many."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.probes.kernel_log.gaps import gaps

Row = dict[str, Any]

_BEGIN = re.compile(r'\{\s*"fio version"\s*:')
_JOB = re.compile(r'\{\s*"jobname"\s*:')
_NAME = re.compile(r'"jobname"\s*:')
#: fio prints what C makes of a number that is none.
_NO_NUMBER = re.compile(r"(:\s*)-?(?:nan|inf)\b", re.IGNORECASE)
#: Start times differ by so much at most: fio rounds the seconds since up.
_SAME_START_S = 2.0
_JSON = json.JSONDecoder(strict=False)


class Document(Struct):
    """One report. `cut`: the text ends within it; then `jobs` are those that are whole."""

    line: int
    version: str
    jobs: list[Row]  # rows of one report, of client/server too
    lines: list[int]  # where each of them begins
    options: Row  # global ones
    disks: list[Row]
    start_s: float | None = None  # by its own clock, in seconds since 1970
    cut: bool = False


def runs(text: str) -> list[Document]:
    """Of each run the last report, or the last before it where the text ends within that."""
    found: list[Document] = []
    for one in documents(text):
        if found and goes_on(found[-1], one):
            found[-1] = replace(found[-1], cut=True) if one.cut else one
        else:
            found.append(one)
    return found


def documents(text: str) -> Iterator[Document]:
    """Every report, in its order; what stands between is passed over."""
    text = _NO_NUMBER.sub(r"\1null", text)
    left_out = gaps(text)
    at, line = 0, 1
    while begin := _BEGIN.search(text, at):
        line += text.count("\n", at, begin.start())
        at, here = begin.start(), line + left_out.before(begin.start())
        following = _BEGIN.search(text, begin.end())
        end = following.start() if following else len(text)
        try:
            told, _ = _JSON.raw_decode(text, at)
            yield _document(told, here, _lines(text, at, end, here))
        except (ValueError, RecursionError):
            yield _what_is_whole(text[at:end], here)
        line += text.count("\n", at, end)
        at = end


def one_document(told: Row) -> Document:
    """A report that is decoded already."""
    return _document(told, 1, [])


def goes_on(earlier: Document, later: Document) -> bool:
    """Whether both are of one run: the same jobs, begun at the same time, never with less done."""
    names = [_named(one) for one in earlier.jobs], [_named(one) for one in later.jobs]
    if later.cut:
        names = names[0][: len(names[1])], names[1]
    if names[0] != names[1] or earlier.version != later.version:
        return False
    # A report that is cut tells no start.
    if None not in (earlier.start_s, later.start_s):
        apart = (earlier.start_s or 0.0) - (later.start_s or 0.0)
        if abs(apart) > _SAME_START_S:
            return False
    return all(_done(was) <= _done(now) for was, now in zip(earlier.jobs, later.jobs, strict=False))


def _named(job: Row) -> tuple[str, str, str]:
    return str(job.get("jobname")), str(job.get("groupid")), str(job.get("hostname", ""))


def _done(job: Row) -> float:
    """Bytes that it has moved."""
    sides = (job.get(way) for way in ("read", "write", "trim"))
    told = (side.get("io_bytes") for side in sides if isinstance(side, dict))
    return sum(one for one in told if isinstance(one, (int, float)))


def _lines(text: str, at: int, end: int, line: int) -> list[int]:
    found = []
    for job in _NAME.finditer(text, at, end):
        line += text.count("\n", at, job.start())
        at = job.start()
        found.append(line)
    return found


def _document(told: Row, line: int, lines: list[int]) -> Document:
    rows = told.get("jobs") or told.get("client_stats")
    jobs = [one for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []
    options, disks = told.get("global options"), told.get("disk_util")
    return Document(
        line, str(told.get("fio version", "")), jobs, lines,
        options if isinstance(options, dict) else {},
        [one for one in disks if isinstance(one, dict)] if isinstance(disks, list) else [],
        _start(told, jobs),
    )  # fmt: skip


def _start(told: Row, jobs: list[Row]) -> float | None:
    stamp, elapsed = told.get("timestamp_ms"), [one.get("elapsed") for one in jobs]
    known = [one for one in elapsed if isinstance(one, (int, float))]
    return stamp / 1e3 - max(known) if isinstance(stamp, (int, float)) and known else None


def _what_is_whole(text: str, line: int) -> Document:
    """The jobs of a report that has no end."""
    jobs: list[Row] = []
    for begin in _JOB.finditer(text):
        try:
            jobs.append(_JSON.raw_decode(text, begin.start())[0])
        except (ValueError, RecursionError):
            break
    version = re.match(r'\{\s*"fio version"\s*:\s*"([^"\n]{1,40})"', text)
    options: Row = {}
    if match := re.search(r'"global options"\s*:\s*(?=\{)', text):
        try:
            options = _JSON.raw_decode(text, match.end())[0]
        except (ValueError, RecursionError):
            options = {}
    lines = _lines(text, 0, len(text), line)
    return Document(line, version[1] if version else "", jobs, lines, options, [], cut=True)
