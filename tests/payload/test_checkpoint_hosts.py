"""Several hosts in one shared directory save and load at once: played by processes, each with a
directory of its own in one place."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from pathlib import Path
from typing import Any

import pytest

from preflight.payload.storage import meeting as meeting_of
from preflight.payload.storage import shards
from preflight.payload.storage.meeting import Meeting
from preflight.payload.storage.patterns import rows
from preflight.payload.storage.plan import Plan
from preflight.payload.storage.room import Room
from preflight.payload.storage.seen import FOLDERS
from preflight.payload.storage.workers import together

JOB = "0123456789abcdef"
Rows = dict[str, dict[str, Any]]


def hosts(place: Path, count: int, wanted: int = 0) -> list[Rows]:
    """The rows of each by part."""

    def host(at: int) -> dict[str, Any]:
        folder = place / f".preflight-io.host{at}.boot.1.{at}"
        folder.mkdir()
        met = Meeting(str(place), str(folder), JOB, wanted or count, f"node-{at}")
        plan = Plan(dir=str(place), writers=2)
        room = Room(str(folder), 4 << 20, 3.0, memory=False, plan=plan, meeting=met)
        return {"rows": {row["part"]: row for row in rows("checkpoint", room)}}

    return [one["rows"] for one in together(count, host, 60)]


def test_all_begin_together_and_one_tells_what_all_reached(tmp_path: Path) -> None:
    first, *others = hosts(tmp_path, 3)
    for part in ("save", "restore", "save while reading"):
        told = first[f"{part}, all hosts"]
        each = [one[part] for one in (first, *others)]
        assert told["done_bytes"] == sum(one["done_bytes"] for one in each)
        assert told["elapsed_s"] == max(one["elapsed_s"] for one in each)
        assert [name for name, _ in told["hosts_mbps"]] == ["node-0", "node-1", "node-2"]
        assert told["processes"] == 6
        assert told["apart_s"] >= 0
    assert not any("all hosts" in part for one in others for part in one)
    assert {row.get("note", "") for row in first.values()} == {""}


def test_a_restart_reads_the_shards_of_another_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own are in its memory."""
    restored = shards.restored

    def noted(shard: shards.Shard, *more: Any) -> dict[str, Any]:
        return {**restored(shard, *more), "trouble": shard.path.split(".host")[1][0]}

    monkeypatch.setattr("preflight.payload.storage.checkpoint.restored", noted)
    told = [one["restore"]["trouble"] for one in hosts(tmp_path, 3)]
    assert told == ["reader 0: 1", "reader 0: 2", "reader 0: 0"]


def test_a_host_that_does_not_come_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meeting_of, "COMES_S", 0.3)
    for one in hosts(tmp_path, 2, wanted=3):
        assert "save while reading" in one
        assert not any("all hosts" in part for part in one)
        assert one["save"]["note"] == (
            "not begun together with the other hosts: 2 of 3 hosts came in time"
        )


def test_a_host_that_fails_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go on together."""
    rename = os.rename

    def broken(source: str, target: str) -> None:
        if ".host1." in source and source.endswith("/one.new"):
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", broken)
    first, failed, last = hosts(tmp_path, 3)
    assert "EIO" in failed["save, one file"]["trouble"]
    assert [name for name, _ in first["save, all hosts"]["hosts_mbps"]] == [
        "node-0", "node-1", "node-2",
    ]  # fmt: skip
    assert [name for name, _ in first["restore, all hosts"]["hosts_mbps"]] == ["node-0", "node-2"]
    assert last["restore"]["note"] == ""


def test_who_is_through_stays_until_the_others_are(tmp_path: Path) -> None:
    """One that is slow to look still finds what it waits for."""
    folders = [tmp_path / f"{FOLDERS}{name}" for name in "ab"]
    for one in folders:
        one.mkdir()
    first, second = (Meeting(str(tmp_path), str(one), "job", 2) for one in folders)
    with ThreadPoolExecutor(2) as beside:
        met = beside.submit(first.meet, "part", {"x": 1})
        second._step += 1
        second._put()  # it has come, and has not looked yet
        assert len(met.result(timeout=10)) == 2
        stays = beside.submit(first.stay)
        with pytest.raises(LateError):
            stays.result(timeout=0.3)
        second._step -= 1
        assert len(second.meet("part")) == 2
        second.leave()
        stays.result(timeout=10)
