"""Data read as loaders read it: what is told is what was done, and of what it is."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import time
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from preflight.facts.patterns import PATTERNS
from preflight.payload.storage import dataloader, loaders, patterns, small_files
from preflight.payload.storage.cached import dropped, resident
from preflight.payload.storage.harness import harness
from preflight.payload.storage.loaders import Shard, windows, written
from preflight.payload.storage.meeting import Meeting
from preflight.payload.storage.patterns import rows
from preflight.payload.storage.plan import Plan
from preflight.payload.storage.room import Room, Row
from preflight.payload.storage.workers import Told, together
from preflight.probes.fio.bench import io_bench
from tests.conftest import require

SIZE, WINDOW = 32 << 20, 128 << 10


def lets_go(folder: Path) -> bool:
    """Whether the page cache of this file system lets go of a file."""
    [one] = written([Shard(str(folder / "probe"), 1 << 20)], 0.0)
    found = dropped([one.path])
    Path(one.path).unlink()
    return found


def read(folder: Path, name: str = "dataloader", **over: Any) -> dict[str, Row]:
    room = Room(str(folder), SIZE, 1.2, memory=False, plan=Plan(workers=2))._replace(**over)
    return {row["part"]: row for row in rows(name, room)}


def test_cold_windows_come_from_the_device_and_no_byte_more(tmp_path: Path) -> None:
    require("a page cache that lets go", lets_go(tmp_path))
    told = read(tmp_path)
    assert {"mmap", "read", "read, cached", "mmap, cached"} <= set(told)
    assert not any(row["trouble"] for row in told.values())
    row = told["read"]
    assert row["through"] == "device"
    assert row["done_bytes"] == row["count"] * WINDOW > 0
    assert row["brought_bytes"] == pytest.approx(row["done_bytes"], rel=0.05)
    assert len(row["each_mbps"]) == 2
    assert row["done_bytes"] / row["elapsed_s"] / 1e6 <= 1.01 * sum(row["each_mbps"])
    assert told["mmap"]["through"] == "device"
    assert told["mmap, cached"]["through"] == "page cache"
    assert list(tmp_path.iterdir()) == []


def test_a_page_cache_that_does_not_let_go_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: None)
    told = read(tmp_path)
    assert {part: row["through"] for part, row in told.items()} == {
        "mmap": "page cache", "read": "page cache",
    }  # fmt: skip


def test_what_may_be_asked_for_is_what_there_is() -> None:
    assert patterns.ALL == PATTERNS


def test_memory_is_named(tmp_path: Path) -> None:
    told = read(tmp_path, memory=True, seconds=0.5)
    assert {part: row["through"] for part, row in told.items()} == {
        "mmap": "memory", "read": "memory",
    }  # fmt: skip


def test_what_is_in_the_page_cache_is_seen(tmp_path: Path) -> None:
    require("a page cache that lets go", lets_go(tmp_path))
    path = tmp_path / "x"
    path.write_bytes(os.urandom(1 << 20))
    with path.open("rb") as file:
        assert resident(file.fileno(), 1 << 20) == 1 << 20
        os.fsync(file.fileno())
        assert dropped([str(path)])
        assert resident(file.fileno(), 1 << 20) == 0


def test_a_window_comes_once_and_those_of_maps_lie_apart() -> None:
    shards = [Shard("a", 10 * WINDOW), Shard("b", 7 * WINDOW + 5), Shard("c", WINDOW)]
    every = windows(shards, WINDOW, 1, seed=1)
    assert len(every) == len(set(every)) == 18
    assert all(at + WINDOW <= shards[number].size for number, at in every)
    assert list(every) != sorted(every)
    some = sorted(at for number, at in windows(shards, WINDOW, 3, seed=2) if number == 0)
    assert {two - one for one, two in pairwise(some)} == {3 * WINDOW}


def test_what_is_written_cannot_be_stored_as_less(tmp_path: Path) -> None:
    until = time.monotonic() + 60
    [one, other] = written([Shard(str(tmp_path / name), 3 << 20) for name in "ab"], until)
    data = Path(one.path).read_bytes() + Path(other.path).read_bytes()
    assert len(data) == one.size + other.size == 6 << 20
    assert len(zlib.compress(data, 1)) > 0.99 * len(data)
    pages = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    assert len(set(pages)) == len(pages)


def test_a_slow_disk_gets_less_written(tmp_path: Path) -> None:
    shards = [Shard(str(tmp_path / str(number)), 20 << 20) for number in range(3)]
    assert [one.size for one in written(shards, 0.0)] == [8 << 20]


def _dies(*_: object) -> Told:
    faulthandler.disable()
    os.kill(os.getpid(), signal.SIGBUS)
    return {}


def _hangs(*_: object) -> Told:
    time.sleep(60)
    return {}


def test_a_worker_that_dies_says_of_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dataloader._READS, "mmap", _dies)
    told = read(tmp_path, seconds=0.5)
    assert told["mmap"]["trouble"].startswith("SIGBUS: a mapped page could not be read")
    assert told["read"]["trouble"] == ""


def test_what_hangs_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataloader, "_round", lambda *_: together(2, _hangs, 0.1, beyond_s=0.1))
    told = read(tmp_path, seconds=0.5)
    assert list(told) == ["mmap"]
    assert told["mmap"]["trouble"].startswith("it gave no answer in")


def test_a_shard_that_ends_early_is_told(tmp_path: Path) -> None:
    [shard] = written([Shard(str(tmp_path / "x"), 1 << 20)], 0.0)
    os.truncate(shard.path, 1 << 19)
    order = windows([shard], WINDOW, 1, seed=1)
    told = loaders.through_read([shard], order, WINDOW, time.monotonic() + 5)
    assert told["trouble"].startswith("EIO: a shard ended at")


def test_too_few_bytes_are_told_with_what_to_change(tmp_path: Path) -> None:
    [row] = read(tmp_path, size_bytes=1 << 19).values()
    assert "--size, --workers, --window" in row["trouble"]


def test_small_files_lie_in_many_directories(tmp_path: Path) -> None:
    names = small_files._names(str(tmp_path), 1234)
    places = small_files._directories(names)
    assert len(set(names)) == 1234
    assert (len(places), len({place.rpartition("/")[0] for place in places})) == (13, 2)


def test_small_files_are_counted_by_what_was_done_to_them(tmp_path: Path) -> None:
    told = read(tmp_path, "small-files", size_bytes=1 << 20, seconds=4.0)
    assert list(told) == ["create", "list", "stat", "read", "rename", "delete"]
    assert not any(row["trouble"] for row in told.values())
    made = told["create"]["count"]
    assert {told[part]["count"] for part in ("stat", "read")} == {made}
    assert told["list"]["count"] <= made / 50 + 8
    assert told["stat"]["through"] == "page cache"
    if lets_go(tmp_path):
        assert told["read"]["through"] == "device"


def test_a_directory_that_loses_a_name_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sound", "lossy"):
        (tmp_path / name).mkdir()
    sound = small_files._list
    assert read(tmp_path / "sound", "small-files", seconds=1.0)["list"]["wrong"] == 0
    monkeypatch.setattr(small_files, "_list", lambda path: sound(path)[1:])
    told = read(tmp_path / "lossy", "small-files", seconds=1.0)["list"]
    assert told["wrong"] == told["count"] > 0


def test_of_a_share_it_is_told_who_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_files, "is_shared", lambda _: True)
    told = small_files._through(Room(str(tmp_path), 0, 0.0, memory=False, plan=Plan()))
    assert (told["create"], told["stat"]) == ("server", "client's cache")


def test_a_bench_of_loaders_is_read_back(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    plan = Plan(str(tmp_path), 16 << 20, 1.0, patterns=("dataloader", "small-files"), workers=3,
                window_bytes=64 << 10, demand_mbps=0.5)  # fmt: skip
    harness(plan, lines.append)
    found = io_bench("".join(f"{json.dumps(one)}\n" for one in lines)).patterns
    assert {one.pattern for one in found} == {"dataloader", "small-files"}
    cold = next(one for one in found if one.name == "dataloader read")
    assert (cold.processes, cold.block_bytes, cold.demand_mbps) == (3, 64 << 10, 0.5)
    assert isinstance(cold.slowest_mbps, float)
    assert list(tmp_path.iterdir()) == []


def test_hosts_that_share_a_directory_read_at_once(tmp_path: Path) -> None:
    def host(at: int) -> Told:
        folder = tmp_path / f".preflight-io.host{at}.boot.1.{at}"
        folder.mkdir()
        met = Meeting(str(tmp_path), str(folder), "0123456789abcdef", 2, f"node-{at}")
        return {"rows": read(folder, meeting=met), "missed": met.missed}

    first, other = together(2, host, 60)
    told = first["rows"]["read, all hosts"]
    assert [name for name, _ in told["hosts_mbps"]] == ["node-0", "node-1"]
    each = [one["rows"]["read"] for one in (first, other)]
    assert told["done_bytes"] == sum(one["done_bytes"] for one in each)
    assert "read, all hosts" not in other["rows"]
    # What comes after it is begun together too.
    assert (first["missed"], other["missed"]) == ("", "")


def test_nobody_waits_for_a_host_that_has_failed(tmp_path: Path) -> None:
    def host(at: int) -> Told:
        folder = tmp_path / f".preflight-io.host{at}.boot.1.{at}"
        folder.mkdir()
        met = Meeting(str(tmp_path), str(folder), "0123456789abcdef", 2, f"node-{at}")
        return {"rows": read(folder, meeting=met, size_bytes=SIZE if at else 0)}

    began = time.monotonic()
    first, other = together(2, host, 60)
    assert first["rows"]["read"]["trouble"]
    assert other["rows"]["read"]["trouble"] == ""
    assert time.monotonic() - began < 20
