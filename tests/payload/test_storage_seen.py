"""Hosts that share a directory see each other's renames: played by threads, each with a directory
of its own in one place."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from preflight.payload.storage import harness as harness_of
from preflight.payload.storage import seen as looked
from preflight.payload.storage.harness import harness
from preflight.payload.storage.mounts import Mount
from preflight.payload.storage.place import Place, own_folder
from preflight.payload.storage.plan import Plan
from preflight.payload.storage.proof import WORKS
from preflight.payload.storage.seen import seen
from preflight.probes.storage.proofs import proofs_in
from tests.storage_text import PROOF, SEEN

JOB = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looked, "COMES_S", 20.0)
    monkeypatch.setattr(looked, "SEES_S", 20.0)
    monkeypatch.setattr(looked, "LOOKS_S", 0.005)


def together(place: Path, hosts: int, job: str = JOB) -> list[dict[str, Any]]:
    folders = [place / f".preflight-io.host{at}.boot.1.{at}" for at in range(hosts)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(hosts) as pool:
        return list(pool.map(lambda one: seen(str(place), str(one), job, hosts), folders))


def test_three_hosts_see_each_other(tmp_path: Path) -> None:
    for told in together(tmp_path, 3):
        assert (told["other_hosts"], told["hosts"]) == (WORKS, 3)
        assert 0 <= told["other_hosts_s"] < 20


def test_a_host_that_does_not_come_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looked, "COMES_S", 0.05)
    folder = tmp_path / ".preflight-io.a.b.1.2"
    folder.mkdir()
    told = seen(str(tmp_path), str(folder), JOB, 2)
    assert told["other_hosts"] == "1 of 2 hosts were seen there within 0.05 s"


def other(tmp_path: Path, data: bytes) -> Path:
    """What lies in another host's directory."""
    folder = tmp_path / ".preflight-io.other.b.1.2"
    folder.mkdir()
    (folder / "seen").write_bytes(data)
    return folder


def test_a_part_of_a_file_is_named(tmp_path: Path) -> None:
    other(tmp_path, f"{JOB} 1 preflight prefl".encode())
    folder = tmp_path / ".preflight-io.a.b.1.2"
    folder.mkdir()
    told = seen(str(tmp_path), str(folder), JOB, 2)
    assert told["other_hosts"] == "a part of another host's file was seen"


def test_a_new_version_that_is_never_seen_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a client that never asks its server again."""
    monkeypatch.setattr(looked, "SEES_S", 0.05)
    mine, stale = (tmp_path / f".preflight-io.{name}.b.1.2" for name in ("a", "stale"))
    mine.mkdir()
    stale.mkdir()
    looked._Published(str(stale), JOB).put(1)
    told = seen(str(tmp_path), str(mine), JOB, 2)
    assert told["other_hosts"] == "the new version of 1 was not seen in 0.05 s"


def test_files_of_another_job_and_odd_ones_are_passed_over(tmp_path: Path) -> None:
    folder = other(tmp_path, b"")
    looked._Published(str(folder), "another job").put(2)
    fifo = tmp_path / ".preflight-io.fifo.b.1.2"
    fifo.mkdir()
    os.mkfifo(fifo / "seen")
    assert [told["other_hosts"] for told in together(tmp_path, 2)] == [WORKS, WORKS]


def test_hosts_of_a_bench_look_only_where_they_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(dir=str(tmp_path), size_bytes=1 << 20, hosts=2, measure=False, job=JOB)
    alone: list[dict[str, Any]] = []
    harness(plan, alone.append)
    assert [one["kind"] for one in alone] == ["begin", "proof", "end"]
    monkeypatch.setattr(harness_of, "is_shared", lambda _mount: True)
    monkeypatch.setattr(looked, "COMES_S", 0.05)
    told: list[dict[str, Any]] = []
    harness(plan, told.append)
    assert [one["kind"] for one in told] == ["begin", "proof", "seen", "end"]
    assert list(tmp_path.iterdir()) == []


def test_it_looks_where_a_bench_has_its_directories(tmp_path: Path) -> None:
    with own_folder(Place(str(tmp_path), Mount("/", "ext4", ""))) as folder:
        looked._Published(folder, JOB).put(1)
        assert list(looked._look(str(tmp_path), JOB).values()) == [1]


def test_it_is_read_beside_what_was_tried() -> None:
    (found,) = proofs_in(PROOF + SEEN, "io-bench")
    assert (found.other_hosts, found.other_hosts_s) == (WORKS, 3.2)
