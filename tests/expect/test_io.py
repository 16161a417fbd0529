"""What fio measured is held against the devices below it, where they can be known."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.assemble.host import assemble
from preflight.expect.io import io_read_mbps, io_reads_per_s
from preflight.facts.fio import FioTotal
from preflight.facts.host import Host
from preflight.facts.storage import BlockDevice, Mount, Storage
from preflight.model import Missing, Raw
from tests.cli.command import preflight
from tests.fio_text import Row, job, large, on_disk, report, side

DISK = BlockDevice("sda", "disk", device="8:0", rotational=True, transport="sata", link_gbits=6.0)
MOUNTS = (
    Mount("/data", "/dev/sda", "ext4", "local", device="8:0"),
    Mount("/home", "server:/home", "nfs4", "network"),
    Mount("/dev/shm", "tmpfs", "tmpfs", "memory"),
)
HOST = Host("x", storage=Storage(mounts=MOUNTS, devices=(DISK,)))


def total(target: str, disk: str = "") -> FioTotal:
    return FioTotal("a", "read", target=target, disk=disk)


@pytest.mark.parametrize(
    ("target", "disk", "mbps"),
    [("/dev/sda", "", 285.0), ("/data/me", "", 285.0), ("data", "sda", 285.0),
     ("/home/me", "", "not-in-input"), ("/dev/shm/x", "", "not-in-input"),
     ("/data", "nvme0n1", 285.0), ("data", "", "not-in-input"), ("data", "vda", "not-in-input")],
)  # fmt: skip
def test_by_what_it_was_on(target: str, disk: str, mbps: float | str) -> None:
    found = io_read_mbps(HOST, total(target, disk))
    assert (found.kind if isinstance(found, Missing) else found.value) == mbps


def test_requests_are_known_of_disks_that_turn() -> None:
    found = io_reads_per_s(HOST, total("/dev/sda"))
    assert not isinstance(found, Missing)
    assert found.value == 170.0
    flash = Host("x", storage=Storage(devices=(
        BlockDevice("sdb", "disk", rotational=False, transport="sata", link_gbits=6.0),
    )))  # fmt: skip
    missing = io_reads_per_s(flash, total("/dev/sdb"))
    assert isinstance(missing, Missing)
    assert "--profile nvme-raid" in missing.text


def totals(*jobs: Row) -> dict[str, list[str]]:
    host = assemble("x", [Raw("x", "fio", stdout=report(*jobs))]).host
    found = {name: getattr(host, f"fio_{name}")
             for name in ("large_reads", "large_writes", "random_reads")}  # fmt: skip
    return {name: [] if isinstance(one, Missing) else [each.name for each in one]
            for name, one in found.items()}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "kinds"),
    [
        (large("read", 190.0), ["large_reads"]),
        (large("write", 190.0), ["large_writes"]),
        (large("read", 190.0, direct="0", invalidate="0"), []),
        (large("read", 190.0, iodepth="1", bs="256k"), []),
        (on_disk(), ["random_reads"]),
        (job(options={"iodepth": "4"}), []),
        (job(options={"bs": "128k"}), ["large_reads", "random_reads"]),
        (job(read=side(runtime=200)), ["random_reads"]),
    ],
)
def test_which_jobs_tell_how_fast_a_device_is(row: Row, kinds: list[str]) -> None:
    assert [name for name, found in totals(row).items() if found] == kinds


@pytest.mark.parametrize(("iops", "rc"), [(121_500.0, 0), (118_000.0, 0), (50_000.0, 1)])
def test_the_profile_of_a_raid_of_nvme(tmp_path: Path, iops: float, rc: int) -> None:
    options = {"bs": "128k", "iodepth": "1", "numjobs": "16", "group_reporting": "1"}
    row = job(options=options, read=side(iops, 128 << 10))
    (tmp_path / "fio.json").write_text(report(row))
    ran = preflight("io-bench", "--from", str(tmp_path / "fio.json"), "--profile", "nvme-raid")
    assert ran.rc == rc, ran.out
    assert ("WARN   io.read.iops" in ran.out) == (iops < 120_000)
    # 4 KiB at random are nobody's 15 GB/s.
    (tmp_path / "fio.json").write_text(report(job(read=side(900_000.0))))
    small = preflight("io-bench", "--from", str(tmp_path / "fio.json"), "--profile", "nvme-raid")
    assert small.rc == 3
    assert "no job reads blocks of 128 KiB or more" in " ".join(small.out.split())
