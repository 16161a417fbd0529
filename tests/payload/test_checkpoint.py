"""A checkpoint as training saves and loads it: what is told is what was done, other bytes are
found, and every way to fail is told in words and leaves what had been measured before."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from preflight.payload.storage import saving, shards, workers
from preflight.payload.storage.blocks import Blocks, block_bytes
from preflight.payload.storage.direct import takes_direct
from preflight.payload.storage.patterns import rows
from preflight.payload.storage.plan import Plan
from preflight.payload.storage.room import Room

PARTS = ["save", "save, direct", "save, one file", "restore", "save while reading"]
Rows = dict[str, dict[str, Any]]


def done(folder: Path, writers: int = 2, size: int = 8 << 20, seconds: float = 0.8) -> Rows:
    """Rows by part; the folder is as empty as it was."""
    folder.mkdir(exist_ok=True)
    room = Room(str(folder), size, seconds, False, Plan(dir=str(folder), writers=writers))
    found = {row["part"]: row for row in rows("checkpoint", room)}
    assert list(folder.iterdir()) == []
    return found


def test_every_part_is_done_and_nothing_stays(tmp_path: Path) -> None:
    found = done(tmp_path / "x", seconds=4)
    parts = PARTS if takes_direct(str(tmp_path)) else [one for one in PARTS if "direct" not in one]
    assert list(found) == parts
    for part, row in found.items():
        assert row["trouble"] == ""
        assert row["done_bytes"] == row["count"] * row["block_bytes"] > 0
        assert row["elapsed_s"] > 0
        assert len(row["each_mbps"]) == row["processes"] == 2
        if part != "restore":
            assert (row["wrong"], row["compared"]) == (0, row["count"])
            assert 0 < row["stall_s"] <= row["durable_s"] == row["elapsed_s"]
    assert found["save while reading"]["reader_mbps"] > 0
    assert found["save"]["cached_bytes"] == found["save"]["done_bytes"]


def test_what_there_was_no_time_to_read_back_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(fd: int, buffers: list[memoryview], place: int) -> int:
        time.sleep(0.3)
        return os.preadv(fd, buffers, place)

    with_call(monkeypatch, preadv=slow)
    told = done(tmp_path / "x")["save"]
    assert (told["trouble"], told["compared"]) == ("", 2)  # the first of each shard
    assert told["note"] == f"of a save 2 of {told['count']} blocks were read back in time"


def test_two_checkpoints_fit_into_the_bytes(tmp_path: Path) -> None:
    """The one before stays until the new one is durable."""
    for size in (1 << 20, 64 << 20, 3 << 30):
        for writers in (1, 3, 64):
            shard = size // 2 // writers
            assert 64 << 10 <= block_bytes(shard) <= max(64 << 10, shard // 4)
    assert done(tmp_path / "x")["save"]["done_bytes"] <= 4 << 20


def test_the_sum_of_a_block_is_that_of_its_bytes_and_no_page_is_twice_there() -> None:
    blocks, pages = Blocks(300, 64 << 10), set[bytes]()
    for number in (0, 1, 2, 255, 256, 299):
        blocks.put(number)
        data = bytes(blocks.buffer)
        assert blocks.sum_of(number) == crc32(data)
        pages |= {data[at : at + 4096] for at in range(0, len(data), 4096)}
    assert len(pages) == 6 * 16


class Faulty:
    """os, with one call in a writer that is done otherwise."""

    def __init__(self, **calls: Callable[..., Any]) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return self._calls.get(name, getattr(os, name))


def name_of(fd: int) -> str:
    return Path(f"/proc/self/fd/{fd}").readlink().name


def with_call(monkeypatch: pytest.MonkeyPatch, **calls: Callable[..., Any]) -> None:
    monkeypatch.setattr(shards, "os", Faulty(**calls))


def test_another_byte_and_a_block_in_the_wrong_place_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def corrupt(fd: int, buffers: list[memoryview], place: int) -> int:
        count = os.preadv(fd, buffers, place)
        if place == 0:
            buffers[0][17] ^= 4
        return count

    with_call(monkeypatch, preadv=corrupt)
    assert done(tmp_path / "x")["save"]["wrong"] == 2  # the first of each shard

    def misplaced(fd: int, data: memoryview, place: int) -> int:
        return os.pwrite(fd, data, place and 65536 * 4)

    with_call(monkeypatch, pwrite=misplaced)
    told = done(tmp_path / "x", size=2 << 20)["save"]
    assert told["wrong"] > 0


def fails(number: int, after: int = 0) -> Callable[..., int]:
    """A call that fails with an errno, in each process after so many."""
    left = [after]

    def call(*given: Any) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(number, os.strerror(number))
        return os.pwrite(*given)

    return call


@pytest.mark.parametrize(
    ("call", "number", "words"),
    [("pwrite", errno.ENOSPC, "ENOSPC: No space left on device"),
     ("pwrite", errno.EIO, "EIO: Input/output error"),
     ("fsync", errno.EIO, "EIO: Input/output error"),
     ("fsync", errno.EDQUOT, "EDQUOT: Disk quota exceeded"),
     ("rename", errno.EROFS, "EROFS: Read-only file system")],
)  # fmt: skip
def test_an_error_is_told_and_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, words: str
) -> None:
    with_call(monkeypatch, **{call: fails(number)})
    assert done(tmp_path / "x") == {"save": {
        "kind": "pattern", "name": "checkpoint", "part": "save", "way": "write",
        "trouble": f"writer 0: {words}",
    }}  # fmt: skip


def test_what_was_measured_before_an_error_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def preadv(fd: int, buffers: list[memoryview], place: int) -> int:
        if name_of(fd) == "one":
            raise OSError(errno.EIO, "Input/output error")
        return os.preadv(fd, buffers, place)

    with_call(monkeypatch, preadv=preadv)
    found = done(tmp_path / "x")
    assert list(found)[-1] == "save, one file"
    assert found["save"]["trouble"] == ""
    assert found["save, one file"]["trouble"] == "read back, shard 0: EIO: Input/output error"
    assert found["save, one file"]["durable_s"] > 0


def test_a_writer_that_is_killed_and_one_that_hangs_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(fd: int) -> None:
        if name_of(fd) == "1.new":
            os.kill(os.getpid(), signal.SIGKILL)
        os.fsync(fd)

    with_call(monkeypatch, fsync=killed)
    assert done(tmp_path / "x")["save"]["trouble"] == (
        "writer 1: SIGKILL: it was killed, as where memory is short"
    )

    monkeypatch.setattr(saving, "together", partial(workers.together, beyond_s=0.2))
    with_call(monkeypatch, fsync=lambda _: time.sleep(60))
    began = time.monotonic()
    told = done(tmp_path / "x", seconds=0.1)["save"]["trouble"]
    assert told.startswith("writer 0: it gave no answer in ")
    assert time.monotonic() - began < 3


def test_a_sync_that_does_nothing_is_seen_at_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = iter([0, 0, 10 << 20, 11 << 20])  # the pilot; the save
    monkeypatch.setattr(saving, "written_to_device", lambda _: next(counted, None))
    found = done(tmp_path / "x")
    assert found["save"]["reached_percent"] == round(
        100 * (1 << 20) / found["save"]["done_bytes"], 2
    )
    assert "reached_percent" not in found["save, one file"]  # nothing is told of such a file system
