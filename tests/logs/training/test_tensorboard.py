"""Event files of TensorBoard, written here field by field."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from preflight.errors import ParseError
from preflight.logs.training import log
from tests.logs.training.reading import at, only, read


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def text(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def event(step: int, when: float, *values: bytes) -> bytes:
    summary = b"".join(text(1, one) for one in values)
    return b"\x09" + struct.pack("<d", when) + b"\x10" + varint(step) + text(5, summary)


def simple(tag: str, value: float) -> bytes:
    return text(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def tensor(tag: str, value: float) -> bytes:
    return text(1, tag.encode()) + text(8, b"\x08\x01" + text(4, struct.pack("<f", value)))


def file(*messages: bytes) -> bytes:
    first = b"\x09" + struct.pack("<d", 1e9) + text(3, b"brain.Event:2")
    return b"".join(
        struct.pack("<Q", len(one)) + b"\1\2\3\4" + one + b"\5\6\7\x08"
        for one in (first, *messages)
    )


STEPS = [
    message
    for i in range(1, 300)
    for message in (
        event(i, 1e9 + i, simple("loss_metrics/global_avg_loss", 2.5)),
        event(i, 1e9 + i, tensor("time_metrics/data_loading(s)", 0.25), simple("other", i)),
    )
]


def test_scalars_of_a_step_are_one_row(tmp_path: Path) -> None:
    data = file(*STEPS)
    assert log.sniff(data[:65_536], "events.out.tfevents.1767323045.node-03.1.0")
    series = only(read(tmp_path, data))
    assert series.style == "tensorboard" and len(series.line) == 299
    row = {"step": 299, "time_s": 1e9 + 299, "loss": 2.5, "data_s": 0.25, "other": 299}
    assert at(series, 298) == row


def test_a_file_cut_anywhere_is_read_so_far(tmp_path: Path) -> None:
    data = file(*STEPS)
    for cut in (1, 3, 5, 17, 40):
        found = read(tmp_path, data[:-cut])
        assert found.truncated and len(only(found).line) >= 298


def test_pictures_are_passed_over_and_a_file_without_scalars_is_said_to_be_one(
    tmp_path: Path,
) -> None:
    series = only(read(tmp_path, file(STEPS[0], text(5, b"x" * 3_000_000), STEPS[2])))
    assert list(series.values("step")) == [1, 2]
    with pytest.raises(ParseError, match="no scalars"):
        read(tmp_path, file())
    huge = file(STEPS[0]) + struct.pack("<Q", 1 << 62) + b"\0" * 40
    assert read(tmp_path, huge).truncated
