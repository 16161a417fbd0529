"""preflight io-bench on file systems that are full, read-only or broken: the error is clear, and
nothing stays behind. In a mount namespace of its own, on loop devices."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import PREFLIGHT
from tests.conftest import require

ROOT = Path(__file__).resolve().parents[2]
#: A file system of 300 MiB at $AT, and the bench on it. What is left there is told.
_BEGIN = """\
set -eu
truncate -s 300M "$IMAGE"; $MAKE "$IMAGE" >/dev/null 2>&1
mkdir -p "$AT"; DEV=$(losetup --direct-io=on -f --show "$IMAGE"); mount "$DEV" "$AT"
trap 'sync; umount -l "$AT"; losetup -d "$DEV"' EXIT
bench() { "$PREFLIGHT" io-bench --only "io.*" --dir "$AT" --size 64M --job "$JOB" "$@" 2>/dev/null || echo "status $?"; }
"""  # noqa: E501
_END = """
rm -f "$AT"/filler.*; mount -o remount,rw "$AT" 2>/dev/null || :
echo "left: $(ls -A "$AT" | grep -v lost+found | tr '\\n' ' ')"
"""
READS = "[a]\nrw=randread\nbs=128k\nsize=64m\nruntime=2\ntime_based\ndirect=1\nioengine=libaio\n"
WRITES = "[a]\nrw=write\nbs=1m\nsize=64m\nrate=40m\ndirect=1\nfallocate=none\n"


def told(tmp_path: Path, script: str, job: str, make: str = "mkfs.ext4 -q") -> str:
    """What the script printed, in one line; `bench` in it does this job."""
    tools = all(shutil.which(one) for one in ("fio", "unshare", "losetup", make.split()[0]))
    require("root, fio and loop devices", os.geteuid() == 0 and tools)
    env = {**os.environ, "PREFLIGHT": str(PREFLIGHT), "IMAGE": str(tmp_path / "image"),
           "AT": str(tmp_path / "at"), "MAKE": make, "JOB": str(tmp_path / "my.fio")}  # fmt: skip
    (tmp_path / "my.fio").write_text(job)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", _BEGIN + script + _END], capture_output=True, text=True,
        timeout=120, env=env, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


@pytest.mark.lab
def test_a_sound_one(tmp_path: Path) -> None:
    out = told(tmp_path, "bench -q", READS, "mkfs.xfs -q")
    assert out.startswith("PASS: 0 failed, 0 warned, ")
    assert out.endswith("0 undetermined left:")


@pytest.mark.lab
def test_one_that_becomes_full(tmp_path: Path) -> None:
    """Somebody else writes at the same time."""
    out = told(tmp_path, """
        (until ls -d "$AT"/.preflight-io.* >/dev/null 2>&1; do sleep 0.01; done
         size=131072
         while [ $size -gt 3 ]; do
             fallocate -l ${size}K "$AT/filler.$size.$(date +%N)" 2>/dev/null || size=$((size / 2))
         done) &
        bench; wait
        """, WRITES)  # fmt: skip
    assert "No space left on device" in out
    assert "FAIL io.ended" in out
    assert out.endswith("status 1 left:")


@pytest.mark.lab
def test_one_without_inodes_and_one_that_is_read_only(tmp_path: Path) -> None:
    out = told(tmp_path, """
        i=0; while touch "$AT/$i" 2>/dev/null; do i=$((i + 1)); done
        bench; rm "$AT"/[0-9]*; mount -o remount,ro "$AT"
        "$PREFLIGHT" io-bench --dir "$AT" --size 64M 2>&1 || echo "status $?"
        """, READS, "mkfs.ext4 -q -N 32")  # fmt: skip
    assert "No space left on device" in out
    assert "is mounted read-only" in out
    assert [out.count(f"status {number}") for number in (2, 3)] == [1, 1]
    assert out.endswith("left:")


@pytest.mark.lab
def test_one_whose_device_fails(tmp_path: Path) -> None:
    """The file behind the loop device is cut short while it is read."""
    out = told(tmp_path, """
        (until [ -e "$AT"/.preflight-io.*/a.0.0 ]; do sleep 0.01; done
         for time in 1 2 3 4 5 6; do sleep 0.4; truncate -s 8M "$IMAGE"; done) &
        bench; wait
        """, READS)  # fmt: skip
    assert "FAIL io.ended a no" in out
    assert "Input/output error" in out


@pytest.mark.lab
def test_one_that_becomes_read_only(tmp_path: Path) -> None:
    """As ext4 does after an error. What cannot be removed is named, and gone with the next run."""
    out = told(tmp_path, """
        mount -o remount,errors=remount-ro "$AT"
        fault=/sys/fs/ext4/$(basename "$(findmnt -no SOURCE "$AT")")/trigger_fs_error
        (until [ -e "$AT"/.preflight-io.*/a.0.0 ]; do sleep 0.01; done
         sleep 0.2; echo 1 >"$fault") &
        bench; wait; ls -A "$AT" | grep -c preflight
        umount "$AT"; e2fsck -fy "$IMAGE" >/dev/null 2>&1 || :; mount -o loop "$IMAGE" "$AT"
        bench
        """, WRITES)  # fmt: skip
    assert "Read-only file system" in out
    assert re.search(r"left there: \S+/[.]preflight-io[.]\S+ \(.*?\); the next run there", out)
    assert "status 1 1 preflight io-bench" in out
    assert out.endswith("left:")
