"""By which of its addresses a RoCE port should be used: NCCL_IB_GID_INDEX and its successors."""

from __future__ import annotations

from preflight.facts.host import Host
from preflight.facts.nics import Gid, NicPort
from preflight.model import Export, Missing
from preflight.placement.advice import software
from preflight.placement.advice.adapters import has_efa, link_layers, training_ports
from preflight.placement.advice.said import Said, left

#: From this version on NCCL looks for the first RoCE v2 address of IPv4 on each port; before, it
#: takes index 0, mostly RoCE v1 (NCCL's user guide, NCCL_IB_GID_INDEX).
_CHOOSES = "2.21"
_NAME = "NCCL_IB_GID_INDEX"


def gid_index(host: Host) -> Said:
    """The index where this NCCL needs one and one is right for all ports of training."""
    layers = link_layers(host)
    if has_efa(host) or not layers:
        return Said()
    if "Ethernet" not in layers:
        return left(f"{_NAME}: it is of RoCE, and these adapters are InfiniBand")
    ports = [port for port in training_ports(host) if port.link_layer == "Ethernet"]
    version = software.nccl(host)
    tables = [port.gids for port in ports if not isinstance(port.gids, Missing)]
    if not ports or len(tables) < len(ports):
        return _untold(version)
    fourth = {port.nic: _first(port, ipv4=True) for port in ports}
    if None not in fourth.values():
        return _by_ipv4(fourth, ports, version)
    sixth = {port.nic: _first(port, ipv4=False) for port in ports}
    if set(fourth.values()) == {None} and None not in sixth.values():
        return _by_ipv6(sixth, version)
    without = ", ".join(sorted(nic for nic, index in fourth.items() if index is None))
    return left(f"{_NAME}: no index is right: {without} without a RoCE v2 address of IPv4")


def _untold(version: str) -> Said:
    if software.reaches(version, _CHOOSES):
        return left(f"{_NAME}: NCCL {version} chooses the RoCE v2 address of each port by itself")
    known = f"NCCL {version}" if version else "NCCL before 2.21"
    return left(f"{_NAME}: {known} needs it, and the tables of addresses are not known (show_gids)")


def _first(port: NicPort, *, ipv4: bool) -> int | None:
    """The index that NCCL would choose: the lowest of RoCE v2 with an address of the family."""
    gids: tuple[Gid, ...] = () if isinstance(port.gids, Missing) else port.gids
    fitting = (gid.index for gid in gids if gid.kind == "RoCE v2" and _is(gid, ipv4=ipv4))
    return min(fitting, default=None)


def _is(gid: Gid, *, ipv4: bool) -> bool:
    has = isinstance(gid.ipv4, str) and bool(gid.ipv4)
    return has if ipv4 else not has and not gid.gid.lower().startswith("fe80:")


def _by_ipv4(index: dict[str, int | None], ports: list[NicPort], version: str) -> Said:
    if software.reaches(version, _CHOOSES):
        several = [port.nic for port in ports if _several(port)]
        more = (
            f"; {several[0]} has several: NCCL_IB_ADDR_RANGE names the network" if several else ""
        )
        return left(f"{_NAME}: NCCL {version} chooses RoCE v2 on each port by itself{more}")
    return _one_number(index, version, "IPv4")


def _several(port: NicPort) -> bool:
    gids = () if isinstance(port.gids, Missing) else port.gids
    return sum(1 for gid in gids if gid.kind == "RoCE v2" and _is(gid, ipv4=True)) > 1


def _one_number(index: dict[str, int | None], version: str, family: str) -> Said:
    if len(set(index.values())) > 1:
        each = ", ".join(f"{nic} {at}" for nic, at in index.items())
        return left(f"{_NAME}: no one number is right ({each}); NCCL from 2.21 on chooses by port")
    now = f"NCCL {version} takes 0" if version else "NCCL before 2.21 takes 0, later ones choose"
    why = (
        f"RoCE v2 with {family} on all {len(index)} adapters of this host; {now}."
        " The index moves with addresses: ask again after a change"
    )
    return Said((Export(_NAME, str(next(iter(index.values()))), why),))


def _by_ipv6(index: dict[str, int | None], version: str) -> Said:
    if software.reaches(version, _CHOOSES):
        why = (
            f"no port has RoCE v2 with IPv4, the only kind that NCCL {version} looks for by itself"
        )
        return Said((Export("NCCL_IB_ADDR_FAMILY", "AF_INET6", why),))
    if version:
        return _one_number(index, version, "IPv6")
    return left(
        f"{_NAME}: these ports have IPv6 alone: NCCL_IB_ADDR_FAMILY=AF_INET6 from NCCL 2.21 on,"
        f" before it {_NAME} ({', '.join(f'{nic} {at}' for nic, at in index.items())})"
    )
