"""A bench of an object store: on a real server that speaks S3, in memory, in files. Nothing stays,
and what was there before is not touched."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from preflight.cli.objects import most_objects
from preflight.payload import owner
from preflight.payload.objects import burst, folders, harness, own
from preflight.payload.objects.exchanges import Exchanges
from preflight.payload.objects.phases import PART_BYTES, parts, phases
from preflight.payload.objects.plan import Plan
from tests.conftest import require
from tests.lab import s3

Line = dict[str, Any]


@pytest.fixture(autouse=True)
def _no_process_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has threads: tests of the command see the keeper at work."""

    class Nobody:
        def __init__(self, _: object) -> None:
            pass

        def dismiss(self) -> None:
            pass

    monkeypatch.setattr(own, "Keeper", Nobody)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[s3.Store]:
    require("s3fs", find_spec("s3fs") is not None)
    store = s3.Store(objects={"runs/me/theirs": b"x"})
    with s3.serving(store) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield store
    assert store.objects.pop("runs/me/theirs") == b"x"


def ran(url: str = f"s3://{s3.BUCKET}/runs/me", **plan: Any) -> dict[str, list[Line]]:
    """Its lines, by kind. Few bytes: of what is at least put of each kind."""
    told: dict[str, list[Line]] = {}
    given = {"size_bytes": 1 << 20, "seconds": 10.0, **plan}
    harness.harness(Plan(url, **given), lambda line: told.setdefault(line["kind"], []).append(line))
    return told


def only_theirs(store: s3.Store) -> bool:
    return list(store.objects) == ["runs/me/theirs"] and not store.uploads


def test_objects_are_put_and_got_by_several_at_once_and_removed(store: s3.Store) -> None:
    told = ran()
    assert told["reached"][0]["ok"] is True
    assert [(one["op"], one["at_once"], len(one["taken_us"])) for one in told["way"]] == [
        (op, at_once, at_once) for _ in (1, 2) for at_once in (1, 4, 16) for op in ("put", "get")
    ]  # fmt: skip
    assert all(one["failed"] == one["hung"] == 0 for one in told["way"])
    assert told["listed"][0]["missing"] == told["content"][0]["wrong"] == 0
    assert told["content"][0]["read"] == 43
    assert told["parts"][0]["ok"] is True
    assert store.asked.count("part") == 2
    assert told["removed"] == [{"kind": "removed", "left": 0, "text": ""}]
    # Every request is seen on the wire, and nothing else but uploads in parts and the list.
    assert 84 + 4 <= told["exchanges"][0]["seen"] <= 84 + 10
    assert told["exchanges"][0]["troubled"] == 0
    assert only_theirs(store)


def test_what_the_library_tries_again_unseen_is_counted_and_other_bytes_are(
    store: s3.Store,
) -> None:
    store.throttles, store.corrupts = 8, 10
    told = ran()
    (wire,) = told["exchanges"]
    assert sum(one["failed"] for one in told["way"]) == 0
    assert wire["throttled"] == wire["statuses"]["503"] >= 10
    assert told["content"][0]["wrong"] >= 4
    assert only_theirs(store)


def test_what_the_list_leaves_out_is_told_and_removed_all_the_same(store: s3.Store) -> None:
    store.forgets, store.denies = 3, ("begin",)
    told = ran()
    assert told["listed"][0]["missing"] == 3
    (line,) = told["parts"]
    assert (line["ok"], line["text"].startswith("access denied")) == (False, True)
    assert only_theirs(store)


@pytest.mark.parametrize(
    ("denies", "words"),
    [("put", "put: access denied: AccessDenied"), ("get", "get: access denied"),
     ("list", "list: access denied"), ("delete", "remove: access denied")],
)  # fmt: skip
def test_nothing_more_is_put_where_it_could_not_be_removed(
    store: s3.Store, denies: str, words: str
) -> None:
    store.denies = (denies,)
    told = ran()
    assert told["reached"][0]["text"].startswith(words)
    assert "way" not in told
    # Where the list is refused what was put is removed by its name.
    assert len(store.objects) == (2 if denies == "delete" else 1)
    left = {"delete": 1, "list": -1}.get(denies, 0)
    assert told["removed"][0]["left"] == left
    store.objects = {"runs/me/theirs": b"x"}


@pytest.mark.parametrize(
    ("change", "words"),
    [({"AWS_ACCESS_KEY_ID": "AKIAWRONGWRONGWRONG0"}, "put: access denied: InvalidAccessKeyId"),
     ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "put: no credentials found"),
     ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "2"}, "put: no connection: ")],
)  # fmt: skip
def test_why_it_was_not_reached(
    store: s3.Store, monkeypatch: pytest.MonkeyPatch, change: dict[str, str], words: str
) -> None:
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    told = ran()
    assert told["reached"][0]["text"].startswith(words)
    assert s3.SECRET not in str(told)
    assert only_theirs(store)


def test_no_bucket(store: s3.Store) -> None:
    assert ran("s3://nobodys/x")["reached"][0]["text"].startswith("put: no such bucket: NoSuchB")
    assert only_theirs(store)


def test_a_store_that_never_answers_is_not_waited_for(
    store: s3.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "_REACHES_S", 2.0)
    monkeypatch.setattr(own, "_TRIES_S", 0.2)
    store.answers = 0
    began = time.monotonic()
    told = ran()
    assert time.monotonic() - began < 10
    assert told["reached"][0]["text"] == "put: no answer: NoAnswerError: no answer within 2 s"
    assert told["removed"][0]["left"] == -1


def test_one_that_throttles_always(store: s3.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    store.throttles = 1
    assert ran()["reached"][0]["text"].startswith("put: throttled: ")
    assert only_theirs(store)


def test_while_the_library_tries_again_the_wire_tells_why() -> None:
    wire = Exchanges()
    wire.statuses.update({503: 12})
    assert wire.why_none() == "throttled: all of 12 answers were 503"
    wire.statuses.update({200: 1})
    assert wire.why_none() == ""


def test_one_that_falls_silent_is_left_in_time(
    store: s3.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(burst, "GRACE_S", 0.1)
    monkeypatch.setattr(harness, "_REACHES_S", 5.0)
    monkeypatch.setattr(own, "_REMOVES_S", 0.3)
    store.answers = 15
    told = ran(seconds=1.0)
    assert [one["hung"] > 0 for one in told["way"]][-2:] == [False, True]
    assert told["removed"][0]["left"] == -1
    assert "parts" not in told
    store.goes_on.set()
    store.objects = {"runs/me/theirs": b"x"}


def test_what_killed_runs_left_is_removed_and_what_runs_is_not(store: s3.Store) -> None:
    me = owner.name(".preflight-objects-1790000000")
    words = me.split(".")
    gone = ".".join([*words[:-1], "5"])  # that process has ended: the number is another's
    now = f".preflight-objects-{int(time.time())}"
    theirs = f"{now}.{'0' * 12}.{words[3]}.7.7"  # another host's, of today
    old = f".preflight-objects-1700000000.{'0' * 12}.{words[3]}.7.7"
    alike = ".preflight-objects-mine"
    for one in (gone.replace("1790000000", now[-10:]), theirs, old, alike):
        store.objects[f"runs/me/{one}/small-1-000000"] = b"x"
    store.uploads["u"] = (f"runs/me/{old}x/in-parts", {})
    store.uploads["v"] = (f"runs/me/{gone}/in-parts", {})
    told = ran()
    assert told["reached"][0]["left"] == 3
    assert {one.split("/")[2] for one in store.objects} == {"theirs", theirs, alike}
    assert list(store.uploads) == ["u"]
    store.objects = {"runs/me/theirs": b"x"}


def test_files(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("x")
    told = ran(f"file://{tmp_path}")
    assert told["reached"][0]["ok"] is True
    assert [len(one["taken_us"]) for one in told["way"]] == [1, 1, 4, 4, 16, 16] * 2
    assert told["exchanges"][0]["seen"] == 0
    assert [one.name for one in tmp_path.iterdir()] == ["theirs"]


def test_files_that_stay_in_memory_are_told_as_such() -> None:
    require("/dev/shm", os.access("/dev/shm", os.W_OK))
    with TemporaryDirectory(dir="/dev/shm") as folder:
        told = ran(f"file://{folder}")
    assert {one["cached"] for one in told["way"] if one["op"] == "get"} == {True}


def test_a_link_that_is_called_as_what_was_left_is_not_followed(tmp_path: Path) -> None:
    """Neither by name nor below a folder that was left."""
    theirs, here = tmp_path / "theirs", tmp_path / "here"
    theirs.mkdir()
    here.mkdir()
    (theirs / "data").write_text("x")
    words = owner.name(f".preflight-objects-{int(time.time())}").split(".")
    link, left = (here / ".".join([*words[:-2], pid, "5"]) for pid in ("4194305", "4194306"))
    link.symlink_to(theirs)
    left.mkdir()
    (left / "nested").symlink_to(theirs)
    assert ran(f"file://{here}")["removed"][0]["left"] == 0
    assert (theirs / "data").read_text() == "x"
    assert (link.is_symlink(), left.exists()) == (True, False)


def test_a_folder_of_the_run_that_became_a_link_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "data").write_text("x")
    (tmp_path / "own").symlink_to(tmp_path / "theirs")
    left, said = folders.remove(f"{tmp_path}/own")
    assert (left, "no directory any more" in said) == (-1, True)
    assert (tmp_path / "theirs" / "data").exists()


def test_what_aiohttp_itself_tries_again_is_counted(store: s3.Store) -> None:
    store.drops = 6
    told = ran()
    assert sum(one["failed"] for one in told["way"]) == 0
    assert store.dropped >= 6
    assert told["exchanges"][0]["statuses"]["0"] == store.dropped
    assert told["exchanges"][0]["troubled"] == store.dropped


def test_sixteen_at_once_are(store: s3.Store) -> None:
    store.slow_s = 0.1
    ran()
    assert store.most_at_once == 16


def test_uploads_that_cannot_be_looked_for_are_told_where_one_may_be_open(
    store: s3.Store,
) -> None:
    store.denies = ("uploads",)
    assert ran()["removed"][0]["left"] == 0  # the one that was begun is whole
    store.denies = ("uploads", "part")
    (line,) = ran()["removed"]
    assert line["left"] == -1
    assert line["text"].startswith("unfinished uploads were not looked for: access denied")
    store.uploads.clear()


def test_what_was_acknowledged_and_is_gone_is_lost_and_no_missing_bucket(store: s3.Store) -> None:
    store.loses = 9
    told = ran()
    lost = sum(one["lost"] for one in told["way"])
    assert lost == told["content"][0]["lost"] == 2
    assert sum(one["failed"] for one in told["way"]) == 0
    said = [each for one in told["way"] for each in one["said"]]
    assert said and all(one.startswith("no such object: ") for one in said)


def test_files_are_put_where_any_bench_may_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (line,) = ran(f"file://{tmp_path}/file")["cannot"]
    assert "is a file, which is never written to" in line["text"]
    (line,) = ran(f"file://{tmp_path}", size_bytes=1 << 50)["cannot"]
    assert "a tenth stays free" in line["text"]


def test_memory() -> None:
    told = ran("memory://runs")
    assert told["reached"][0]["ok"] is True
    assert told["removed"][0]["left"] == 0


def test_a_protocol_that_nobody_knows() -> None:
    (line,) = ran("nfs5://x/y")["cannot"]
    assert (line["why"], "fsspec knows no nfs5://" in line["text"]) == ("protocol", True)


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = import_module("fsspec")

    def absent(_: str) -> None:
        raise ImportError("Install adlfs")

    monkeypatch.setattr(fsspec, "get_filesystem_class", absent)
    (line,) = ran("abfs://x/y")["cannot"]
    assert (line["why"], line["text"].endswith("-m pip install adlfs")) == ("no-library", True)


@pytest.mark.parametrize("size_mb", [64, 256, 1000, 16384])
def test_no_more_is_put_than_was_said(size_mb: int) -> None:
    size = size_mb << 20
    put = sum(one.objects * one.size_bytes for one in phases(size)) + parts(size) * PART_BYTES
    assert 0.9 * size <= put <= size or size_mb > 1000
    assert put <= size
    objects = sum(one.objects for one in phases(size))
    assert objects <= most_objects(size) <= 1.1 * objects + 30
    assert {one.at_once for one in phases(size)} == {1, 4, 16}


def test_the_default_tells_of_one_in_a_thousand() -> None:
    assert 2 * sum(one.objects for one in phases(Plan("x").size_bytes)) > 3000


def test_names_tell_whose_they_are() -> None:
    mine = own.own_name()
    assert mine.endswith(f".{os.getpid()}.{owner.start_of(os.getpid())}")
    assert not own.is_left(mine)
    assert not own.is_left("theirs")
