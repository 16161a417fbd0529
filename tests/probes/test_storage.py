"""Mounts, block devices, RAID, health and quotas: read from what is printed, and asked of this
machine and of trees of our own; a server that is gone holds nobody."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.errors import ParseError
from preflight.model import Missing, Raw
from preflight.probes.storage.block_devices import block_devices
from preflight.probes.storage.health import disk_health, smart
from preflight.probes.storage.lists import mount, nfsstat
from preflight.probes.storage.lsblk import lsblk
from preflight.probes.storage.mdstat import mdstat
from preflight.probes.storage.mounts import mountinfo, mounts
from preflight.probes.storage.quotas import quotas
from tests import storage_text as text
from tests.conftest import require
from tests.probes.test_pci_robust import damaged
from tests.probes.test_setup import asked, write

PARSERS: dict[str, Callable[[str], Any]] = {
    "mounts": mounts, "mountinfo": mountinfo, "mount": mount, "nfsstat-m": nfsstat,
    "mdstat": mdstat, "block-devices": block_devices, "lsblk": lsblk, "disk-health": disk_health,
    "smart": smart, "quotas": quotas,
}  # fmt: skip
ANSWERS = {**text.RECORDED, **text.STORAGE}


def by_name(found: Any) -> dict[str, Any]:
    assert not isinstance(found, Missing)
    return {one.name: one for one in getattr(found, "mounts", found)}


def test_mounts_of_a_machine_with_shares() -> None:
    found = by_name(mounts(text.MOUNTS))
    assert list(found) == ["/", "/dev/shm", "/raid", "/var/lib/docker", "/data", "/models",
                           "/home/alice", "/scratch"]  # fmt: skip
    data, models, scratch = found["/data"], found["/models"], found["/scratch"]
    assert (data.reach, data.source, data.device) == ("network", "nas-1:/export/data", "0:60")
    assert (data.nfs.version, data.nfs.read_bytes, data.nfs.hard) == ("4.1", 1 << 20, True)
    assert (data.nfs.connections, data.nfs.transport, data.locks) == (8, "tcp", "all")
    assert (data.answers, data.size_bytes, data.used_percent) == (True, 400000000 << 20, 75.0)
    assert data.inodes_used_percent == 25.0
    assert (models.nfs.version, models.read_only, models.locks) == ("3", True, "all")
    assert (scratch.kind, scratch.locks, scratch.stripes) == ("lustre", "all", 4)
    assert scratch.used_percent == pytest.approx(100 * 250 / 490)
    assert found["/home/alice"].automounted
    assert not data.automounted
    assert (found["/"].atime, found["/raid"].atime) == ("relatime", "noatime")
    assert found["/dev/shm"].size_bytes == 1056740616 * 1024
    assert isinstance(found["/"].answers, Missing)


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ("rw,vers=3,soft,nolock", "locks", "host"),
        ("rw,vers=3,soft,local_lock=flock", "locks", "host"),
        ("rw,vers=4.2,hard,local_lock=none", "locks", "all"),
        ("rw,vers=3,sync", "synchronous", True),
    ],
)
def test_options_of_nfs(options: str, field: str, value: object) -> None:
    line = f"52 29 0:60 / /data rw,relatime - nfs nas:/x {options}\n"
    assert getattr(by_name(mountinfo(line))["/data"], field) == value


def test_a_mount_that_hides_another_and_one_with_blanks() -> None:
    lines = (
        "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "5 1 8:2 / /my\\040data rw,relatime - ext4 /dev/sdb1 rw\n"
        "6 5 8:3 / /my\\040data ro - xfs /dev/sdc1 ro\n"
    )
    found = by_name(mountinfo(lines))
    assert list(found) == ["/", "/my data"]
    assert (found["/my data"].kind, found["/my data"].read_only) == ("xfs", True)


def test_the_kernel_writes_nothing_for_strictatime() -> None:
    found = by_name(mountinfo("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 0 8:2 / /z rw - zfs z rw\n"))
    assert (found["/"].atime, found["/z"].atime) == ("strictatime", "")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("answer 124 /data ", "no answer within 7 s"),
        ("answer 1 /data stat: cannot read file system information for '/data': Stale file handle",
         "Stale file handle"),
        ("answer 1 /data stat: /data: Transport endpoint is not connected",
         "Transport endpoint is not connected"),
    ],
)  # fmt: skip
def test_a_share_that_does_not_answer(answer: str, said: str) -> None:
    found = by_name(mounts(re.sub(r"answer 0 /data .*", answer, text.MOUNTS)))["/data"]
    assert (found.answers, found.trouble) == (False, said)
    assert isinstance(found.free_bytes, Missing)


def test_a_share_that_only_its_user_may_look_at_is_no_fault() -> None:
    line = "answer 1 /data stat: cannot statx '/data': Permission denied"
    found = by_name(mounts(re.sub(r"answer 0 /data .*", line, text.MOUNTS)))["/data"]
    assert isinstance(found.answers, Missing)
    assert found.answers.kind == "not-applicable"


def test_without_the_tool_that_asks_nothing_is_known() -> None:
    lines = text.MOUNTINFO + "no stat\nend\n"
    found = by_name(mounts(lines))["/data"]
    assert isinstance(found.answers, Missing)
    assert found.answers.kind == "no-tool"


def test_mounts_of_this_machine() -> None:
    require("/proc/self/mountinfo", Path("/proc/self/mountinfo").exists())
    argv = mounts.probe.command.argv  # type: ignore[attr-defined]
    env = {"PATH": os.environ["PATH"], "HF_HOME": "/", "TMPDIR": "relative",
           "TRITON_CACHE_DIR": "/a\nend"}  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")
    found = mounts(done.stdout)
    assert not isinstance(found, Missing)
    assert not isinstance(found.caches, Missing)
    assert [(one.name, one.path) for one in found.caches] == [("HF_HOME", "/")]
    root = by_name(found)["/"]
    assert root.read_only is bool(os.statvfs("/").f_flag & os.ST_RDONLY)


def test_a_server_that_answers_after_the_question_is_over_says_nothing(tmp_path: Path) -> None:
    """What it said would stand in the answer to the next question, on the same stream."""
    (tmp_path / "list").write_text("1 0 0:9 / /far rw - nfs4 gone:/data rw\n")
    slow = tmp_path / "timeout"  # one that SIGKILL does not end comes back when it will
    slow.write_text("#!/bin/sh\nsleep 0.6\necho 1 2 3 4 5 6\n")
    slow.chmod(0o755)
    script = mounts.probe.command.argv[2]  # type: ignore[attr-defined]
    script = script.replace("/proc/self/mountinfo", str(tmp_path / "list"))
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with (tmp_path / "out").open("w") as out:
        for waits in ("-lt 180 ", "-lt 2 "):
            asked = script.replace("-lt 180 ", waits)
            subprocess.run(["sh", "-c", asked], stdout=out, env=env, timeout=20, check=True)
        time.sleep(1)
    answered, late = (tmp_path / "out").read_text().split("end\n", 1)
    assert "answer 0 /far 1 2 3" in answered
    assert late.endswith("asked /far\nend\n")


#: Mounts a file system of FUSE, of a kind that the network serves, for which nobody ever answers;
#: in a namespace of its own, and gone with this process.
_HANGING = """\
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR)
assert libc.unshare(0x20000) == 0 and libc.mount(b"none", b"/", None, 0x44000, None) == 0
told = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"gone:/data", sys.argv[1].encode(), b"fuse.sshfs", 0, told):
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
sys.exit(subprocess.run(["sh", "-c", sys.argv[2]]).returncode)
"""


def test_a_server_that_is_gone_holds_nobody(tmp_path: Path) -> None:
    require("root, to mount", os.geteuid() == 0)
    require("/dev/fuse", Path("/dev/fuse").exists())
    share = tmp_path / "my share"
    share.mkdir()
    script = mounts.probe.command.argv[2]  # type: ignore[attr-defined]
    short = script.replace("timeout -k 1 7", "timeout -k 1 1")
    assert short != script
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_HANGING), str(share), short],
        capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - begun < 5
    found = by_name(mounts(done.stdout))[str(share)]
    assert (found.reach, found.answers) == ("network", False)


def test_what_people_record_of_mounts() -> None:
    by_mount, by_nfsstat = by_name(mount(text.MOUNT)), by_name(nfsstat(text.NFSSTAT))
    assert list(by_mount) == ["/", "/dev/shm", "/raid", "/data", "/scratch"]
    assert list(by_nfsstat) == ["/data", "/models"]
    for found in (by_mount, by_nfsstat):
        assert (found["/data"].nfs.version, found["/data"].nfs.connections) == ("4.1", 8)
        assert isinstance(found["/data"].answers, Missing)
        assert found["/data"].answers.kind == "not-in-input"
    table = by_name(mount("/dev/md0 /raid xfs rw,noatime,attr2 0 0\n"))
    assert table["/raid"].atime == "noatime"


def test_arrays() -> None:
    found = by_name(mdstat(text.MDSTAT))
    assert [(one.level, one.active) for one in found.values()] == [
        ("raid0", True), ("raid1", True), ("raid6", True)]  # fmt: skip
    assert isinstance(found["md0"].absent, Missing)
    assert (found["md2"].disks, found["md2"].absent, found["md2"].work) == (5, 0, "none")
    rebuilt = by_name(mdstat(text.REBUILT))["md2"]
    assert (rebuilt.disks, rebuilt.absent, rebuilt.failed) == (5, 1, ("sde",))
    assert (rebuilt.work, rebuilt.work_percent) == ("recovery", 9.4)


@pytest.mark.parametrize(
    ("lines", "active", "work"),
    [
        ("md127 : inactive sdb[1](S) sda[0](S)\n      1953382400 blocks super 1.2", False, "none"),
        ("md0 : active (auto-read-only) raid1 sdb1[1] sda1[0]\n      1046528 blocks [2/2] [UU]\n"
         "      \tresync=PENDING", True, "resync waits"),
        ("md0 : active raid1 sdb1[1] sda1[0]\n      1046528 blocks super 1.2 [2/2] [UU]\n"
         "      [==>..................]  check = 12.6% (1/2) finish=6.4min speed=1K/sec", True,
         "check"),
    ],
)  # fmt: skip
def test_states_of_an_array(lines: str, active: bool, work: str) -> None:
    (found,) = mdstat(f"Personalities : [raid1]\n{lines}\n\nunused devices: <none>\n")
    assert (found.active, found.work) == (active, work)


def test_a_machine_without_arrays_of_its_own() -> None:
    assert mdstat("no /proc/mdstat\n") == ()
    assert mdstat("Personalities : \nunused devices: <none>\n") == ()


def test_block_devices() -> None:
    found = by_name(block_devices(text.BLOCK_DEVICES))
    nvme, sata, turning, raid = (found[name] for name in ("nvme0n1", "sda", "sdb", "md0"))
    assert (nvme.kind, nvme.transport, nvme.bus_ids) == ("nvme", "pcie", ("0000:18:00.0",))
    assert (nvme.scheduler, nvme.requests, nvme.size_bytes) == ("none", 1023, 7501476528 * 512)
    assert (sata.transport, sata.link_gbits, sata.rotational) == ("sata", 6.0, False)
    assert (sata.scheduler, sata.queue_depth, turning.rotational) == ("mq-deadline", 32, True)
    assert (raid.kind, raid.raid_level, len(raid.below)) == ("md", "raid0", 4)
    assert (found["sda1"].kind, found["sda1"].below) == ("partition", ("sda",))
    assert (found["loop0"].file, found["vda"].transport) == ("/raid/image.ext4", "virtio")
    assert found["dm-0"].model == "vg-scratch"


def test_block_devices_are_asked(tmp_path: Path) -> None:
    """A disk of NVMe with two ways to it, and a loop device that has no file."""
    deep = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    root = write(tmp_path, {
        f"{deep}/nvme0n1/size": "1000\n",
        f"{deep}/nvme0n1/dev": "259:0\n",
        f"{deep}/nvme0n1/queue/scheduler": "[none] bfq\n",
        f"{deep}/nvme0n1/nvme0n1p1/partition": "1\n",
        f"{deep}/nvme0n1/nvme0n1p1/size": "500\n",
        f"{deep}/nvme0n1/nvme0n1p1/dev": "259:1\n",
        f"{deep}/nvme0/address": "0000:18:00.0\n",
        f"{deep}/nvme0/transport": "pcie\n",
        f"{deep}/nvme1/address": "0000:19:00.0\n",
        "/sys/devices/virtual/block/loop0/size": "0\n",
    })  # fmt: skip
    blocks = root / "sys/block"
    blocks.mkdir()
    (blocks / "nvme0n1").symlink_to(f"{root}{deep}/nvme0n1")
    (blocks / "loop0").symlink_to(f"{root}/sys/devices/virtual/block/loop0")
    (root / deep[1:] / "nvme0n1/device").symlink_to(f"{root}{deep}")
    found = by_name(block_devices(asked(block_devices, root, "/sys/block")))
    assert list(found) == ["nvme0n1", "nvme0n1p1"]
    assert found["nvme0n1"].bus_ids == ("0000:18:00.0", "0000:19:00.0")
    assert (found["nvme0n1"].transport, found["nvme0n1p1"].size_bytes) == ("pcie", 256000)


def test_block_devices_of_this_machine() -> None:
    require("/sys/block", Path("/sys/block").is_dir())
    argv = block_devices.probe.command.argv  # type: ignore[attr-defined]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")
    found = by_name(block_devices(done.stdout))
    for name in found:
        assert Path(f"/sys/class/block/{name}").exists()


def test_lsblk_of_this_machine_tells_the_same() -> None:
    require("lsblk", shutil.which("lsblk") is not None)
    done = subprocess.run(["lsblk", "-J", "-O", "-b"], capture_output=True, text=True, timeout=20)
    require("lsblk with -J", done.returncode == 0)
    argv = block_devices.probe.command.argv  # type: ignore[attr-defined]
    own = by_name(block_devices(subprocess.run(argv, capture_output=True, text=True).stdout))
    told = by_name(lsblk(done.stdout))
    for name in own.keys() & told.keys():
        assert told[name].size_bytes == own[name].size_bytes
        assert told[name].device == own[name].device


def test_lsblk_by_its_children() -> None:
    found = by_name(lsblk(text.LSBLK))
    assert found["md0"].below == ("nvme0n1", "nvme1n1")
    assert (found["md0"].kind, found["md0"].raid_level) == ("md", "raid0")
    assert (found["nvme1n1"].scheduler, found["nvme1n1"].transport) == ("none", "pcie")
    assert found["sda"].rotational is True
    assert found["sda"].size_bytes == round(7.3 * (1 << 40))
    assert found["sda1"].line > found["sda"].line > 1


def test_health_of_disks_by_either_tool() -> None:
    found = by_name(disk_health(text.DISK_HEALTH))
    assert list(found) == ["nvme0", "nvme1", "sda"]
    assert (found["nvme0"].worn_percent, found["nvme0"].temperature_c) == (3, 38)
    assert (found["nvme1"].worn_percent, found["nvme1"].temperature_c) == (4, 39)
    assert found["nvme0"].warnings == found["sda"].warnings == ()
    assert (found["nvme0"].spare_percent, found["nvme0"].spare_least_percent) == (100, 10)
    assert (found["sda"].media_errors, found["sda"].temperature_c) == (0, 33)
    assert isinstance(found["sda"].worn_percent, Missing)
    assert found["sda"].line == text.DISK_HEALTH.split("\n").index("disk sda") + 2


def test_the_health_of_an_nvme_disk_for_people_is_that_of_its_json() -> None:
    (people,), (json_form,) = smart(text.NVME_LOG_TEXT), smart(text.NVME_LOG)
    assert people.name == "nvme0"
    for field in ("warnings", "worn_percent", "spare_percent", "media_errors", "temperature_c"):
        assert getattr(people, field) == getattr(json_form, field)


def test_what_a_disk_warns_of() -> None:
    log = text.NVME_LOG.replace('"critical_warning" : 0', '"critical_warning" : 9')
    (found,) = smart(log)
    assert found.warnings == ("its spare blocks are used up", "it takes no more writes")
    newer = text.NVME_LOG.replace(
        '"critical_warning" : 0', '"critical_warning" : {"value": 4, "reliability": 1}'
    )
    assert smart(newer)[0].warnings == ("its reliability is degraded",)
    failing = text.SMARTCTL_SATA.replace('"passed": true', '"passed": false')
    assert smart(failing)[0].warnings == ("it says of itself that it fails",)
    pending = text.SMARTCTL_SATA.replace('"value": 0,', '"value": 16,')
    assert smart(pending)[0].media_errors == 16


@pytest.mark.parametrize(
    ("lines", "kind"),
    [("denied\nend\n", "not-asked"), ("no tool nvme0\nend\n", "no-tool")],
)
def test_disks_that_cannot_be_asked(lines: str, kind: str) -> None:
    found = disk_health(lines)
    assert isinstance(found, Missing)
    assert found.kind == kind


@pytest.mark.parametrize("said", ["", '{"critical_warning" : 0,'])
def test_a_disk_that_did_not_tell_all_is_not_taken_for_sound(said: str) -> None:
    told = disk_health(f"disk nvme0\n{text.NVME_LOG}\ndisk nvme1\n{said}\nend\n")
    sound, silent = by_name(told).values()
    assert sound.warnings == ()
    assert isinstance(silent.warnings, Missing)
    assert silent.warnings.kind in ("exited", "unreadable")


def test_a_disk_of_a_cloud_tells_nothing_and_is_left_out() -> None:
    bare = json.dumps({"json_format_version": [1, 0], "device": {"name": "/dev/sda"}})
    assert disk_health(f"disk sda\n{bare}\nend\n") == ()


def test_disks_of_this_machine_are_asked_as_root() -> None:
    argv = disk_health.probe.command.argv  # type: ignore[attr-defined]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    found = disk_health(done.stdout)
    assert os.geteuid() == 0 or (isinstance(found, Missing) and found.kind == "not-asked")


def test_quotas_of_both_tools() -> None:
    found = by_name(quotas(text.QUOTAS))
    assert list(found) == ["nas-1:/home/alice alice", "/scratch alice"]
    home, scratch = found.values()
    assert (home.used_bytes, home.limit_bytes) == (52428800 << 10, 94371840 << 10)
    assert (round(home.used_percent, 1), round(home.files_percent, 1)) == (55.6, 13.3)
    assert (round(scratch.used_percent, 1), scratch.files_percent) == (11.1, 20.0)


def test_a_quota_that_is_passed_and_a_name_on_a_line_of_its_own() -> None:
    (found,) = quotas(
        "Disk quotas for user bob (uid 1002): \n"
        "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
        "server.example.com:/a/very/long/export\n"
        "                 61440*  51200   61440   6days     100     200     300\n"
    )
    assert (found.used_percent, found.files_percent) == (120.0, 50.0)
    assert quotas("end\n") == ()


@pytest.mark.parametrize("name", PARSERS)
def test_what_is_damaged_is_read_or_refused_and_nothing_else(name: str) -> None:
    for seed in range(60):
        with contextlib.suppress(ParseError):
            PARSERS[name](damaged(ANSWERS[name], seed))


@pytest.mark.parametrize("name", text.STORAGE)
def test_an_answer_that_is_cut_short_is_unreadable(name: str) -> None:
    whole = text.STORAGE[name]
    cut = whole[: whole.rstrip().rindex("\n") + 1]
    if name == "quotas":  # a table that a person pasted has no end
        cut = "nothing of it\n"
    host = assemble("node-07", [Raw("node-07", name, argv=("sh",), stdout=cut)]).host
    fields = {"mounts": "mounts", "mdstat": "raids", "block-devices": "devices",
              "disk-health": "health", "quotas": "quotas"}  # fmt: skip
    found = getattr(host.storage, fields[name])
    assert isinstance(found, Missing)
    assert found.kind == "unreadable"
