"""preflight io-bench on several kinds of file systems, and on a device that is held to a rate."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.model import Missing, Raw
from preflight.payload.storage.jobs import NAMES
from tests.cli.command import PREFLIGHT, Ran, preflight
from tests.conftest import require

pytestmark = pytest.mark.lab
SOURCES = Path(__file__).resolve().parents[2] / "src/preflight"
#: The jobs of the bench, each as short as can be.
_BENCH = """
import json, sys
from payload.storage import harness
from payload.storage.plan import Plan
harness._LEAST_S = 0.2
harness.harness(Plan(dir=sys.argv[1], size_bytes=16 << 20, seconds=1), lambda line: print(json.dumps(line)))
"""  # noqa: E501
#: All at once, each file system at $AT/KIND; what each told is in $AT.KIND.
_KINDS = """\
set -eu
mkdir -p "$AT"; mount -t tmpfs none "$AT"
for kind in ext4 xfs btrfs tmpfs overlay; do
    mkdir "$AT/$kind"
    case $kind in
        tmpfs) mount -t tmpfs -o size=200m none "$AT/$kind" ;;
        overlay)
            mkdir "$AT/ext4/up" "$AT/ext4/work" "$AT/low"
            mount -t overlay -o "lowerdir=$AT/low,upperdir=$AT/ext4/up,workdir=$AT/ext4/work" none "$AT/overlay" ;;
        *)  truncate -s 320M "$IMAGE.$kind"; mkfs.$kind -q "$IMAGE.$kind" >/dev/null
            mount -o loop "$IMAGE.$kind" "$AT/$kind"
            losetup --direct-io=on "$(findmnt -no SOURCE "$AT/$kind")" ;;
    esac
    "$PYTHON" -c "$BENCH" "$AT/$kind" >"$IMAGE.$kind.lines" &
done
wait
ls -A "$AT/ext4/up" "$AT/xfs" "$AT/btrfs" "$AT/tmpfs" "$AT/overlay" | grep preflight || :
umount "$AT/overlay"; umount "$AT"/*s* "$AT/ext4"; umount "$AT"
"""  # noqa: E501


def _needs(*tools: str) -> None:
    found = all(shutil.which(one) for one in ("fio", "unshare", "losetup", *tools))
    require(f"root, fio, loop devices and {' '.join(tools)}", os.geteuid() == 0 and found)


def _script(tmp_path: Path, text: str, **env: str) -> str:
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", text], capture_output=True, text=True, timeout=120,
        cwd=SOURCES, env={**os.environ, "AT": str(tmp_path / "at"), "PYTHON": sys.executable,
                          "PREFLIGHT": str(PREFLIGHT), "IMAGE": str(tmp_path / "image"), **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_five_kinds(tmp_path: Path) -> None:
    _needs("mkfs.ext4", "mkfs.xfs", "mkfs.btrfs")
    assert _script(tmp_path, _KINDS, BENCH=_BENCH) == ""  # nothing is left
    for kind in ("ext4", "xfs", "btrfs", "tmpfs", "overlay"):
        text = (tmp_path / f"image.{kind}.lines").read_text()
        host = assemble("x", [Raw("x", "io-bench", ("python3",), 0, text)]).host
        begin = json.loads(text.splitlines()[0])
        assert (begin["fs"], begin["memory"]) == (kind, kind == "tmpfs")
        jobs, sides = host.fio_jobs, host.fio_sides
        assert not isinstance(jobs, Missing)
        assert not isinstance(sides, Missing)
        assert [(one.name, one.ended) for one in jobs] == [(name, True) for name in NAMES], kind
        wanted = "memory" if kind == "tmpfs" else "device"
        assert {one.through for one in sides} == {wanted}, kind


#: 64 requests on their way where 40 are answered in a second take more than one each.
_JOB = """\
[seq]
rw=read
bs=1m
size=8m
direct=1
ioengine=psync
[rand]
stonewall
rw=randread
bs=4k
size=8m
iodepth=64
ioengine=libaio
direct=1
runtime=1500ms
time_based
"""
_RATE_BYTES, _RATE_IOPS = 8 << 20, 40
_THROTTLED = """\
set -eu
truncate -s 100M "$IMAGE"; mkfs.ext4 -q "$IMAGE"; mkdir "$AT"; mount -o loop "$IMAGE" "$AT"
losetup --direct-io=on "$(findmnt -no SOURCE "$AT")"
group=/sys/fs/cgroup/blkio/preflight-test-$$; mkdir $group
trap 'umount -l "$AT"; rmdir $group' EXIT
bench() {
    "$PREFLIGHT" io-bench --dir "$AT" --job "$JOB" --size 64M --only 'io.*' --save "$1" -q >&2 || :
}
bench "$IMAGE.fast.capture.gz"
device=$(stat -c '%Hd:%Ld' "$AT")
echo "$device $BYTES" >$group/blkio.throttle.read_bps_device
echo "$device $IOPS" >$group/blkio.throttle.read_iops_device
(sh -c 'echo $PPID' >$group/cgroup.procs; bench "$IMAGE.slow.capture.gz")
"""


def _judged(capture: Path, *settings: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Statuses by check, and what was measured."""
    words = [word for one in settings for word in ("--set", one)]
    ran: Ran = preflight("io-bench", "--from", str(capture), *words, "--only", "io.*", "--format",
                         "json")  # fmt: skip
    report = json.loads(ran.out)
    (host,) = report["hosts"]
    [table] = report["measurements"]
    return {one["check"]: one["status"] for one in host["results"]}, table["numbers"]


def test_a_device_that_is_held_to_a_rate(tmp_path: Path) -> None:
    """Both sides of thresholds, and figures that are those of the device."""
    _needs("mkfs.ext4")
    blkio = Path("/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device")
    require("blkio of the first version of cgroups", blkio.exists())
    (tmp_path / "my.fio").write_text(_JOB)
    _script(tmp_path, _THROTTLED, JOB=str(tmp_path / "my.fio"), BYTES=str(_RATE_BYTES),
            IOPS=str(_RATE_IOPS))  # fmt: skip
    fast, free = _judged(tmp_path / "image.fast.capture.gz")
    assert (fast["io.ended"], fast["io.latency"]) == ("PASS", "PASS")
    assert free["seq"]["bandwidth_mbps"] > 20

    slow, held = _judged(tmp_path / "image.slow.capture.gz", "io.read.bandwidth.fail=20")
    assert held["seq"]["bandwidth_mbps"] == pytest.approx(_RATE_BYTES / 1e6, rel=0.1)
    assert held["rand"]["iops"] == pytest.approx(_RATE_IOPS, rel=0.2)
    assert (slow["io.ended"], slow["io.latency"]) == ("PASS", "FAIL")
    assert slow["io.read.bandwidth"] == "FAIL"
    slow, _ = _judged(tmp_path / "image.slow.capture.gz", "io.read.bandwidth.fail=5",
                      "io.read.bandwidth.warn=6")  # fmt: skip
    assert slow["io.read.bandwidth"] == "PASS"
