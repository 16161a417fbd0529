"""Logs that are tables: trainer_state.json of Transformers, and CSV with a header."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any

import msgspec

from preflight.errors import ParseError
from preflight.facts.series import Log, LogEvent
from preflight.logs.training.finish import finished
from preflight.logs.training.names import Meant, meant
from preflight.logs.training.rows import Rows
from preflight.unpack import Unpacking

#: A larger trainer_state.json is not read: it holds some millions of entries.
MOST_STATE_BYTES = 512 << 20
_MOST_FIELD_BYTES = 1 << 16
_NO_NUMBER = re.compile(rb"(?<=[:,\[ \t])-?(?:NaN|Infinity)(?=[\s,}\]])")
#: One of these among its columns makes a CSV file a log of training.
_TELLING = {"loss", "val_loss", "step_s", "lr", "grad_norm", "tokens_per_s", "samples_per_s",
            "tokens_per_s_gpu", "data_s"}  # fmt: skip


def is_state(head: bytes) -> bool:
    """Whether a file that begins so is a trainer_state.json."""
    return head.lstrip().startswith(b"{") and b'"log_history"' in head


class _State(msgspec.Struct):
    log_history: list[msgspec.Raw]
    global_step: int | None = None
    max_steps: int | None = None
    train_batch_size: int | None = None
    total_flos: float | None = None


def read_state(path: Path) -> Log:
    """Its history; ParseError."""
    data = _all(path)
    try:
        state, data = _decoded(data)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ParseError(f"it is no trainer_state.json: {error}") from None
    rows, events, line = Rows(str(path), "trainer-state"), list[LogEvent](), 1
    rows.series.total_steps = state.max_steps if (state.max_steps or 0) > 0 else None
    at = 0
    for raw in state.log_history:
        text = bytes(raw)
        found = data.find(text, at)
        line, at = line + data.count(b"\n", at, max(found, at)), max(found, at)
        try:
            entry = msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError):
            continue
        if "train_runtime" in entry:
            events.append(_ended(entry, line))
        else:
            rows.row(_values(entry), line, at)
    told = {"total_steps": str(state.max_steps)} if state.max_steps else {}
    return _log(path, rows, events, data.count(b"\n") + 1, len(data), told)


def _all(path: Path) -> bytes:
    with path.open("rb") as file:
        source = Unpacking(file, MOST_STATE_BYTES)
        data = source.read()
        if source.cause:
            raise ParseError(f"trainer_state.json is {source.cause}")
    return data or b""


def _decoded(data: bytes) -> tuple[_State, bytes]:
    """The state, and the text that it was read from: NaN, which is no JSON, becomes a text."""
    try:
        return msgspec.json.decode(data, type=_State), data
    except msgspec.DecodeError:
        mended = _NO_NUMBER.sub(rb'"nan"', data)
        return msgspec.json.decode(mended, type=_State), mended


def _ended(entry: Mapping[str, Any], line: int) -> LogEvent:
    values = {key: float(one) for key, one in entry.items() if isinstance(one, int | float)}
    return LogEvent(
        "ended", line, msgspec.json.encode(entry).decode()[:2_000],
        step=_whole(entry.get("step")), seconds=values.get("train_runtime"), values=values,
    )  # fmt: skip


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _values(entry: Mapping[str, Any]) -> dict[str, float]:
    """Columns of a record; an infinity is what was written as no number."""
    found: dict[str, float] = {}
    for key, one in entry.items():
        value = _number(one)
        if value is not None:
            put(found, meant(key), value)
    return found


def put(found: dict[str, float], what: Meant, value: float) -> None:
    """The value under the name that is meant; the first of a name counts."""
    if what.inverse:
        value = 1 / value if value else inf
    found.setdefault(what.name, value * what.factor if isfinite(value) else inf)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else inf


def is_table(head: bytes) -> bool:
    """Whether a file that begins so is CSV, or TSV, of a training."""
    first = head.partition(b"\n")[0]
    cut = _cut(first)
    if cut is None or first.lstrip().startswith((b"{", b"[")):
        return False
    names = {one.name for one in _heads(first.decode("utf-8", "replace").split(cut))}
    return bool(names & _TELLING) and bool(names & {"step", "epoch", "time_s"})


def _cut(first: bytes) -> str | None:
    for cut in (b",", b"\t", b";"):
        if first.count(cut):
            return cut.decode()
    return None


def _heads(cells: list[str]) -> list[Meant]:
    """The column of each; wandb writes the run's name before a dash."""
    return [meant(one.strip().strip('"').rpartition(" - ")[2]) for one in cells]


def read_table(path: Path) -> Log:
    """Rows of a CSV; those of one step are one. ParseError."""
    rows = Rows(str(path), "csv")
    size = 0
    with path.open("rb") as file:
        lines = _lines(Unpacking(file, 1 << 40))
        head = next(lines, (0, 0, ""))[2]
        cut = _cut(head.encode()) or ","
        heads = _heads(next(csv.reader([head], delimiter=cut), []))
        number = 1
        for number, offset, text in lines:
            size = offset + len(text)
            try:
                cells = next(csv.reader([text], delimiter=cut), [])
            except csv.Error:
                continue
            values: dict[str, float] = {}
            for what, cell in zip(heads, cells, strict=False):
                value = _number(cell) if cell else None
                if value is not None:
                    put(values, what, value)
            if len(values) > 1:
                rows.row(values, number, offset)
    return _log(path, rows, [], number, size, {})


def _lines(source: Unpacking) -> Iterator[tuple[int, int, str]]:
    """Number, offset and text; what is longer than 64 KiB is cut."""
    number = offset = 0
    rest = b""
    while piece := source.read(1 << 20):
        *whole, rest = (rest + piece).split(b"\n")
        for one in whole:
            number += 1
            yield number, offset, one[:_MOST_FIELD_BYTES].decode("utf-8", "replace").rstrip("\r")
            offset += len(one) + 1
        if len(rest) > 1 << 22:
            offset += len(rest)
            rest = b""
    if rest:
        yield number + 1, offset, rest[:_MOST_FIELD_BYTES].decode("utf-8", "replace")


def _log(
    path: Path, rows: Rows, events: list[LogEvent], lines: int, size: int, told: dict[str, str]
) -> Log:
    series = finished({("steps", None): rows})
    if not series:
        raise ParseError("no record of a step in it")
    return Log(str(path), series, tuple(events), lines=lines, bytes=size, told=told)
