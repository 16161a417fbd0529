"""What the kernel does to a process, seen by a look: a file system that answers no write, a limit
of processors, memory that is short, another user's processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import preflight
from tests.cli.live_scenes import BUSY, SLEEPS, Scenes
from tests.conftest import require
from tests.lab.frozen import frozen_directory

pytestmark = pytest.mark.lab
_WRITES = """
print(flush=True)
open("{}", "w")
"""
#: Reads one page after another of a file that its memory is too small for.
_READS = """
import mmap
with open("{}", "rb") as file:
    pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(flush=True)
while True:
    for at in range(0, len(pages), mmap.PAGESIZE):
        pages[at]
"""


@contextmanager
def group(kind: str, **values: int) -> Iterator[Path]:
    """A control group of version 1 with these values; `cgroup.procs` in it takes processes."""
    made = Path(f"/sys/fs/cgroup/{kind}/preflight-look-{os.getpid()}")
    try:
        made.mkdir()
        for name, value in values.items():
            (made / f"{kind}.{name}").write_text(str(value))
    except OSError as error:
        require(f"control groups that can be made ({error})", False)
    try:
        yield made
    finally:
        made.rmdir()


def told(pid: int, duration: str) -> tuple[int, str]:
    ran = preflight("diagnose-step-time", str(pid), "--duration", duration)
    return ran.rc, " ".join(ran.out.split())


def test_a_rank_whose_write_never_ends_hangs_and_is_named_with_where(tmp_path: Path) -> None:
    with Scenes() as scenes, frozen_directory(tmp_path) as frozen:
        one = scenes.start(tmp_path, _WRITES.format(frozen / "x"), RANK="4")
        rc, out = told(one.pid, "3.2s")
    assert rc == 1 and "FAIL hang rank 4" in out and "waits in the kernel (" in out
    assert "(?)" not in out


def test_a_rank_that_its_group_holds_back_is_told_with_the_limit(tmp_path: Path) -> None:
    with group("cpu", cfs_period_us=100_000, cfs_quota_us=20_000) as limited, Scenes() as scenes:
        one = scenes.start(tmp_path, BUSY, RANK="0")
        (limited / "cgroup.procs").write_text(str(one.pid))
        rc, out = told(one.pid, "2s")
    assert rc == 1 and "FAIL host" in out and "limit of 0.2 processors" in out
    assert "has no processor" not in out


def test_a_rank_whose_pages_are_read_again_and_again_lacks_memory(tmp_path: Path) -> None:
    file, program = tmp_path / "data", tmp_path / "reads.py"
    with file.open("wb") as data:
        data.write(os.urandom(1 << 20) * 64)
        data.flush()
        os.fsync(data.fileno())
        os.posix_fadvise(data.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    program.write_text(_READS.format(file))
    with group("memory", limit_in_bytes=24 << 20) as limited, Scenes() as scenes:
        within = f"echo $$ >{limited}/cgroup.procs; exec {sys.executable} {program}"
        _, out = told(scenes.run(["sh", "-c", within], {"RANK": "0"}).pid, "3s")
    assert "host-memory" in out and "pages a second are read back" in out


def test_of_another_user_it_says_whose_it_is(tmp_path: Path) -> None:
    with Scenes() as scenes:
        one = scenes.start(tmp_path, SLEEPS, RANK="0")
        under = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
        ran = preflight("diagnose-step-time", str(one.pid), under=under, HOME="/nonexistent")
    assert ran.rc == 3 and "belongs to user 0: look as that user, or with sudo" in " ".join(
        ran.out.split()
    )
