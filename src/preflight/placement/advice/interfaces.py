"""Over which network interface processes find each other: NCCL_SOCKET_IFNAME and gloo's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from preflight.expect.nics import is_fit
from preflight.facts.host import Host
from preflight.facts.nics import Netdev
from preflight.facts.stack import EnvVar
from preflight.model import Export, Missing
from preflight.placement.advice.adapters import has_efa, training_ports
from preflight.placement.advice.said import Said, left
from preflight.placement.advice.set_here import set_here, told

#: NCCL takes interfaces that begin with "ib" first, and these only if there is no other (NCCL's
#: user guide, NCCL_SOCKET_IFNAME).
_LAST = ("docker", "lo")
_FIRST = "ib"
#: Of this host alone: bridges and pairs of containers and virtual machines.
_INSIDE = ("docker", "br-", "virbr", "veth", "cni", "flannel", "cali", "lxc", "lxd", "podman",
           "tun", "tap", "kube", "vxlan", "wg", "tailscale", "dummy", "vnet")  # fmt: skip
#: Of these alone, which no setup leads out of the host by.
_LOCAL = re.compile(r"lo$|docker|virbr|veth|lxcbr|lxdbr|podman|vnet\d|dummy|br-[0-9a-f]{12}$")
#: By so much another interface is worth naming.
_FASTER = 2
_NAME, _GLOO = "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"
_GLOO_WHY = "the same for torch's gloo, which else takes what the host's own name leads to"
_STOPS = "the run stops at the start"


def sockets(host: Host) -> Said:
    """The interface, where NCCL has several to choose from, or is set to one that does not do."""
    here = set_here(host, _NAME)
    taken = [one for one in _netdevs(host) if _usable(one) and not one.name.startswith(_LAST)]
    said = _chosen(host, taken) if here is None else _weighed(host, here, taken)
    gloo = set_here(host, _GLOO)
    fault = _fault(host, f"={gloo.value}") if gloo else ""
    if gloo is None or not fault or any(one.name == _GLOO for one in said.exports):
        return said
    return Said(said.exports, (*said.left, f"{told(gloo)}, {fault}; unset it, or name another"))


def _weighed(host: Host, here: EnvVar, taken: Sequence[Netdev]) -> Said:
    if fault := _fault(host, here.value):
        return _instead(host, taken, f"{told(here)}, {fault}")
    mine = [one for one in taken if _takes(here.value, one.name)]
    if here.value.startswith("^"):  # what is left out leaves a choice
        return _chosen(host, mine)
    return _kept(host, here, mine, taken)


def _fault(host: Host, value: str) -> str:
    """Why a list of interfaces leads nowhere; "" where it may lead somewhere."""
    mine = [one for one in _netdevs(host) if _takes(value, one.name)]
    names = [one.name for one in mine] or _words(value)
    routed = any(one.default_route is True for one in mine)
    if value[:1] != "^" and not routed and names and all(map(_LOCAL.match, names)):
        return "which leads to no other host"
    if not mine:
        all_ = host.env_targets.netdevs
        if isinstance(all_, Missing) or any(_takes(value, name) for name in all_):
            return ""
        return f"and no interface here has such a name: {_STOPS}"
    return f"which is down: {_STOPS}" if all(map(_is_down, mine)) else ""


def _takes(value: str, name: str) -> bool:
    """Whether NCCL's list takes an interface: ^ leaves out, = wants whole names, else a beginning
    is enough (NCCL's user guide)."""
    whole = value.lstrip("^").startswith("=")
    named = any(name == word if whole else name.startswith(word) for word in _words(value))
    return named != value.startswith("^")


def _words(value: str) -> list[str]:
    return [word.strip() for word in value.lstrip("^=").split(",") if word.strip()]


def _netdevs(host: Host) -> tuple[Netdev, ...]:
    return () if isinstance(host.netdevs, Missing) else host.netdevs


def _kept(host: Host, here: EnvVar, mine: Sequence[Netdev], taken: Sequence[Netdev]) -> Said:
    """What is set; a faster interface where the collectives go over it; the same for gloo."""
    rate, best = max(map(_rate, mine), default=0.0), max(taken, key=_rate, default=None)
    if best and _carries_data(host) and 0 < _FASTER * rate <= _rate(best):
        return left(
            f"{told(here)}, of {rate:g} Gb/s, and without RDMA it carries the collectives too:"
            f" {best.name} has {_rate(best):g} Gb/s, if it leads to the other hosts"
        )
    names = ", ".join(one.name for one in mine[:4])
    line = f"{told(here)}: NCCL takes {names}" if mine else told(here)
    alone = len(mine) == 1 < len(taken) and set_here(host, _GLOO) is None
    return Said((Export(_GLOO, mine[0].name, _GLOO_WHY),) if alone else (), (line,))


def _instead(host: Host, taken: Sequence[Netdev], why: str) -> Said:
    """What NCCL would be told were nothing set, or what it would take by itself."""
    said = _chosen(host, taken)
    first = [one for one in taken if one.name.startswith(_FIRST)]
    alone = first or taken if first or len(taken) == 1 else []
    if said.exports:
        return Said(tuple(
            replace(one, why=f"{why}. {one.why}") if one.name == _NAME else one
            for one in said.exports
        ))  # fmt: skip
    if alone:
        return Said((Export(_NAME, f"={alone[0].name}", f"{why}. This one leads out"),))
    return left(f"{why}; unset it, or name the interface that leads to the other hosts")


def _chosen(host: Host, taken: Sequence[Netdev]) -> Said:
    """What to name where nothing is set."""
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
    known = () if isinstance(one.ipv4, Missing) else one.ipv4
    return not _is_down(one) and any(
        not address.startswith(("127.", "169.254.")) for address in known
    )


def _is_down(one: Netdev) -> bool:
    return one.carrier is False or one.state in ("down", "lowerlayerdown", "notpresent", "dormant")


def _carries_data(host: Host) -> bool:
    """Whether collectives go over sockets as well: no adapter does RDMA."""
    return not training_ports(host) and not has_efa(host) and not _training_known(host)


def _training_known(host: Host) -> bool:
    nics = () if isinstance(host.topology.nics, Missing) else host.topology.nics
    return any(is_fit(host, nic) for nic in nics)


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


def _named(best: Netdev, taken: Sequence[Netdev], *, carries_data: bool) -> Said:
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
    return Said((Export(_NAME, f"={best.name}", why), Export(_GLOO, best.name, _GLOO_WHY)))
