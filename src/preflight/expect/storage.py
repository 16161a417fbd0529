"""How fast storage can be, by the devices that a file system stands on and the links to them.

A bound is what links and mechanics let pass; what a drive is sold for may be less. Rates are in
GB/s (1e9 bytes a second).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from preflight.expect.bound import Bound
from preflight.expect.pcie import link_gbps
from preflight.facts.host import Host
from preflight.facts.pci_tree import PciDevice
from preflight.facts.storage import BlockDevice, Mount
from preflight.model import NOT_IN_INPUT, Known, Missing

#: Facts of the host that these bounds are made of.
FACTS = ("storage", "pci_tree", "netdevs", "nic_ports")

#: A packet of PCI Express adds 4 bytes of framing with its number, 4 of a checksum and a header of
#: 16 (Intel, AN 708, "Protocol Overhead"); it holds 512 bytes on most servers, or as lspci tells.
_PACKET, _PACKET_ADDS = 512, 24
#: SATA and SAS up to 12 Gbit/s send 10 bits for 8; a frame of SATA holds 8192 bytes and adds 20 of
#: header, checksum and marks, and the protocol answers each. Drives are sold with up to 560 MB/s.
_SATA_SHARE = 0.935
#: Disks that turn 7,200 times a minute, as they are sold (Seagate, Exos X24, X18): at the rim, and
#: 4 KiB at random with 16 under way; what is written waits in the disk's own memory.
_HDD_GBPS, _HDD_READS, _HDD_WRITES = 0.285, 170.0, 550.0
#: Requests of the array for one small write: data and parity read, then written.
_PARITY_COSTS = {"raid4": 4, "raid5": 4, "raid6": 6}
_PARITY_DISKS = {"raid4": 1, "raid5": 1, "raid6": 2}
_COPIES = {"raid1", "raid10"}
#: Headers of IPv4 and TCP with timestamps, and what Ethernet adds to a packet.
_TCP_HEADERS, _ETHERNET = 52, 38
#: Partition, RAID, encryption, volume, and a file on another of these.
_DEEPEST = 8

_MEMORY = Missing("not-applicable", "it is the host's memory: no storage is measured there")
_LAYERS = Missing(
    "not-applicable", "it lies over others, as the root of a container: name a directory of a disk"
)
_MACHINE = Missing("not-applicable", "the machine below this virtual one serves it, unseen")
_VIRTUAL = Missing("not-applicable", "a virtual disk: who gives it decides what it can do")
_NO_DEVICES = Missing(
    "not-in-input", "the disks are not in the input: add `lsblk -J -O` and `sudo lspci -vv`"
)


class Rates(Struct, frozen=True):
    """What a device can do. Requests a second at random are known of disks that turn; of others
    only the rate limits them. `words`: of what it is made."""

    read_gbps: float
    write_gbps: float
    words: str
    reads_per_s: float | None = None
    writes_per_s: float | None = None


def read_gbps(host: Host, place: str) -> Known[Bound]:
    """GB/s that can be read from the file system of a directory, from its devices."""
    found = place_rates(host, place)
    return found if isinstance(found, Missing) else Bound(found.read_gbps, found.words)


def write_gbps(host: Host, place: str) -> Known[Bound]:
    """GB/s that can be written to the file system of a directory until it is on its devices."""
    found = place_rates(host, place)
    return found if isinstance(found, Missing) else Bound(found.write_gbps, found.words)


def requests_per_s(host: Host, place: str, block_bytes: int, *, write: bool) -> Known[Bound]:
    """Requests a second at random, of one size each."""
    found = place_rates(host, place)
    return found if isinstance(found, Missing) else _requests(found, block_bytes, write=write)


def device_requests_per_s(
    host: Host, device: str, block_bytes: int, *, write: bool
) -> Known[Bound]:
    """The same of a device by its name: md0, nvme0n1, sda1."""
    found = device_rates(host, device)
    return found if isinstance(found, Missing) else _requests(found, block_bytes, write=write)


def _requests(found: Rates, block_bytes: int, *, write: bool) -> Bound:
    rate = (found.write_gbps if write else found.read_gbps) * 1e9 / block_bytes
    own = found.writes_per_s if write else found.reads_per_s
    if own is not None and own < rate:
        return Bound(own, f"{found.words}; {own:g} requests a second at random")
    return Bound(rate, f"{found.words}, {block_bytes:,} bytes a request")


def place_rates(host: Host, place: str) -> Known[Rates]:
    """By the mount that a path lies on."""
    mount = mount_of(host, place)
    return mount if isinstance(mount, Missing) else mount_rates(host, mount)


def mount_of(host: Host, place: str) -> Known[Mount]:
    """The mount that a path lies on, as its name tells."""
    mounts = host.storage.mounts
    if isinstance(mounts, Missing):
        return mounts
    path = f"{place.rstrip('/')}/"
    above = [one for one in mounts if path.startswith(f"{one.name.rstrip('/')}/")]
    if not above:
        return Missing("not-in-input", f"no file system in the input holds {place}")
    return max(above, key=lambda one: len(one.name))


def mount_rates(host: Host, mount: Mount, depth: int = 0) -> Known[Rates]:
    """By who serves the file system."""
    if mount.reach == "network":
        return _network(host, mount)
    if mount.reach != "local":
        return {"memory": _MEMORY, "layered": _LAYERS, "machine": _MACHINE}[mount.reach]
    devices = host.storage.devices
    if isinstance(devices, Missing):
        return _NO_DEVICES if devices.kind == "not-in-input" else devices
    short = mount.source.rpartition("/")[2]
    known = [one for one in devices if mount.device and one.device == mount.device]
    known = known or [one for one in devices if short in (one.name, one.model)]
    if not known:
        text = f"which device {mount.name} ({mount.source}) stands on is not told"
        return Missing("not-in-input", text)
    return device_rates(host, known[0].name, depth + 1)


def device_rates(host: Host, name: str, depth: int = 0) -> Known[Rates]:
    """By what the device is made of, down to disks."""
    devices = host.storage.devices
    if isinstance(devices, Missing):
        return _NO_DEVICES if devices.kind == "not-in-input" else devices
    device = next((one for one in devices if one.name == name), None)
    if device is None:
        return Missing("not-in-input", f"no device {name} is in the input")
    if depth > _DEEPEST:
        return Missing("unreadable", f"{name} stands on more devices than machines have")
    if device.kind == "loop" and device.file:
        return _in_file(host, device, depth)
    if device.below:
        return _stacked(host, device, depth)
    if device.kind == "virtual" or device.transport == "virtio":
        return _VIRTUAL
    if device.kind == "memory":
        return _MEMORY
    return _nvme(host, device) if device.kind == "nvme" else _disk(device)


def _in_file(host: Host, device: BlockDevice, depth: int) -> Known[Rates]:
    mounts = host.storage.mounts
    if isinstance(mounts, Missing):
        return mounts
    above = [one for one in mounts if device.file.startswith(f"{one.name.rstrip('/')}/")]
    if not above:
        return Missing("not-in-input", f"{device.name}: what holds {device.file} is not told")
    return mount_rates(host, max(above, key=lambda one: len(one.name)), depth + 1)


def _stacked(host: Host, device: BlockDevice, depth: int) -> Known[Rates]:
    """Of a partition what its disk can do; of an array by its level. Of a volume over several
    disks nobody tells how: no more than all of them."""
    each = [device_rates(host, name, depth + 1) for name in device.below]
    unknown = next((one for one in each if isinstance(one, Missing)), None)
    known = [one for one in each if isinstance(one, Rates)]
    if unknown is not None or not known:
        return unknown or NOT_IN_INPUT
    if len(known) == 1 and device.kind != "md":
        return known[0]
    level = device.raid_level if isinstance(device.raid_level, str) else ""
    return _array(known, level)


def _array(each: Sequence[Rates], level: str) -> Rates:
    """All disks serve what is read. Of what is written copies take as much again, and parity a
    disk's share; a small write costs more requests with parity (md(4))."""
    count = len(each)
    read = min(one.read_gbps for one in each) * count
    least = min(one.write_gbps for one in each)
    write, cost = least * count, 1
    if level in _COPIES:
        cost = count if level == "raid1" else 2
        write = least * count / cost
    elif level in _PARITY_DISKS:
        write, cost = least * max(count - _PARITY_DISKS[level], 1), _PARITY_COSTS[level]
    made = f"{level} of" if level else "at most, over"
    return Rates(
        read,
        write,
        f"{made} {count} x {each[0].words}",
        _times(each[0].reads_per_s, count),
        _times(each[0].writes_per_s, count / cost),
    )


def _times(value: float | None, count: float) -> float | None:
    return None if value is None else value * count


def _nvme(host: Host, device: BlockDevice) -> Known[Rates]:
    """By its PCIe link as it runs, and the share of it that packets leave."""
    if device.transport not in ("pcie", NOT_IN_INPUT):
        return Missing("not-applicable", f"{device.name} is reached over {device.transport}")
    if host.virtualization == "vm":
        return _VIRTUAL
    tree = host.pci_tree
    if isinstance(tree, Missing):
        return tree
    link = next((one for one in tree.devices if one.name in device.bus_ids), None)
    if link is None:
        text = f"where {device.name} is on PCI is not in the input: ask the host itself"
        return Missing("not-in-input", text)
    speed, width = link.speed_gtps, link.width
    if isinstance(speed, Missing) or isinstance(width, Missing):
        return speed if isinstance(speed, Missing) else NOT_IN_INPUT
    packet = _packet(link)
    rate = link_gbps(speed, width) * packet / (packet + _PACKET_ADDS)
    words = f"NVMe disk on PCIe of {speed:g} GT/s x {width} lanes, packets of {packet} bytes"
    return Rates(rate, rate, words)


def _packet(link: PciDevice) -> int:
    return _PACKET if isinstance(link.payload_bytes, Missing) else link.payload_bytes


def _disk(device: BlockDevice) -> Known[Rates]:
    """SATA and SAS; what turns is slower than its link."""
    if isinstance(device.rotational, Missing):
        return device.rotational
    speed = device.link_gbits
    if device.rotational:
        return Rates(_HDD_GBPS, _HDD_GBPS, "disk that turns, 7,200 a minute",
                     _HDD_READS, _HDD_WRITES)  # fmt: skip
    if isinstance(speed, Missing):
        return Missing("not-in-input", f"the speed of the link of {device.name} is not told")
    if device.transport == "sata":
        rate = speed / 10 * _SATA_SHARE
        return Rates(rate, rate, f"SATA of {speed:g} Gbit/s, 10 bits for 8 and its frames")
    rate = speed / 10
    return Rates(rate, rate, f"SAS of {speed:g} Gbit/s, 10 bits for 8")


def _network(host: Host, mount: Mount) -> Known[Rates]:
    """By the ports that are up: NFS with one connection uses the fastest, others all of them at
    most. What the server can do is not known."""
    ports = _ports(host)
    if not ports:
        text = "no port of the network that is up is in the input: its rate is not known"
        return Missing("not-in-input", text)
    one = not isinstance(mount.nfs, Missing) and mount.nfs.connections == 1
    used = [max(ports)] if one else ports
    rate = sum(gbits for gbits, _ in used) / 8
    names = ", ".join(f"{name} {gbits:.4g} Gbit/s" for gbits, name in used[:4])
    more = f" and {len(used) - 4} more" if len(used) > 4 else ""
    words = f"the network: {'' if one else 'at most all of '}{names}{more}"
    return Rates(rate, rate, words)


def _ports(host: Host) -> list[tuple[float, str]]:
    """Rate and name of each port that carries data: of interfaces, of bonds in place of their
    members, and of InfiniBand without an interface. TCP's share of packets is taken off."""
    devices = () if isinstance(host.netdevs, Missing) else host.netdevs
    found = [
        (each.rate_gbits * _tcp_share(each.mtu_bytes), each.name)
        for each in devices
        if not isinstance(each.rate_gbits, Missing) and each.rate_gbits > 0
        and each.state == "up" and isinstance(each.master, Missing)
        and each.kind in ("physical", "bond", "virtual-function")
    ]  # fmt: skip
    names = {name for _, name in found}
    ports = () if isinstance(host.nic_ports, Missing) else host.nic_ports
    return found + [
        (each.rate_gbits, each.name)
        for each in ports
        if not isinstance(each.rate_gbits, Missing) and each.state == "ACTIVE"
        and each.netdev not in names and each.link_layer == "InfiniBand"
    ]  # fmt: skip


def _tcp_share(mtu_bytes: Known[int]) -> float:
    if isinstance(mtu_bytes, Missing) or mtu_bytes <= _TCP_HEADERS:
        return 1.0
    return (mtu_bytes - _TCP_HEADERS) / (mtu_bytes + _ETHERNET)
