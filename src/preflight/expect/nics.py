"""Which adapters count: the one rule, for what judges, bounds and advises.

What each is for is a fact (`role` of facts/topology.py and facts/nics.py; assemble/network): by its
place and rate, and by the list that somebody named (Host.nic_choice).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.facts.topology import NicPlace
from preflight.model import Missing

Fits = Callable[[Host, NicPlace | NicPort], bool]


def is_up(port: NicPort) -> bool:
    """Whether a port carries data now."""
    return isinstance(port.state, str) and port.state.upper() == "ACTIVE"


def training_ports(host: Host) -> tuple[NicPort, ...]:
    """The ports that training goes over: those that are for it, and up."""
    return tuple(port for port in _live(host) if _is(host, port, _counts))


def fit_ports(host: Host) -> tuple[NicPort, ...]:
    """The ports that are up and that training could use: see `is_fit`."""
    return tuple(port for port in _live(host) if _is(host, port, is_fit))


def _live(host: Host) -> Iterator[NicPort]:
    ports = () if isinstance(host.nic_ports, Missing) else host.nic_ports
    return (port for port in ports if is_up(port))


def _is(host: Host, port: NicPort, fits: Fits) -> bool:
    """By the port's own role; of a virtual function, which has none, by its adapter's place."""
    if isinstance(port.role, str) and port.role != "virtual":
        return fits(host, port)
    nics = () if isinstance(host.topology.nics, Missing) else host.topology.nics
    return any(nic.name == port.nic and fits(host, nic) for nic in nics)


def _counts(_host: Host, one: NicPlace | NicPort) -> bool:
    return one.role == "training"


def is_fit(host: Host, one: NicPlace | NicPort) -> bool:
    """Whether training could use it, though NCCL_IB_HCA of the environment may leave it out: advice
    and NCCL's log are held against what there is. What --nics leaves out is left out."""
    return one.role == "training" or (one.role == "left-out" and not is_stated(host))


def is_stated(host: Host) -> bool:
    """Whether the user named the adapters by --nics."""
    return not isinstance(host.nic_choice, Missing) and host.nic_choice.by == "--nics"
