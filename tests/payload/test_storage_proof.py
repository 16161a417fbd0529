"""What a checkpoint takes for granted of a file system, tried: on those of this machine it works,
and what breaks it is told by its name."""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.model import Missing, Raw
from preflight.payload.storage import fio
from preflight.payload.storage import proof as tried
from preflight.payload.storage.harness import harness
from preflight.payload.storage.plan import Plan
from preflight.payload.storage.proof import WORKS, proof
from preflight.probes.storage.proofs import proofs_in
from tests.conftest import require
from tests.storage_text import PROOF

TRIALS = ("rename", "fsync", "directory_fsync", "read_back", "flock", "posix_lock", "map",
          "symlink")  # fmt: skip


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tried, "_RENAMING_S", 0.15)
    monkeypatch.setattr(tried, "_FSYNCING_S", 0.1)


def test_a_local_file_system_keeps_all_of_it(tmp_path: Path) -> None:
    told = proof(str(tmp_path))
    assert {name: told[name] for name in TRIALS} == dict.fromkeys(TRIALS, WORKS)
    assert (told["case"], told["fsync_n"] >= 1, told["renames"] >= 1) == ("kept", True, True)
    assert 0 < told["fsync_s"] <= told["fsync_most_s"] < 10
    assert json.loads(json.dumps(told)) == told
    written = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert written < 1 << 20


def test_memory_does_too() -> None:
    require("/dev/shm", os.access("/dev/shm", os.W_OK))
    folder = Path("/dev/shm") / f"preflight-test-{os.getpid()}"
    folder.mkdir()
    try:
        told = proof(str(folder))
        assert {told[name] for name in TRIALS} == {WORKS}
        assert told["fsync_s"] < 0.001
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def error(number: int) -> Callable[..., Any]:
    def fails(*_args: Any, **_more: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fails


def test_a_rename_that_is_a_copy_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a store of objects behind FUSE does it: gone for a moment, then there in parts."""

    def by_parts(source: str, target: str) -> None:
        data = Path(source).read_bytes()
        with Path(target).open("wb") as file:
            file.write(data[:1000])
            file.flush()
            time.sleep(0.002)
            file.write(data[1000:])
        Path(source).unlink()

    monkeypatch.setattr(os, "rename", by_parts)
    assert proof(str(tmp_path))["rename"] == "a reader saw a part of it"

    def gone_first(source: str, target: str) -> None:
        Path(target).unlink()
        time.sleep(0.002)
        Path(source).replace(target)

    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr(os, "rename", gone_first)
    assert proof(str(other))["rename"] == "a reader found no file"


def test_a_rename_that_is_lost_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "rename", lambda source, _target: Path(source).unlink())
    assert proof(str(tmp_path))["rename"] == "the last version is not there"


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSYS])
def test_an_fsync_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "fsync", error(number))
    told = proof(str(tmp_path))
    assert told["fsync"] == told["directory_fsync"] == errno.errorcode[number]
    assert "fsync_s" not in told


def test_locks_that_hold_nobody_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    monkeypatch.setattr(fcntl, "lockf", lambda *_: None)
    told = proof(str(tmp_path))
    assert told["flock"] == told["posix_lock"] == "two hold it at once"


def test_locks_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", error(errno.ENOSYS))
    monkeypatch.setattr(fcntl, "lockf", error(errno.ENOLCK))
    told = proof(str(tmp_path))
    assert (told["flock"], told["posix_lock"]) == ("ENOSYS", "ENOLCK")


def test_other_bytes_than_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: bytes(len(read(fd, size))))
    assert proof(str(tmp_path))["read_back"] == "what was read is not what was written"


def test_links_maps_and_direct_writes_that_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "symlink", error(errno.EPERM))
    monkeypatch.setattr(mmap, "mmap", error(errno.ENODEV))
    told = proof(str(tmp_path))
    assert (told["symlink"], told["map"], told["direct"]) == ("EPERM", "ENODEV", "ENODEV")


def test_a_full_file_system_is_named_and_no_trial_hides_another(tmp_path: Path) -> None:
    require("root, to mount", os.geteuid() == 0)
    script = (
        "import ctypes, json, sys\n"
        "libc = ctypes.CDLL(None)\n"
        "assert libc.unshare(0x20000) == 0\n"
        "assert libc.mount(b'none', b'/', None, 0x44000, None) == 0\n"
        "assert libc.mount(b'none', sys.argv[1].encode(), b'tmpfs', 0, b'size=8k') == 0\n"
        "from preflight.payload.storage.proof import proof\n"
        "print(json.dumps(proof(sys.argv[1])))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True,
                          text=True, timeout=30)  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["read_back"] == "ENOSPC"
    assert set(TRIALS) <= set(told)


def test_who_is_killed_leaves_no_process(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom preflight.payload.storage import proof as tried\n"
        "tried._RENAMES, tried._RENAMING_S = 10**9, 60\ntried.proof(sys.argv[1])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], start_new_session=True
    ) as one:
        until = time.monotonic() + 15
        while not (tmp_path / "rename" / "next").exists() and time.monotonic() < until:
            time.sleep(0.01)
        children = Path(f"/proc/{one.pid}/task/{one.pid}/children")
        require("the kernel's list of children", children.exists())
        (child,) = map(int, children.read_text().split())
        os.kill(one.pid, signal.SIGKILL)
    until = time.monotonic() + 5
    while _runs(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_is_read_with_where_it_was(tmp_path: Path) -> None:
    begin = {"preflight": "io-bench/1", "kind": "begin", "mount": "/data", "fs": "nfs4"}
    text = "\n".join(json.dumps(line) for line in (begin, proof(str(tmp_path)), {"kind": "end"}))
    (found,) = proofs_in(text, "io-bench")
    assert (found.name, found.kind, found.line, found.rename) == ("/data", "nfs4", 2, WORKS)
    assert isinstance(found.fsync_s, float)


def test_without_fio_the_directory_is_tried_and_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fio, "program", lambda: "")
    told: list[dict[str, Any]] = []
    harness(Plan(dir=str(tmp_path), size_bytes=1 << 20), told.append)
    assert [one["kind"] for one in told] == ["begin", "proof", "cannot", "end"]
    assert list(tmp_path.iterdir()) == []
    raw = Raw("x", "io-bench", ("python3",), stdout="\n".join(map(json.dumps, told)))
    host = assemble("x", [raw]).host
    assert not isinstance(host.storage.proofs, Missing)
    assert host.storage.proofs[0].rename == WORKS
    assert isinstance(host.fio_runs, Missing)
    assert host.fio_runs.kind == "no-tool"


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ('{"preflight":"io-bench/1","kind":"cannot","text":"/x is a device"}\n', "not-asked",
         "/x is a device"),
        ('{"preflight": "io-bench/1", "kind": "begin"}\n', "exited", "did not come so far"),
    ],
)  # fmt: skip
def test_a_directory_that_was_not_tried(text: str, kind: str, said: str) -> None:
    found = assemble("x", [Raw("x", "io-bench", ("python3",), stdout=text)]).host.storage.proofs
    assert isinstance(found, Missing)
    assert (found.kind, said in found.text) == (kind, True)


def test_a_line_that_lacks_a_trial_does_not_pass() -> None:
    (found,) = proofs_in(PROOF.replace('"flock": "works", ', ""), "io-bench")
    assert isinstance(found.flock, Missing)
    assert found.flock.kind == "unreadable"
