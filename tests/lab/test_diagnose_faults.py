"""What the kernel does to a process, seen by a look: a file system that answers no write, a limit
of processors, memory that is short, another user's processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.cli.live_scenes import BUSY, SLEEPS, Looked, Scenes, all_at_once, looked
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


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Looked]]:
    """All of them in the time of one look."""
    folder = tmp_path_factory.mktemp("faults")
    with (
        group("cpu", cfs_period_us=100_000, cfs_quota_us=5_000) as limited,
        group("memory", limit_in_bytes=24 << 20) as small,
        Scenes() as scenes,
        # Thawed first: until then what writes to it cannot be ended.
        frozen_directory(tmp_path_factory.mktemp("ice")) as frozen,
    ):
        busy = scenes.start(folder, BUSY, RANK="0").pid
        (limited / "cgroup.procs").write_text(str(busy))
        reads = folder / "reads.py"
        reads.write_text(_READS.format(_uncached(folder / "data")))
        within = f"echo $$ >{small}/cgroup.procs; exec {sys.executable} {reads}"
        pids = {
            "writes": scenes.start(folder, _WRITES.format(frozen / "x"), RANK="4").pid,
            "limited": busy,
            "reads": scenes.run(["sh", "-c", within], {"RANK": "0"}).pid,
        }
        yield all_at_once({name: partial(looked, pid) for name, pid in pids.items()})


def _uncached(file: Path) -> Path:
    with file.open("wb") as data:
        data.write(os.urandom(1 << 20) * 64)
        data.flush()
        os.fsync(data.fileno())
        os.posix_fadvise(data.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file


def test_a_rank_whose_write_never_ends_hangs_and_is_named_with_where(
    seen: dict[str, Looked],
) -> None:
    one = seen["writes"]
    assert one.rc == 1 and "FAIL hang rank 4" in one.out and "waits in the kernel (" in one.out
    assert "(?)" not in one.out


def test_a_rank_that_its_group_holds_back_is_told_with_the_limit(seen: dict[str, Looked]) -> None:
    one = seen["limited"]
    assert one.rc == 1 and "FAIL host" in one.out and "limit of 0.05 processors" in one.out
    assert "has no processor" not in one.out


def test_a_rank_whose_pages_are_read_again_and_again_lacks_memory(seen: dict[str, Looked]) -> None:
    assert "host-memory" in seen["reads"].out
    assert "pages a second are read back" in seen["reads"].out


def test_of_another_user_it_says_whose_it_is(tmp_path: Path) -> None:
    with Scenes() as scenes:
        one = scenes.start(tmp_path, SLEEPS, RANK="0")
        under = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
        out = looked(one.pid, under=under)
    assert out.rc == 3 and "belongs to user 0: look as that user, or with sudo" in out.out
