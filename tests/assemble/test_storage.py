"""What a host stores on: each file system once, caches on the mount that they lie on, and shares
that a fleet is compared by; judged from what people record."""

from __future__ import annotations

import pytest

from preflight.assemble.host import assemble
from preflight.assemble.storage import mount_of
from preflight.collect import examine
from preflight.facts.storage import Storage
from preflight.judge.load import load
from preflight.model import Missing, Raw, Status
from preflight.recognise import recognise
from tests import storage_text as text

CHECKS = load(("storage",)).checks


def storage(**answers: str) -> Storage:
    raws = [Raw("node-07", name.replace("_", "-"), argv=("sh",), stdout=told)
            for name, told in answers.items()]  # fmt: skip
    return assemble("node-07", raws).host.storage


def names(found: object) -> list[str]:
    assert not isinstance(found, Missing), found
    return [one.name for one in found]  # type: ignore[attr-defined]


def test_each_file_system_is_told_once() -> None:
    found = storage(mounts=text.MOUNTS)
    assert names(found.mounts) == ["/", "/dev/shm", "/raid", "/data", "/models", "/home/alice",
                                   "/scratch"]  # fmt: skip
    assert names(found.on_disks) == ["/", "/raid"]
    assert names(found.nfs) == ["/data", "/models", "/home/alice"]
    assert names(found.nfs_written) == ["/data", "/home/alice"]
    assert names(found.locking) == ["/data", "/home/alice", "/scratch"]


def test_shares_are_those_that_are_always_there() -> None:
    found = storage(mounts=text.MOUNTS)
    assert names(found.shares) == ["/data", "/models", "/scratch"]
    assert not isinstance(found.shares, Missing)
    assert found.shares[0].settings == "vers=4.1 rsize=1048576 wsize=1048576 nconnect=8 hard"
    without = "".join(line + "\n" for line in text.MOUNTINFO.split("\n") if " - ext4 " in line)
    assert storage(mounts=f"{without}end\n").shares == ()


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/data/hf", "/data"),
        ("/database", "/"),
        ("/raid", "/raid"),
        ("/home/alice/x/", "/home/alice"),
    ],
)
def test_a_path_lies_on_the_mount_with_the_longest_name(path: str, mount: str) -> None:
    mounts = storage(mounts=text.MOUNTS).mounts
    assert not isinstance(mounts, Missing)
    found = mount_of(path, mounts)
    assert found is not None
    assert found.name == mount


def test_hf_home_counts_only_where_it_holds_the_data_sets() -> None:
    shared = text.MOUNTS.replace("HF_HOME /raid", "HF_HOME /data")
    assert names(storage(mounts=shared).caches) == ["HF_HOME", "TRITON_CACHE_DIR", "TMPDIR"]
    apart = f"cache HF_DATASETS_CACHE /raid/sets\n{shared}"
    assert names(storage(mounts=apart).caches) == ["HF_DATASETS_CACHE", "TRITON_CACHE_DIR",
                                                   "TMPDIR"]  # fmt: skip


def judged(told: str) -> dict[tuple[str, str], Status]:
    raws = recognise(told.encode(), "paste.txt")
    report = examine("node-07", raws, CHECKS)
    return {(one.check, one.subject): one.status for one in report.results
            if one.status in (Status.WARN, Status.FAIL, Status.ERROR)}  # fmt: skip


def test_sound_recordings_are_judged_and_nothing_is_wrong() -> None:
    for told in (*text.RECORDED.values(), text.NVME_LOG_TEXT, text.SMARTCTL_SATA):
        assert judged(told) == {}


def test_recordings_with_faults() -> None:
    soft = text.NFSSTAT.replace("hard", "soft").replace("rsize=1048576", "rsize=32768")
    assert judged(soft) == {
        ("storage.nfs.hard", "/data"): Status.WARN,
        ("storage.nfs.rsize", "/data"): Status.WARN,
    }
    assert judged(text.REBUILT) == {
        ("storage.raid.degraded", "md2"): Status.FAIL,
        ("storage.raid.rebuild", "md2"): Status.WARN,
    }
    at = text.LSBLK.index("nvme1n1")
    sorted_by_bfq = text.LSBLK[:at] + text.LSBLK[at:].replace('"none"', '"bfq"', 1)
    assert judged(sorted_by_bfq) == {("storage.nvme.scheduler", "nvme1n1"): Status.WARN}
    worn = text.NVME_LOG.replace('"percent_used" : 3', '"percent_used" : 88')
    assert judged(worn) == {("storage.disk.worn", "disk 1"): Status.WARN}


def test_a_machine_without_shares_arrays_and_disks_is_sound() -> None:
    plain = "29 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\nend\n"
    answers = {"mounts": plain, "mdstat": "no /proc/mdstat\n", "quotas": "end\n",
               "disk-health": "none\nend\n", "block-devices": "end\n"}  # fmt: skip
    raws = [Raw("vm", name, argv=("sh",), stdout=told) for name, told in answers.items()]
    report = examine("vm", raws, [one for one in CHECKS if one.fact.startswith("storage.")])
    assert {one.status for one in report.results} == {Status.PASS, Status.SKIP}
    assert report.missing == ()
