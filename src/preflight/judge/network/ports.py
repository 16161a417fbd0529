"""Ports that are not up: which of them training misses, and what to do by how far each has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.judge.results import result, undetermined
from preflight.judge.steps import of_layer
from preflight.model import Action, Check, Evidence, Missing, Result, Status

UP = "ACTIVE"
#: So many of the GPUs have an adapter beside them where that is the host's design.
MOST = 0.75
_NOBODY = "no port is up that training would use: see network.ports.any"

_UNTOLD = Missing(
    "unreadable",
    "nvidia-smi topo -m names this adapter, and the list of the RDMA devices does not have it: it "
    "is gone, or the two are of different times or hosts: lspci | grep -i -e mellanox -e infini",
)


class Cause(Struct, frozen=True):
    """Why a port is not up, and what to type; NIC, PORT and IFACE stand for its names."""

    reason: str
    fix: tuple[str, ...]
    action: Action


_SWITCHED_OFF = Cause(
    "it is switched off on this side: by hand, by the network's configuration, or its module is "
    "missing or refused",
    (
        "Ethernet: ip -d link show IFACE; sudo ip link set IFACE up",
        "InfiniBand: sudo ibportstate -C NIC -P PORT -D 0 PORT enable",
        "InfiniBand: sudo mlxlink -d NIC -p PORT   # why it is off",
        "sudo dmesg | grep -i -e mlx5 -e module -e cable | tail -20   # a module that is refused",
    ),
    Action.FIX_CONFIG,
)
_NO_SIGNAL = Cause(
    "it is on and sees no signal of the other end: cable, module, or the switch's port is off",
    (
        "sudo mlxlink -d NIC -m -c -e   # module, signal, error rates; or: sudo ethtool -m IFACE",
        "is the switch's port on? then reseat, clean, exchange the cable with that of a sound port",
        "what moves with the cable is the cable; what stays is the port",
    ),
    Action.INSPECT,
)
_TRAINING = Cause(
    "its link is being trained and does not come up: a bad signal, or the ends are set to "
    "different speeds or error correction",
    (
        "sudo mlxlink -d NIC -m -c -e   # what both ends are set to, error rates",
        "reseat and clean the cable, then another one; another port of the switch",
    ),
    Action.INSPECT,
)
_NO_MANAGER = Cause(
    "the cable is fine, and no subnet manager has set it up",
    (
        "sudo sminfo -C NIC   # which subnet manager answers",
        "start one: on the switch, in UFM, or `sudo systemctl start opensm` on one host",
        "others of the host are up: the partition or the guard of the fabric leaves this port out",
    ),
    Action.FIX_CONFIG,
)
#: By the physical state (InfiniBand Architecture Specification, 14.2.5.6, PortPhysicalState).
_PHYSICAL = {
    "Disabled": _SWITCHED_OFF, "Polling": _NO_SIGNAL, "Sleep": _NO_SIGNAL,
    "PortConfigurationTraining": _TRAINING, "LinkErrorRecovery": _TRAINING, "Phy Test": _TRAINING,
}  # fmt: skip
_STATES = {"INIT": _NO_MANAGER, "ARMED": _NO_MANAGER}


def judge_ports(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of the checks on ports that are not up."""
    assert not isinstance(host.nic_ports, Missing), "judge_rule sees to that"
    ports = host.nic_ports
    return [one for check in checks for one in _RULES[check.id](host, check, ports)]


def _of_training(host: Host, check: Check, ports: Sequence[NicPort]) -> Iterator[Result]:
    judged = [port for port in ports if isinstance(port.state, Missing) or port.role == "training"]
    if not judged:
        yield result(check, host.name, Status.SKIP, reason=_NOBODY)
    for name in _untold(host, ports):
        yield undetermined(check, name, _UNTOLD)
    for port in judged:
        if isinstance(port.state, Missing):
            yield undetermined(check, port.name, port.state)
        elif port.state == UP:
            yield result(check, port.name, Status.PASS, port.state, UP)
        else:
            yield _down(check, port)


def _untold(host: Host, ports: Sequence[NicPort]) -> list[str]:
    """Adapters that the matrix of the GPUs names and the list of adapters does not, where it has
    most of the others: it is then no list of one or two that were asked by name."""
    matrix = host.topology.matrix
    if isinstance(matrix, Missing):
        return []
    named = [one.name for one in matrix.devices if one.kind == "nic"]
    known = {port.nic for port in ports}
    gone = [name for name in named if name not in known and not name.startswith("NIC")]
    return gone if len(gone) <= (1 - MOST) * len(named) else []


def _down(check: Check, port: NicPort) -> Result:
    cause = _STATES.get(str(port.state)) or _PHYSICAL.get(str(port.phys_state))
    named = check if cause is None else replace(check, fix=_typed(cause.fix, port))
    return result(
        named, port.name, Status.FAIL, told(port), UP,
        reason=cause.reason if cause else "", evidence=evidence(port),
        action=cause.action if cause else None,
    )  # fmt: skip


def _typed(steps: Sequence[str], port: NicPort) -> tuple[str, ...]:
    """The steps for its link layer, with the names of this port where they are known."""
    names = {"NIC": port.nic, "PORT": port.name.rpartition("/")[2], "IFACE": port.netdev}
    told = []
    for step in of_layer(steps, port.link_layer):
        for word, name in names.items():
            step = step.replace(word, name) if isinstance(name, str) else step
        told.append(step)
    return tuple(told)


def told(port: NicPort) -> str:
    """How far the port is, in the kernel's words."""
    physical = port.phys_state if isinstance(port.phys_state, str) else ""
    iwarp = "iWARP" if port.transport == "iWARP" else ""
    return ", ".join(filter(None, (str(port.state), physical, iwarp)))


def _beside(host: Host, check: Check, ports: Sequence[NicPort]) -> Iterator[Result]:
    """All that are beside those of training, in one result."""
    up = [port for port in ports if port.state == UP]
    beside = [port for port in ports if port.role in ("other", "spare")]
    unknown = [port.state for port in ports if isinstance(port.state, Missing)]
    down = [port for port in beside if port.state != UP]
    listed = "; ".join(f"{port.name} {told(port)}" for port in down)
    if not up and not unknown:
        yield result(check, host.name, Status.SKIP, listed, reason=_NOBODY)
    elif not down and unknown:
        yield undetermined(check, host.name, unknown[0])
    elif not down:
        yield result(check, host.name, Status.PASS, f"{len(up)} up", "none down")
    elif all(port.role == "spare" for port in down):
        spare = f"{listed}: further ports of cards, which no card of the kind uses"
        yield result(check, host.name, Status.SKIP, listed, "none down", reason=spare)
    else:
        yield result(check, host.name, Status.WARN, listed, "none down",
                     reason=reasons(down), evidence=evidence(down[0]))  # fmt: skip


def reasons(down: Sequence[NicPort]) -> str:
    """The cause of each that is down, once; one that is the same for all names none again."""
    causes: dict[str, list[str]] = {}
    for port in down:
        cause = _STATES.get(str(port.state)) or _PHYSICAL.get(str(port.phys_state))
        causes.setdefault(cause.reason if cause else "", []).append(port.name)
    if len(causes) == 1 and len(down) > 1:
        return "".join(f"all of them: {reason}" for reason in causes if reason)
    causes.pop("", None)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in causes.items())


def evidence(port: NicPort) -> tuple[Evidence, ...]:
    """The line that tells its state."""
    return (Evidence(port.probe, line=port.line, field="state"),) if port.probe else ()


_RULES: dict[str, Callable[[Host, Check, Sequence[NicPort]], Iterator[Result]]] = {
    "network.port.up": _of_training,
    "network.ports.spare": _beside,
}
