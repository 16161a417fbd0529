"""Where a bench of storage may write, and what it removes of earlier ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.model import Missing, Raw
from preflight.payload import owner
from preflight.payload.storage import fio, mounts, place
from preflight.payload.storage.harness import _way, harness
from preflight.payload.storage.jobs import Sizes, Way, job_file, sizes
from preflight.payload.storage.place import RefusedError, chosen, held, own_folder
from preflight.payload.storage.plan import Plan

TABLE = """\
25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 25 0:20 / /tmp rw shared:5 - tmpfs tmpfs rw
31 25 0:40 / /home rw - nfs4 server:/home rw,vers=4.2
32 25 0:41 / /scratch\\040a rw master:1 - lustre 10.0.0.1@o2ib:/fs rw
33 25 0:42 / /tmp rw - xfs /dev/nvme0n1 rw
34 25 0:43 / /mnt/s3 rw - fuse.s3fs s3fs rw
"""


@pytest.mark.parametrize(
    ("path", "kind", "shared"),
    [("/etc", "ext4", False), ("/home/me/x", "nfs4", True), ("/homework", "ext4", False),
     ("/scratch a/b", "lustre", True), ("/tmp/x", "xfs", False), ("/mnt/s3", "fuse.s3fs", True)],
)  # fmt: skip
def test_which_file_system_it_is(tmp_path: Path, path: str, kind: str, shared: bool) -> None:
    (tmp_path / "mountinfo").write_text(TABLE)
    found = mounts.mount_of(path, str(tmp_path / "mountinfo"))
    assert (found.kind, mounts.is_shared(found)) == (kind, shared)


def test_a_home_on_a_network_is_no_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"/tmp": "tmpfs", "/var/tmp": "nfs4"}

    def told(path: str) -> mounts.Mount:
        return mounts.Mount("/", kinds.get(path, "lustre"), "x")

    monkeypatch.setattr(place, "mount_of", told)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(RefusedError, match=r"/tmp is tmpfs, no local disk.*--dir DIR names one"):
        chosen("", 1 << 20)
    kinds[str(tmp_path)] = "ext4"
    assert chosen("", 1 << 20).path == str(tmp_path)


def test_a_tenth_stays_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def room(free: int) -> None:
        monkeypatch.setattr(place, "free_and_all", lambda _: (free, 100 << 30))

    room(11 << 30)
    assert held(str(tmp_path), 9 << 30).path == str(tmp_path)
    for free, size in ((11 << 30, 11 << 30), (9 << 30, 1 << 30)):
        room(free)
        with pytest.raises(RefusedError, match="a tenth stays free"):
            held(str(tmp_path), size)


@pytest.mark.parametrize(
    ("name", "words"),
    [("/dev/null", "a device, which is never written to"), ("file", "is a file, which is never"),
     ("none", "No such file or directory: mkdir -p"), ("file/x", "Not a directory")],
)  # fmt: skip
def test_what_is_no_directory_is_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RefusedError, match=words):
        held(str(tmp_path / name), 0)


def test_without_fio_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fio, "program", lambda: "")
    told: list[dict[str, Any]] = []
    harness(Plan(dir=str(tmp_path)), told.append)
    assert [one["kind"] for one in told] == ["begin", "proof", "cannot", "end"]
    assert told[2]["why"] == "no-fio"
    assert "apt install fio" in told[2]["text"]
    raw = Raw("x", "io-bench", ("python3",), 0, "\n".join(map(json.dumps, told)))
    jobs = assemble("x", [raw]).host.fio_jobs
    assert isinstance(jobs, Missing)
    assert jobs.kind == "no-tool"


def test_a_link_is_followed_and_told(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert held(str(tmp_path / "link"), 0).path == str(tmp_path / "real")


def test_what_is_no_more_is_removed_and_nothing_else(tmp_path: Path) -> None:
    where = held(str(tmp_path), 0)
    host, boot = owner.host(), owner.boot()
    kept = {
        f".preflight-io.{'0' * 12}.{boot}.1.5",  # of another host
        f".preflight-io.{host}.{boot.partition('-')[0]}-7.1.5",  # of another container
        f".preflight-io.{host}.{boot}.{os.getppid()}.{owner.start_of(os.getppid())}",
        f".preflight-io.{host}.x", "mine", ".preflight-io",
    }  # fmt: skip
    gone = {
        f".preflight-io.{host}.{boot}.{os.getpid()}.5",  # the number was given again
        f".preflight-io.{host}.{boot}.4194999.5",
        f".preflight-io.{host}.{'0' * 12}-{boot.partition('-')[2]}.1.5",  # of an earlier boot
    }
    for name in kept | gone:
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_text("x")
    with own_folder(where) as folder:
        names = {one.name for one in tmp_path.iterdir()}
        assert names == kept | {Path(folder).resolve().name}
    assert {one.name for one in tmp_path.iterdir()} == kept


def test_another_host_of_the_same_name_is_left_alone(tmp_path: Path) -> None:
    name = f".preflight-io.{owner.host()}.{'0' * 12}-1.1.5"
    for old in (False, True):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "data").write_text("x")
        if old:
            for one in (tmp_path / name / "data", tmp_path / name):
                os.utime(one, (1e9, 1e9))
        with own_folder(place.Place(str(tmp_path), mounts.Mount("/", "nfs4", "server:/"))):
            assert (tmp_path / name).exists() is not old


@pytest.mark.parametrize(
    ("works", "way"),
    [
        ({"io_uring1", "libaio1"}, Way("io_uring", True)),
        ({"libaio1", "psync1", "io_uring0"}, Way("libaio", True)),
        ({"psync0", "libaio0"}, Way("libaio", False)),
        (set(), None),
    ],
)
def test_the_way_is_what_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: set[str], way: Way | None
) -> None:
    def run(arguments: list[str], _folder: str, _seconds: float) -> fio.Ran:
        told = dict(one[2:].split("=") for one in arguments if "=" in one)
        well = told["ioengine"] + told["direct"] in works
        return fio.Ran(int(not well), {"jobs": [{"error": 0}]}, "fio: no")

    monkeypatch.setattr(fio, "run", run)
    found, said, _ = _way(str(tmp_path))
    assert found == way
    assert bool(said) == (way is None)


def test_bytes_are_no_more_than_asked_for() -> None:
    for total in (64 << 20, 1 << 30, 4 << 30, (1 << 30) + 12345):
        found = sizes(total)
        assert found.data + found.log <= total
        assert found.data > 0.9 * total


def test_jobs_that_read_twice_do_so_past_the_page_cache_only() -> None:
    direct = job_file(Way("io_uring", True), Sizes(1 << 30, 1 << 26), 2.5, 4)
    buffered = job_file(Way("psync", False), Sizes(1 << 30, 1 << 26), 2.5, 4)
    assert direct.count("time_based=1") == 4
    assert "time_based" not in buffered
    assert buffered.count("end_fsync=1") == 2
    assert "numjobs=4\niodepth=16" in direct
    assert "directory" not in direct


def test_a_directory_that_is_given_to_another_name_meanwhile(tmp_path: Path) -> None:
    """What is written stays where it began, and goes from there."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "other").mkdir()
    where = held(f"{tmp_path}/other/../mine", 0)
    assert where.path == str(tmp_path / "mine")
    with own_folder(where) as folder:
        (tmp_path / "mine").rename(tmp_path / "moved")
        (tmp_path / "mine").symlink_to("other")
        name = Path(folder).resolve().name
        (tmp_path / "other" / name).mkdir()
        (tmp_path / "other" / name / "data").write_text("of somebody else")
        Path(f"{folder}/data").write_text("x")
        assert (tmp_path / "moved" / name / "data").read_text() == "x"
    assert list((tmp_path / "moved").iterdir()) == []
    assert (tmp_path / "other" / name / "data").read_text() == "of somebody else"


def test_a_link_in_the_place_of_our_directory_is_not_followed(tmp_path: Path) -> None:
    """Who may write to the directory may rename what is in it."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "data").write_text("of somebody else")
    (tmp_path / "at").mkdir()
    with own_folder(held(str(tmp_path / "at"), 0)) as folder:
        real = Path(folder).resolve()
        real.rename(tmp_path / "at" / "away")
        real.symlink_to(target)
        Path(f"{folder}/data").write_text("x")
        assert (target / "data").read_text() == "of somebody else"
    assert (target / "data").read_text() == "of somebody else"
    assert not list((tmp_path / "at" / "away").iterdir())


def test_somebody_elses_directory_in_the_place_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    where = held(str(tmp_path), 0)
    refused = pytest.raises(RefusedError, match="another directory in the place of one")
    with refused, own_folder(where):
        pass
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
    with own_folder(where._replace(mount=mounts.Mount("/", "nfs4", "server:/"))):
        pass  # a server that squashes root tells of another owner
