"""Which RDMA ports NCCL should use, and by which address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from preflight.expect.nics import fit_ports, is_fit, is_up
from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.facts.topology import NicPlace
from preflight.model import Export, Missing
from preflight.placement.advice.said import Said, left
from preflight.placement.advice.set_here import set_here, told

#: rdma-core names adapters by the protocol they speak, and those of none that it knows, as EFA,
#: rdmap...; older images call EFA's efa_0.
_EFA = re.compile(r"(?:rdmap\d+s\d+(?:f\d+)?|efa_\d+)")
#: A name that the kernel gives: no label of a column (NIC0), and no address on PCI.
_NAME = re.compile(r"(?!NIC\d+$)[A-Za-z][\w.-]{0,63}")
#: The only link layers that NCCL's own transport takes ports of (NCCL, net_ib).
_LINK_LAYERS = ("InfiniBand", "Ethernet")


def has_efa(host: Host) -> bool:
    """Whether the adapters are Amazon's: NCCL uses them through a plugin."""
    return any(_EFA.fullmatch(nic.name) for nic in _nics(host))


def _nics(host: Host) -> tuple[NicPlace, ...]:
    return () if isinstance(host.topology.nics, Missing) else host.topology.nics


def _training(host: Host) -> list[NicPlace]:
    return [nic for nic in _nics(host) if is_fit(host, nic)]


def training_ports(host: Host) -> tuple[NicPort, ...]:
    """Ports that are up, of the adapters that carry training."""
    return tuple(sorted(fit_ports(host), key=lambda port: _natural(port.name)))


def _active(host: Host) -> tuple[NicPort, ...]:
    ports = () if isinstance(host.nic_ports, Missing) else host.nic_ports
    return tuple(sorted(filter(is_up, ports), key=lambda port: _natural(port.name)))


def _natural(name: str) -> list[tuple[str, int]]:
    """mlx5_2 before mlx5_10."""
    return [(word, int(number or 0)) for word, number in re.findall(r"(\D*)(\d*)", name)]


def hca(host: Host) -> Said:
    """NCCL_IB_HCA, where NCCL would take more than the ports of training."""
    nics = _nics(host)
    if not nics:
        return Said()
    if has_efa(host):
        return left(
            "NCCL_IB_HCA, NCCL_IB_GID_INDEX: EFA is used through aws-ofi-nccl, which reads neither"
        )
    cut = any(isinstance(nic.role, Missing) and nic.role.kind == "unreadable" for nic in nics)
    training = _training(host)
    if cut or not training:
        return left(_nobody(nics))
    if nameless := [nic.name for nic in training if not _named(nic)]:
        return left(
            f"NCCL_IB_HCA: the names of the adapters are not in the input: {_shown(nameless)};"
            " the NIC Legend below the matrix of `nvidia-smi topo -m` tells them"
        )
    by_port = _by_port(host)
    ours, others = by_port or _by_adapter(nics, training)
    if not others and (here := set_here(host, "NCCL_IB_HCA")):
        return left(
            f"{told(here)}; without it NCCL takes all active ports by itself,"
            f" {len(ours)} that carry training"
        )
    if not others:
        up = "" if by_port else ", if they are up"
        all_ = f"and all that it would take here carry training{up} ({len(ours)})"
        return left(f"NCCL_IB_HCA: NCCL takes all active ports by itself, {all_}")
    why = (
        f"the adapters of training; NCCL by itself would take {_shown(others)} too."
        " With = names are compared whole: mlx5_1 is not mlx5_10"
    )
    return Said((Export("NCCL_IB_HCA", "=" + ",".join(ours), why),))


def switched_on(host: Host) -> Said:
    """What undoes a setting that keeps NCCL off the adapters of training."""
    ours = [nic.name for nic in _training(host)]
    if not ours or has_efa(host):
        return Said()
    past = f"NCCL goes past the adapters that carry training ({len(ours)}), over TCP"
    off, net = set_here(host, "NCCL_IB_DISABLE"), set_here(host, "NCCL_NET")
    lines = [f"{told(net)}: {past}; unset it"] if net and net.value == "Socket" else []
    if off is None or off.value == "0":
        return left(*lines)
    why = f"{told(off)}: {past}. Leave this out where they lead to no other host"
    return Said((Export("NCCL_IB_DISABLE", "0", why),), tuple(lines))


def _named(nic: NicPlace) -> bool:
    return _NAME.fullmatch(nic.name) is not None


def _nobody(nics: tuple[NicPlace, ...]) -> str:
    unknown = [nic.role.text for nic in nics if isinstance(nic.role, Missing)]
    if unknown:
        return f"NCCL_IB_HCA: which adapters carry training is not known: {unknown[0]}"
    return "NCCL_IB_HCA: no adapter here is up that training could use"


def _by_port(host: Host) -> tuple[list[str], list[str]] | None:
    """Ports of training, and others that NCCL would take; None where no port's state is known."""
    ours = training_ports(host)
    if not ours:
        return None
    others = [
        f"{_colon(port)} ({_kind(port)})"
        for port in _active(host)
        if port not in ours and port.link_layer in _LINK_LAYERS
    ]
    return [_colon(port) for port in ours], others


def _by_adapter(
    nics: Sequence[NicPlace], training: Sequence[NicPlace]
) -> tuple[list[str], list[str]]:
    """The same by names alone: of a matrix the ports are not known."""
    nics = sorted(nics, key=lambda nic: _natural(nic.name))
    ours = [nic.name for nic in nics if nic in training]
    others = (nic for nic in nics if nic.name not in ours and nic.role in ("other", "left-out"))
    return ours, [f"{nic.name} ({_beside(nic)})" for nic in others]


def _beside(nic: NicPlace) -> str:
    path = "beside no GPU" if isinstance(nic.gpu_path, Missing) else f"{nic.gpu_path} at best"
    return path if isinstance(nic.rate_gbits, Missing) else f"{nic.rate_gbits:g} Gb/s, {path}"


def _colon(port: NicPort) -> str:
    """mlx5_0/1 as NCCL writes it: mlx5_0:1."""
    return f"{port.nic}:{port.name.rpartition('/')[2]}"


def _kind(port: NicPort) -> str:
    rate = "" if isinstance(port.rate_gbits, Missing) else f" {port.rate_gbits:g} Gb/s"
    return f"{port.link_layer}{rate}"


def _shown(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def link_layers(host: Host) -> set[str]:
    """Those of the adapters of training, as far as they are known."""
    of: Iterable[object] = (
        *(port.link_layer for port in training_ports(host)),
        *(nic.link_layer for nic in _training(host)),
    )
    return {layer for layer in of if isinstance(layer, str)}
