"""How fast storage can be: held against what drives are sold for, and against what fio measured."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from preflight.assemble.host import assemble
from preflight.expect import storage as expect
from preflight.expect.bound import Bound
from preflight.facts.host import Host
from preflight.facts.nics import Netdev
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.facts.storage import BlockDevice, Storage
from preflight.model import NOT_IN_INPUT, Known, Missing, Raw
from tests import storage_text as text
from tests.topology_hosts import machine, sysfs


def host(**changed: object) -> Host:
    raws = [
        Raw("node-07", name, argv=("sh",), stdout=told)
        for name, told in (text.STORAGE | {"pci-tree": sysfs(machine())}).items()
    ]
    return replace(assemble("node-07", raws).host, virtualization="none", **changed)


def bound(found: Known[Bound]) -> Bound:
    assert not isinstance(found, Missing), found
    return found


@dataclass(frozen=True)
class Drive:
    """What a maker's data sheet promises: GB/s of reading."""

    name: str
    speed_gtps: float
    lanes: int
    sold_gbps: float


#: Data sheets: Samsung 970 PRO, PM9A3, 990 PRO, PM1743; Crucial T705.
DRIVES = (
    Drive("970 PRO", 8.0, 4, 3.5),
    Drive("PM9A3", 16.0, 4, 6.9),
    Drive("990 PRO", 16.0, 4, 7.45),
    Drive("PM1743", 32.0, 4, 14.0),
    Drive("T705", 32.0, 4, 14.5),
)


@pytest.mark.parametrize("drive", DRIVES, ids=lambda drive: drive.name)
def test_an_nvme_disk_is_bound_by_its_link_and_sold_for_nearly_that(drive: Drive) -> None:
    link = PciDevice("0000:01:00.0", speed_gtps=drive.speed_gtps, width=drive.lanes)
    disk = BlockDevice("nvme0n1", "nvme", transport="pcie", bus_ids=(link.name,))
    alone = Host("node-07", virtualization="none", pci_tree=PciTree((link,)),
                 storage=Storage(devices=(disk,)))  # fmt: skip
    found = expect.device_rates(alone, "nvme0n1")
    assert not isinstance(found, Missing)
    assert 0.85 * found.read_gbps < drive.sold_gbps < found.read_gbps
    assert f"{drive.speed_gtps:g} GT/s x 4 lanes" in found.words


#: fio's samples: device -> requests a second of 4 KiB that were measured, at which depth.
MEASURED = (
    ("sdb", False, 113),  # 7,200 a minute, 16 jobs of 16 requests, random reads
    ("sda", False, 49_882),  # SATA, 4 jobs of 2
    ("sda", True, 11_892),  # SATA, one request at a time
    ("nvme0n1", False, 85_139),  # with as many writes beside
)


@pytest.mark.parametrize(("device", "write", "measured"), MEASURED)
def test_what_fio_measured_is_possible(device: str, write: bool, measured: int) -> None:
    found = bound(expect.device_requests_per_s(host(), device, 4096, write=write))
    assert measured < found.value
    assert found.formula


def test_parity_costs_requests_and_more_was_never_measured() -> None:
    """Eight turning disks in RAID 5 wrote 466 requests a second: samples/fio/raid5_8x2tb."""
    disks = tuple(BlockDevice(f"sd{at}", "disk", rotational=True) for at in "abcdefgh")
    array = BlockDevice("md6", "md", raid_level="raid5", below=tuple(one.name for one in disks))
    alone = Host("node-07", storage=Storage(devices=(*disks, array)))
    written = bound(expect.device_requests_per_s(alone, "md6", 4096, write=True))
    read = bound(expect.device_requests_per_s(alone, "md6", 4096, write=False))
    assert (written.value, read.value) == (8 * 550 / 4, 8 * 170)
    assert written.value > 466
    assert bound(expect.device_requests_per_s(alone, "md6", 1 << 20, write=False)).value < 2200


def test_raid_0_of_four_disks_is_four_times_one() -> None:
    one = expect.device_rates(host(), "nvme0n1")
    assert not isinstance(one, Missing)
    found = bound(expect.read_gbps(host(), "/raid/run/shards"))
    assert found.value == pytest.approx(4 * one.read_gbps)
    assert found.formula.startswith("raid0 of 4 x NVMe disk on PCIe of 16 GT/s x 4 lanes")
    assert 28 < found.value < 31.5


@pytest.mark.parametrize(
    ("level", "disks", "read", "write"),
    [("raid0", 4, 4, 4), ("raid1", 2, 2, 1), ("raid10", 4, 4, 2), ("raid5", 5, 5, 4),
     ("raid6", 8, 8, 6)],
)  # fmt: skip
def test_levels_of_raid(level: str, disks: int, read: int, write: int) -> None:
    names = tuple(f"sd{at}" for at in "abcdefgh"[:disks])
    each = tuple(
        BlockDevice(name, "disk", rotational=False, transport="sata", link_gbits=6.0)
        for name in names
    )
    array = BlockDevice("md0", "md", raid_level=level, below=names)
    alone = Host("node-07", storage=Storage(devices=(*each, array)))
    one, all_of_them = (expect.device_rates(alone, name) for name in ("sda", "md0"))
    assert not isinstance(one, Missing)
    assert not isinstance(all_of_them, Missing)
    assert 0.55 < one.read_gbps < 0.57  # sold with 0.55 to 0.56
    assert all_of_them.read_gbps == pytest.approx(read * one.read_gbps)
    assert all_of_them.write_gbps == pytest.approx(write * one.write_gbps)


def test_a_volume_a_partition_and_a_file_are_what_they_stand_on() -> None:
    sata, volume, file = (expect.device_rates(host(), name) for name in ("sda", "dm-0", "loop0"))
    assert volume == sata
    assert file == expect.place_rates(host(), "/raid")


def test_small_requests_are_bound_by_number_and_large_ones_by_rate() -> None:
    turning = expect.device_requests_per_s
    assert bound(turning(host(), "sdb", 4096, write=False)).value == 170
    large = bound(turning(host(), "sdb", 16 << 20, write=False))
    assert large.value == pytest.approx(0.285e9 / (16 << 20))


FAST = Netdev("eth0", state="up", rate_gbits=200.0, mtu_bytes=9000, master=NOT_IN_INPUT)
SLOW = Netdev("eth1", state="up", rate_gbits=25.0, mtu_bytes=1500, master=NOT_IN_INPUT)
DOWN = Netdev("eth2", state="down", rate_gbits=400.0)
MEMBER = Netdev("eth3", state="up", rate_gbits=400.0, master="bond9")


def test_a_share_is_bound_by_the_network() -> None:
    here = host(netdevs=(FAST, SLOW, DOWN, MEMBER))
    many = bound(expect.read_gbps(here, "/data"))  # eight connections
    assert many.value == pytest.approx((200 * 8948 / 9038 + 25 * 1448 / 1538) / 8)
    one = bound(expect.write_gbps(here, "/models"))
    assert one.value == pytest.approx(200 * 8948 / 9038 / 8)
    assert "eth0" in one.formula
    assert "eth1" not in one.formula


@pytest.mark.parametrize(
    ("place", "kind", "said"),
    [
        ("/dev/shm", "not-applicable", "memory"),
        ("/data", "not-in-input", "no port of the network"),
        ("/", "not-in-input", "which device / (/dev/nvme8n1p2) stands on"),
    ],
)
def test_what_is_not_known_says_why(place: str, kind: str, said: str) -> None:
    found = expect.read_gbps(host(netdevs=()), place)
    assert isinstance(found, Missing)
    assert found.kind == kind
    assert said in found.text


def test_a_virtual_disk_and_disks_of_a_virtual_machine_have_no_bound() -> None:
    for found in (
        expect.device_rates(host(), "vda"),
        expect.device_rates(replace(host(), virtualization="vm"), "nvme0n1"),
    ):
        assert isinstance(found, Missing)
        assert found.kind == "not-applicable"


def test_without_the_disks_it_says_what_to_add() -> None:
    raws = [Raw("node-07", "mountinfo", stdout=text.MOUNTINFO)]
    found = expect.read_gbps(assemble("node-07", raws).host, "/raid")
    assert isinstance(found, Missing)
    assert "lsblk -J -O" in found.text
    nothing = expect.read_gbps(Host("node-07"), "/raid")
    assert isinstance(nothing, Missing)
    assert nothing.kind == "not-in-input"


def test_devices_that_stand_on_each_other_end() -> None:
    first = BlockDevice("dm-0", "dm", below=("dm-1",))
    second = BlockDevice("dm-1", "dm", below=("dm-0",))
    found = expect.device_rates(Host("x", storage=Storage(devices=(first, second))), "dm-0")
    assert isinstance(found, Missing)
