"""NCCL_IB_HCA held against the adapters of the host and their ports.

How the list is read: hca_list.py. NCCL leaves out a port that is not active.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.facts.nics import NicPort
from preflight.facts.stack import EnvVar
from preflight.facts.topology import NicPlace
from preflight.hca_list import entries, is_meant, names_in, takes
from preflight.judge.environment.scene import Fault
from preflight.model import Known, Missing

_ACTIVE = "ACTIVE"
#: Below one PCIe switch with a GPU: such an adapter is there for training, whatever else may be.
_BESIDE = ("PIX", "PXB")


def absent(one: EnvVar, have: Sequence[str]) -> Iterator[Fault]:
    """Adapters that the host has not."""
    names = names_in(one.value)
    gone = [name for name in names if not any(is_meant(name, one.value, each) for each in have)]
    told = ", ".join(have[:12]) or "none"
    if len(gone) == len(names):
        yield Fault(one, f"the host has no such adapter; it has {told}: NCCL falls back to TCP")
    elif gone:
        yield Fault(one, f"the host has no {', '.join(gone)}; it has {told}", mild=True)


def idle(one: EnvVar, known: Known[tuple[NicPort, ...]]) -> Iterator[Fault]:
    """Adapters that are there and of which no port that is meant is active. Where ports are not
    known, nothing is told: others say that they are not."""
    ports = () if isinstance(known, Missing) else known
    found = [(entry, _meant(entry, one.value, ports)) for entry in entries(one.value)]
    there = [(entry, meant) for entry, meant in found if _is_there(entry[0], one.value, ports)]
    down = [_told(entry, meant) for entry, meant in there if not _any_active(meant)]
    if down and len(down) == len(found):
        yield Fault(one, f"{', '.join(down)}: no port is left, NCCL falls back to TCP")
    elif down:
        yield Fault(one, f"{', '.join(down)}: NCCL leaves it out", mild=True)


def taken_along(one: EnvVar, known: Known[tuple[NicPort, ...]]) -> Iterator[Fault]:
    """Adapters that nobody named: without = mlx5_1 means mlx5_10 as well."""
    if isinstance(known, Missing) or one.value.startswith("="):
        return
    names = names_in(one.value)
    adapters = {port.nic for port in known}
    more = sorted(
        {
            port.nic for port in known
            for name in names
            if port.state == _ACTIVE and name in adapters and port.nic not in names
            and is_meant(name, one.value, port.nic)
        }
    )  # fmt: skip
    if more:
        told = (
            f"without a = before the list it takes {', '.join(more)} too, whose names begin alike"
        )
        yield Fault(one, told, f"={one.value}", mild=True)


def left_out(one: EnvVar, known: Known[tuple[NicPlace, ...]]) -> Iterator[Fault]:
    """Adapters beside a GPU that the list does not take, in either of its forms. Where it takes
    none of them that is there, others tell why."""
    if isinstance(known, Missing):
        return
    able = (nic for nic in known if nic.role in ("training", "left-out"))
    ours = [nic.name for nic in able if nic.gpu_path in _BESIDE]
    taken = [name for name in ours if takes(one.value, name)]
    if taken and len(taken) < len(ours):
        out = ", ".join(name for name in ours if name not in taken)
        told = (
            f"it takes {len(taken)} of the {len(ours)} adapters beside a GPU, and leaves out {out}"
        )
        yield Fault(one, told, mild=True)


def _is_there(name: str, value: str, ports: Sequence[NicPort]) -> bool:
    return any(is_meant(name, value, port.nic) for port in ports)


def _meant(entry: tuple[str, str], value: str, ports: Sequence[NicPort]) -> list[NicPort]:
    name, number = entry
    of_name = (port for port in ports if is_meant(name, value, port.nic))
    return [port for port in of_name if not number or port.name.endswith(f"/{number}")]


def _any_active(ports: Sequence[NicPort]) -> bool:
    """A state that is not known may be one."""
    return any(port.state == _ACTIVE or isinstance(port.state, Missing) for port in ports)


def _told(entry: tuple[str, str], ports: Sequence[NicPort]) -> str:
    name, number = entry
    if not ports:
        return f"{name} has no port {number}"
    return f"{name} is {' and '.join(dict.fromkeys(str(port.state) for port in ports))}"
