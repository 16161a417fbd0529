"""Over which network interface processes find each other: NCCL_SOCKET_IFNAME and gloo's."""

from __future__ import annotations

from preflight.facts.host import Host
from preflight.facts.nics import Netdev
from preflight.model import Export, Missing
from preflight.placement.advice.adapters import has_efa, training_ports
from preflight.placement.advice.said import Said, left

#: NCCL takes interfaces that begin with "ib" first, and these only if there is no other (NCCL's
#: user guide, NCCL_SOCKET_IFNAME).
_LAST = ("docker", "lo")
_FIRST = "ib"
#: Of this host alone: bridges and pairs of containers and virtual machines.
_INSIDE = ("docker", "br-", "virbr", "veth", "cni", "flannel", "cali", "lxc", "lxd", "podman",
           "tun", "tap", "kube", "vxlan", "wg", "tailscale", "dummy", "vnet")  # fmt: skip
_NAME = "NCCL_SOCKET_IFNAME"


def sockets(host: Host) -> Said:
    """The interface, where NCCL has several to choose from."""
    if isinstance(host.netdevs, Missing):
        return Said()
    usable = [one for one in host.netdevs if _usable(one)]
    taken = [one for one in usable if not one.name.startswith(_LAST)]
    if len(taken) < 2:
        return left(f"{_NAME}: NCCL has one to take, {taken[0].name}") if taken else Said()
    over_ib = [one.name for one in taken if one.name.startswith(_FIRST)]
    if over_ib:
        return left(f"{_NAME}: NCCL takes {', '.join(over_ib[:2])} first, by its name")
    outward = [one for one in taken if not one.name.startswith(_INSIDE) and one.kind != "bridge"]
    best = _best(outward, carries_data=_carries_data(host))
    if best is None:
        names = ", ".join(one.name for one in taken[:6])
        return left(f"{_NAME}: of {names} none is known to lead to the other hosts: name yours")
    return _named(best, taken, carries_data=_carries_data(host))


def _usable(one: Netdev) -> bool:
    """Up, with an address of IPv4 that is not of the link alone."""
    down = one.carrier is False or one.state in ("down", "lowerlayerdown", "notpresent", "dormant")
    known = () if isinstance(one.ipv4, Missing) else one.ipv4
    return not down and any(not address.startswith(("127.", "169.254.")) for address in known)


def _carries_data(host: Host) -> bool:
    """Whether collectives go over sockets as well: no adapter does RDMA."""
    return not training_ports(host) and not has_efa(host) and not _training_known(host)


def _training_known(host: Host) -> bool:
    nics = () if isinstance(host.topology.nics, Missing) else host.topology.nics
    return any(nic.role == "training" for nic in nics)


def _best(outward: list[Netdev], *, carries_data: bool) -> Netdev | None:
    """That of the default route, which hosts have alike; where it carries the data, the fastest."""
    routed = [one for one in outward if one.default_route is True]
    if carries_data:
        fastest = max((_rate(one) for one in outward), default=0.0)
        fast = [one for one in outward if fastest and _rate(one) == fastest]
        routed = [one for one in routed if one in fast] or fast or routed
    if len(routed) == 1 or (routed and not carries_data):
        return routed[0]
    return outward[0] if len(outward) == 1 else None


def _rate(one: Netdev) -> float:
    return 0.0 if isinstance(one.rate_gbits, Missing) else one.rate_gbits


def _named(best: Netdev, taken: list[Netdev], *, carries_data: bool) -> Said:
    others = [one.name for one in taken if one is not best]
    shown = ", ".join(others[:4]) + (f" and {len(others) - 4} more" if len(others) > 4 else "")
    reason = (
        "the only one that leads out" if best.default_route is not True else "the default route"
    )
    if carries_data:
        rate = f", {_rate(best):g} Gb/s" if _rate(best) else ""
        reason = f"{reason}{rate}; without RDMA it carries the collectives too"
        if best.default_route is not True and _rate(best):
            reason = f"the fastest{rate}; without RDMA it carries the collectives too"
    else:
        reason += "; it serves the start alone, data goes over RDMA"
    why = (
        f"{reason}. NCCL by itself would take any of {shown} too; with = the name is compared whole"
    )
    gloo = "the same for torch's gloo, which else takes what the host's own name leads to"
    return Said(
        (Export(_NAME, f"={best.name}", why), Export("GLOO_SOCKET_IFNAME", best.name, gloo))
    )
