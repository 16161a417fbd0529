"""How fast what fio did can be, by the devices below it. Rates in MB/s (1e6 bytes a second)."""

from __future__ import annotations

from preflight.expect.bound import Bound
from preflight.expect.storage import Rates, device_rates, mount_of, place_rates
from preflight.facts.fio import FioSide, FioTotal
from preflight.facts.host import Host
from preflight.facts.patterns import Pattern
from preflight.model import Known, Missing

_NO_PLACE = Missing(
    "not-in-input", "which device it was on is not told: shown, not judged; or say what is enough: "
    "--set ID.warn=VALUE",
)  # fmt: skip
_FLASH = Missing(
    "not-applicable", "flash has no number that all of its kind reach: shown, not judged; or say "
    "what is enough: --profile nvme-raid, --set io.read.iops=120000",
)  # fmt: skip
#: Of a request that nothing is before; of one on a slow disk, by its seek and by its bytes.
_LONG_S, _SLOW_S, _SLOW_BYTES_PER_S = 10.0, 0.01, 10e6
_NO_BLOCK = Missing("not-applicable", "its blocks are of several sizes: shown, not judged")


def io_read_mbps(host: Host, total: FioTotal) -> Known[Bound]:
    """MB/s that can be read."""
    found = _rates(host, total)
    if isinstance(found, Missing):
        return found
    return Bound(round(1e3 * found.read_gbps, 1), found.words)


def io_write_mbps(host: Host, total: FioTotal) -> Known[Bound]:
    """MB/s that can be written."""
    found = _rates(host, total)
    if isinstance(found, Missing):
        return found
    return Bound(round(1e3 * found.write_gbps, 1), found.words)


def io_reads_per_s(host: Host, total: FioTotal) -> Known[Bound]:
    """Requests a second at random of disks that turn."""
    found = _rates(host, total)
    if isinstance(found, Missing):
        return found
    return _FLASH if found.reads_per_s is None else Bound(found.reads_per_s, found.words)


def io_save_mbps(host: Host, pattern: Pattern) -> Known[Bound]:
    """MB/s that can come to be durable where a pattern wrote: by the devices, or the network."""
    if not pattern.place:
        return _NO_PLACE
    found = place_rates(host, pattern.place)
    if isinstance(found, Missing):
        return found
    return Bound(round(1e3 * found.write_gbps, 1), found.words)


def io_longest_us(_host: Host, one: FioSide | Pattern) -> Known[Bound]:
    """Microseconds in which a request is answered by whatever still is a store: some seconds, and
    what all in flight take on a slow disk."""
    many = one.processes if isinstance(one, Pattern) else one.in_flight
    block = one.block_bytes
    if isinstance(many, Missing) or isinstance(block, Missing):
        return many if isinstance(many, Missing) else _NO_BLOCK
    queue_s = many * max(_SLOW_S, block / _SLOW_BYTES_PER_S)
    text = f"{_LONG_S:.0f} s, and {queue_s:.3g} s for {many} in flight on a slow disk"
    return Bound(round(1e6 * (_LONG_S + queue_s)), text)


def io_demand_mbps(_host: Host, pattern: Pattern) -> Known[Bound]:
    """MB/s that the user said a host needs."""
    found = pattern.demand_mbps
    return found if isinstance(found, Missing) else Bound(found, "as it was stated")


def _rates(host: Host, total: FioTotal) -> Known[Rates]:
    """By the device or the directory that the job names, else by the disk that fio saw at work."""
    if total.target.startswith("/dev/"):
        return device_rates(host, total.target.rpartition("/")[2])
    if not total.target.startswith("/"):
        return device_rates(host, total.disk) if total.disk else _NO_PLACE
    found, mount = place_rates(host, total.target), mount_of(host, total.target)
    if isinstance(found, Missing) or isinstance(mount, Missing) or mount.reach != "network":
        return found
    text = f"over the network {found.read_gbps:.3g} GB/s at most ({found.words}); what the server "
    return Missing("not-applicable", f"{text}can do is not known: shown, not judged")
