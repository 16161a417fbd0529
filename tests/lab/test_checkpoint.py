"""A checkpoint on real file systems: one that several hosts share, one with a quota, one that stops
answering, and devices that become full or fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_io_bench import wait_for
from tests.conftest import require
from tests.lab.fuse import served

pytestmark = pytest.mark.lab
SOURCES = Path(__file__).resolve().parents[2] / "src/preflight"
#: The bench as it is on a host, with less patience.
_BENCH = """
import json, sys
from payload.storage import harness, seen, watched, workers
from payload.storage.plan import Plan
watched._HUNG_S, seen.LOOKS_S = 1.5, 0.05
workers.together.__defaults__ = (0.5,)
watched.watched(lambda tell: harness.harness(Plan(**json.loads(sys.argv[1])), tell),
                lambda line: print(json.dumps(line), flush=True), harness.FORM)
"""
_PLAN = {"size_bytes": 12 << 20, "seconds": 3.0, "patterns": ["checkpoint"], "writers": 2}


class Run:
    """A bench at work; its lines go into a file, since who hangs holds a pipe open."""

    def __init__(self, at: Path, name: str = "lines", **plan: Any) -> None:
        self._lines = at.parent / name
        asked = json.dumps({"dir": str(at), **_PLAN, **plan})
        with self._lines.open("w") as lines:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BENCH, asked], cwd=SOURCES, stdout=lines
            )

    def told(self, within_s: float = 40) -> list[dict[str, Any]]:
        """Its lines, once it has ended."""
        assert self._process.wait(within_s) == 0
        return [json.loads(line) for line in self._lines.read_text().splitlines()]


def troubles(lines: list[dict[str, Any]]) -> dict[str, str]:
    return {one["part"]: one["trouble"] for one in lines if one["kind"] == "pattern"}


def test_hosts_that_share_it_begin_together(tmp_path: Path) -> None:
    with served(tmp_path / "at", "--kind", "fuse.sshfs") as at:
        runs = [Run(at, str(number), hosts=3, job="0123456789abcdef") for number in range(3)]
        each = [run.told() for run in runs]
        assert list(at.iterdir()) == []
    rows = [one for lines in each for one in lines if one["kind"] == "pattern"]
    assert [one["trouble"] for one in rows] == [""] * len(rows)
    of_all = {one["part"]: one for one in rows if "hosts_mbps" in one}
    assert {"save, all hosts", "restore, all hosts"} <= set(of_all)
    for one in of_all.values():
        assert len(one["hosts_mbps"]) == 3
        assert one["processes"] == 6
    assert {one.get("wrong", 0) for one in rows} == {0}


def test_a_quota(tmp_path: Path) -> None:
    with served(tmp_path / "at", "--quota", str(4 << 20)) as at:
        lines = Run(at).told()
        assert list(at.iterdir()) == []
    [(_, trouble)] = troubles(lines).items()
    assert trouble.endswith("EDQUOT: Disk quota exceeded")


def test_a_server_that_stops_while_it_is_saved(tmp_path: Path) -> None:
    flag = tmp_path / "hangs"
    with served(tmp_path / "at", "--hang-while", str(flag)) as at:
        run = Run(at, size_bytes=256 << 20)
        try:
            wait_for(lambda: any(at.glob(".preflight-io.*/checkpoint/*.new")), 20)
            flag.touch()
            lines = run.told(30)
        finally:
            flag.unlink(missing_ok=True)
    assert "gave no answer" in list(troubles(lines).values())[-1]


#: A file system of 300 MiB at $AT, and somebody who acts once shards are written.
_LOOP = """\
set -eu
truncate -s 300M "$IMAGE"; mkfs.ext4 -q "$IMAGE"; mkdir "$AT"; mount -o loop "$IMAGE" "$AT"
trap 'umount -l "$AT"' EXIT
(until ls "$AT"/.preflight-io.*/checkpoint/*.new >/dev/null 2>&1; do sleep 0.01; done; eval "$DO") &
"$PYTHON" -c "$BENCH" "$PLAN"; wait
rm -f "$AT"/filler*; mount -o remount,rw "$AT" 2>/dev/null || :
ls -A "$AT" | grep preflight >&2 || :
"""
_FILLS = """
size=262144
while [ $size -gt 3 ]; do
    fallocate -l ${size}K "$AT/filler.$size.$(date +%N)" 2>/dev/null || size=$((size / 2))
done"""
_BREAKS = 'for time in 1 2 3 4 5 6 7 8; do truncate -s 8M "$IMAGE"; sleep 0.2; done'


@pytest.mark.parametrize(
    ("act", "words"),
    [(_FILLS, ("ENOSPC: No space left on device",)),
     (_BREAKS, ("EIO: Input/output error", "EROFS: Read-only file system"))
],
)  # fmt: skip
def test_a_device_that_becomes_full_or_fails(
    tmp_path: Path, act: str, words: tuple[str, ...]
) -> None:
    tools = all(shutil.which(one) for one in ("unshare", "losetup", "mkfs.ext4"))
    require("root and loop devices", os.geteuid() == 0 and tools)
    plan = json.dumps({"dir": str(tmp_path / "at"), **_PLAN, "size_bytes": 128 << 20, "seconds": 8})
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", _LOOP], capture_output=True, text=True, timeout=120,
        cwd=SOURCES, env={**os.environ, "AT": str(tmp_path / "at"), "PYTHON": sys.executable,
                          "IMAGE": str(tmp_path / "image"), "BENCH": _BENCH, "PLAN": plan,
                          "DO": act},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = troubles([json.loads(line) for line in done.stdout.splitlines()])
    assert any(word in list(found.values())[-1] for word in words)
    assert done.stderr == ""
