"""Whether a host has a port to train with others, and whether those that --nics names are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from preflight.expect.nics import is_stated, training_ports
from preflight.facts.host import Host
from preflight.facts.nics import NicChoice, NicPort
from preflight.hca_list import leaves_out, takes, unmatched
from preflight.judge.network.ports import MOST, UP, evidence, reasons, told
from preflight.judge.results import result, undetermined
from preflight.judge.steps import of_what_was_found
from preflight.model import Check, Missing, Result, Status

#: So many ports of InfiniBand that are alike are a row for training.
_ROW = 4
#: So many GPUs with NVSwitches are more than a part of a board that is let for work by itself.
_BOARD = 4
#: An interface so fast may be meant for training, over TCP or by a plugin.
_FAST_GBITS = 100.0
#: Google's: NCCL goes over them by plugins of its own, FastSocket and GPUDirect-TCPX, without RDMA
#: (NVIDIA/nccl, ext-net; Google Cloud, GPU networking).
_WITHOUT_RDMA = "gve"
_ANY, _FITS = "at least one up", "there, up, for training"
_NOT_NAMED = Missing("not-asked", "--nics names the adapters for training")
_NONE = "the host has no adapter of RDMA"


def judge_nics(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of both checks."""
    return [one for check in checks for one in _RULES[check.id](host, check)]


def _any(host: Host, check: Check) -> Iterator[Result]:
    ports = host.nic_ports
    if isinstance(ports, Missing):
        yield _without(host, check, ports)
        return
    up = [port for port in ports if port.state == UP]
    unknown = [port.state for port in ports if isinstance(port.state, Missing)]
    of_others = all(port.role in ("other", "spare") for port in up)
    if up and of_others and not unknown and (made := _board(host)):
        listed = "; ".join(f"{port.name} {_kind(port)}" for port in up)
        why = f"{made}, and the ports that are up are for storage and logins by their rate"
        yield result(check, host.name, Status.FAIL, listed, "one for training",
                     reason=why, evidence=evidence(up[0]))  # fmt: skip
    elif up:
        yield result(check, host.name, Status.PASS, f"{len(up)} of {len(ports)}", "at least one")
    elif unknown:
        yield undetermined(check, host.name, unknown[0])
    else:
        status = Status.FAIL if _made_for_training(host, ports) else Status.WARN
        listed = "; ".join(f"{port.name} {told(port)}" for port in ports)
        yield result(check, host.name, status, listed, _ANY,
                     reason=reasons(ports), evidence=evidence(ports[0]))  # fmt: skip


def _without(host: Host, check: Check, why: Missing) -> Result:
    """Of a host whose ports are not known, or which has none: by what GPUs it has."""
    made = _board(host)
    if why.kind != "not-applicable" or not made:
        return undetermined(check, host.name, why)
    netdevs = () if isinstance(host.netdevs, Missing) else host.netdevs
    if any(one.driver == _WITHOUT_RDMA for one in netdevs):
        reason = f"{_NONE}; NCCL goes over Google's adapters ({_WITHOUT_RDMA}) by a plugin"
        return result(check, host.name, Status.SKIP, reason=reason)
    fast = [one.name for one in netdevs if _is_fast(one.carrier, one.rate_gbits)]
    if fast:
        reason = f"{made}, and no adapter of RDMA: NCCL goes over TCP through {', '.join(fast[:4])}"
        return result(check, host.name, Status.WARN, "none", _ANY, reason=reason)
    reason = f"{made}, and no adapter of RDMA: between hosts NCCL is left with TCP"
    return result(check, host.name, Status.FAIL, "none", _ANY, reason=reason)


def _is_fast(carrier: object, rate_gbits: object) -> bool:
    return carrier is True and isinstance(rate_gbits, float) and rate_gbits >= _FAST_GBITS


def _board(host: Host) -> str:
    """The GPUs that make it a host to train with others: "8 x NVIDIA H100 with NVSwitches"; else
    empty."""
    gpus = () if isinstance(host.gpus, Missing) else host.gpus
    boards = [
        gpu for gpu in gpus if not isinstance(gpu.design, Missing) and gpu.design.nvswitch
    ]  # fmt: skip
    if len(boards) < _BOARD:
        return ""
    return f"{len(boards)} x {boards[0].product} with NVSwitches"


def _made_for_training(host: Host, ports: Sequence[NicPort]) -> bool:
    """Whether a host all of whose ports are down was built to train with others: its GPUs have
    NVSwitches, or most have adapters beside them, several in all, or there is a row of equal ones
    of InfiniBand. One spare adapter, and Ethernet that is not used, are none of it."""
    alike = Counter(
        (str(port.hca), port.name.rpartition("/")[2])
        for port in ports
        if port.link_layer == "InfiniBand" and not port.virtual
    )
    if max(alike.values(), default=0) >= _ROW or _board(host):
        return True
    nics, gpus = host.topology.nics, host.topology.gpus
    if isinstance(nics, Missing) or isinstance(gpus, Missing):
        return False
    beside = [nic for nic in nics if nic.gpu_path in ("PIX", "PXB")]
    served = {gpu for nic in beside if not isinstance(nic.gpus, Missing) for gpu in nic.gpus}
    slots = {str(nic.address).rpartition(".")[0] or nic.name for nic in beside}
    return len(slots) > 1 and len(served) >= MOST * len(gpus)


def _stated(host: Host, check: Check) -> Iterator[Result]:
    choice, ports = host.nic_choice, host.nic_ports
    if isinstance(choice, Missing) or not is_stated(host):
        yield result(check, host.name, Status.SKIP, reason=_NOT_NAMED.text)
    elif isinstance(ports, Missing) and ports.kind == "not-applicable":
        reason = f"not there: {_NONE}"
        yield result(_naming(check, host, reason), host.name, Status.FAIL,
                     f"--nics {choice.value}", _FITS, reason=reason)  # fmt: skip
    elif isinstance(ports, Missing):
        more = "; `ibstat` tells" if ports.kind == "not-in-input" else ""
        why = Missing(ports.kind, f"which adapters the host has is not known: {ports.text}{more}")
        yield undetermined(check, host.name, why)
    else:
        yield _held(host, check, choice, ports)


def _held(host: Host, check: Check, choice: NicChoice, ports: Sequence[NicPort]) -> Result:
    """The list held against the ports, the worst first."""
    mine = [port for port in ports if takes(choice.value, port.nic, _number(port))]
    gone = unmatched(choice.value, (port.name for port in ports))
    down = [port for port in mine if isinstance(port.state, str) and port.state != UP]
    unread = [port.state for port in mine if isinstance(port.state, Missing)]
    others = [port for port in mine if port.state == UP and port.role in ("other", "spare")]
    wrong = [
        f"not there: {', '.join(gone)}; the host has {_shown(ports)}" if gone else "",
        "; ".join(f"{_colon(port)} is {told(port)}" for port in down),
        f"storage or logins, by rate and place: {_shown(others)}" if others else "",
    ]
    bad = bool(gone or down) and not leaves_out(choice.value)
    used = [port for port in training_ports(host) if port in mine]
    if not (bad or others or unread) and used:
        return result(check, host.name, Status.PASS, _shown(used), _FITS)
    if unread and not bad:
        return undetermined(check, host.name, unread[0])
    status = Status.FAIL if bad or not used else Status.WARN
    reason = "; ".join(filter(None, wrong)) or f"it leaves none; the host has {_shown(ports)}"
    check = _naming(check, host, reason)
    return result(check, host.name, status, f"--nics {choice.value}", _FITS,
                  reason=reason, evidence=evidence((down or others or ports)[0]))  # fmt: skip


def _naming(check: Check, host: Host, reason: str) -> Check:
    """The steps for what was found, with the list of those that are for training, to be typed."""
    kept = "=" + ",".join(sorted(map(_colon, training_ports(host)), key=_natural))
    steps = of_what_was_found(check.fix, reason)
    return replace(check, fix=tuple(
        step.replace("[HCAS]", kept) for step in steps if kept != "=" or "[HCAS]" not in step
    ))  # fmt: skip


def _number(port: NicPort) -> str:
    return port.name.rpartition("/")[2]


def _colon(port: NicPort) -> str:
    """mlx5_0/1 as such a list has it: mlx5_0:1."""
    return f"{port.nic}:{_number(port)}"


def _natural(name: str) -> list[tuple[str, int]]:
    """mlx5_2 before mlx5_10."""
    return [(word, int(number or 0)) for word, number in re.findall(r"(\D*)(\d*)", name)]


def _kind(port: NicPort) -> str:
    rate = "" if isinstance(port.rate_gbits, Missing) else f"{port.rate_gbits:g} Gb/s "
    return f"{rate}{port.link_layer if isinstance(port.link_layer, str) else 'RDMA'}"


def _shown(ports: Sequence[NicPort]) -> str:
    names = [f"{_colon(port)} ({_kind(port)})" for port in ports]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(names[:12]) + more


_RULES: dict[str, Callable[[Host, Check], Iterator[Result]]] = {
    "network.ports.any": _any,
    "network.ports.stated": _stated,
}
