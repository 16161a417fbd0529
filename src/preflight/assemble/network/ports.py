"""What each port is for, and what ports like it do: told by no tool, but by all of them together.

Training uses the fastest ports of one link layer: any of InfiniBand, of Ethernet those of 200
Gbit/s, or of 100 where there are several; with them all that are like them, up or not. Ports are
alike whose adapters have one type, board, major firmware version and number of ports. A further
port of a card that has one up is for training where it is up itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from preflight.expect.adapters import adapter
from preflight.facts.nics import Nic, NicPort, Nics
from preflight.facts.pci_tree import PciTree
from preflight.facts.topology import Topology
from preflight.model import NOT_IN_INPUT, Known, Missing

T = TypeVar("T")

_LEAST_ETHERNET, _LEAST_OF_SEVERAL = 200.0, 100.0
_NO_PEER = Missing("not-applicable", "no port like it is up here")
_UNUSED = Missing("not-applicable", "the port is down, and nobody uses it")
_NO_MODEL = Missing("not-in-input", "the type of the adapter is not in the input")
_NOT_UP = Missing("not-applicable", "the port is not up")
_NO_ROCE = Missing("not-applicable", "it does no RoCE")
_NO_V2 = Missing("not-applicable", "no RoCE v2 entry with an address that is routed")


class _Port(NamedTuple):
    """A port with its adapter, the number of ports of its card, and its place among these."""

    port: NicPort
    nic: Nic
    card: tuple[str, ...]
    place: int

    @property
    def up(self) -> bool:
        return self.port.state == "ACTIVE"

    @property
    def kind(self) -> tuple[object, ...]:
        """What ports that are alike have in common, whatever they are set to."""
        major = str(self.nic.firmware).partition(".")[0]
        bond = "bond" in self.nic.name
        return str(self.nic.hca), str(self.nic.board_id), major, len(self.card), bond

    @property
    def rate_gbits(self) -> float:
        """As it runs; of a port that does not tell, what its model can do."""
        if not isinstance(self.port.rate_gbits, Missing):
            return self.port.rate_gbits
        row = adapter(self.nic.hca)
        return row.gbits if row else 0.0


def with_purpose(nics: Nics, tree: Known[PciTree] = NOT_IN_INPUT) -> Nics:
    """The adapters and ports with their role, what is usual for their kind, and the model."""
    nics = replace(nics, devices=tuple(_by_id(nic, tree) for nic in nics.devices))
    ports = _placed(nics)
    training = _training(ports)
    return replace(
        nics,
        devices=tuple(_named(nic, nics.devices) for nic in nics.devices),
        ports=tuple(_told(one, ports, training) for one in ports),
    )


def by_place(
    ports: Known[tuple[NicPort, ...]], topology: Topology, nics: Known[tuple[Nic, ...]]
) -> Known[tuple[NicPort, ...]]:
    """The ports with the role that the places of their adapters tell, where these are known. What
    one of those beside the GPUs runs at, all that are like it can."""
    if isinstance(ports, Missing) or isinstance(topology.nics, Missing):
        return ports
    placed = {nic.name: nic.role for nic in topology.nics if nic.role in ("training", "other")}
    beside = {nic.name for nic in topology.nics if nic.gpu_path in ("PIX", "PXB")}
    kinds = {} if isinstance(nics, Missing) else {nic.name: (nic.hca, nic.board_id) for nic in nics}
    ports = tuple(
        replace(port, role=placed[port.nic])
        if port.nic in placed and port.state == "ACTIVE" and not port.virtual
        else port
        for port in ports
    )
    judged = [port for port in ports if port.nic in beside and port.role == "training"]
    best: dict[object, float] = {}
    for port in judged:
        if isinstance(port.rate_gbits, float) and port.state == "ACTIVE":
            key = _alike(port, kinds)
            best[key] = max(best.get(key, 0.0), port.rate_gbits)
    names = {port.name for port in judged if isinstance(port.usual_rate_gbits, float)}
    return tuple(
        replace(port, usual_rate_gbits=best.get(_alike(port, kinds), port.usual_rate_gbits))
        if port.name in names
        else port
        for port in ports
    )


def _alike(port: NicPort, kinds: Mapping[str, object]) -> tuple[object, ...]:
    """What ports have in common that can run at one rate: adapter, place on it, link layer."""
    return kinds.get(port.nic), port.name.rpartition("/")[2], port.link_layer


def _by_id(nic: Nic, tree: Known[PciTree]) -> Nic:
    """With the type by the ids on PCI, 0x14e4:0x1750, where the kernel tells none that is known."""
    if adapter(nic.hca) or isinstance(tree, Missing):
        return nic
    own = next((one for one in tree.devices if one.name == nic.address), None)
    told = f"{own.vendor_id}:{own.device_id}" if own else ""
    return replace(nic, hca=told) if adapter(told) else nic


def _placed(nics: Nics) -> list[_Port]:
    """Each port with its place on its card, which may be several devices."""
    by_name = {nic.name: nic for nic in nics.devices}
    of_card: dict[str, list[str]] = {}
    for port in nics.ports:
        nic = by_name.get(port.nic, Nic(port.nic))
        of_card.setdefault(_card(nic), []).append(port.name)
    found = []
    for port in nics.ports:
        nic = by_name.get(port.nic, Nic(port.nic))
        names = sorted(of_card[_card(nic)], key=_in_order)
        found.append(_Port(port, nic, tuple(names), names.index(port.name)))
    return found


def _card(nic: Nic) -> str:
    """What is one for all devices of a card. Virtual functions are cards of their own."""
    if nic.virtual:
        return nic.name
    if isinstance(nic.address, str):
        return nic.address.rpartition(".")[0]
    known = isinstance(nic.system_guid, str) and bool(re.search("[1-9a-f]", nic.system_guid[2:]))
    return str(nic.system_guid) if known else nic.name


def _in_order(name: str) -> list[Any]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _training(ports: Sequence[_Port]) -> set[tuple[object, ...]]:
    """Kinds of ports, each with the link layer, that carry training."""
    able = [one for one in ports if one.up and not one.port.virtual and _does_rdma(one)]
    several = len({one.card for one in able if one.rate_gbits >= _LEAST_OF_SEVERAL}) > 1
    least = _LEAST_OF_SEVERAL if several else _LEAST_ETHERNET
    fit = [one for one in able if one.port.link_layer == "InfiniBand" or one.rate_gbits >= least]
    fastest = max((one.rate_gbits for one in fit), default=0.0)
    layers = Counter(str(one.port.link_layer) for one in fit if one.rate_gbits == fastest)
    layer = max(sorted(layers, reverse=True), key=lambda name: layers[name], default="")
    fit = [one for one in fit if one.port.link_layer == layer]
    first = {one.nic.hca for one in fit if one.rate_gbits == fastest}
    cards = _cards(fit)
    return {
        (*one.kind, layer)
        for one in fit
        if 2 * one.rate_gbits >= fastest
        and (one.nic.hca in first or cards[one.nic.hca] >= max(cards[hca] for hca in first))
    }


def _cards(ports: Sequence[_Port]) -> Counter[Known[str]]:
    """Cards of each type. Fewer ones of another, slower type than training's are for storage."""
    return Counter(hca for hca, _ in {(one.nic.hca, one.card) for one in ports})


def _does_rdma(one: _Port) -> bool:
    return one.port.transport != "iWARP" and isinstance(one.port.link_layer, str)


def _told(one: _Port, ports: Sequence[_Port], training: set[tuple[object, ...]]) -> NicPort:
    alike = [
        other.port
        for other in ports
        if other.kind == one.kind and other.up and other.port.virtual == one.port.virtual
    ]
    same_layer = [port for port in alike if port.link_layer == one.port.link_layer]
    known = isinstance(one.nic.hca, str)
    usual: dict[str, Any] = {
        "usual_rate_gbits": _usual(same_layer, lambda port: port.rate_gbits),
        "usual_lanes": _usual(same_layer, lambda port: port.lanes),
        "usual_link_layer": _layer(one, ports),
    }
    told = usual if known else dict.fromkeys(usual, _NO_MODEL)
    index = _gid_index(one.port)
    routed = True if isinstance(index, int) else False if index is _NO_V2 else index
    told["usual_lanes"] = told["usual_lanes"] if one.up else _NOT_UP
    return replace(
        one.port, **told, role=_role(one, ports, training), gid_index=index, roce_v2=routed
    )


def _role(one: _Port, ports: Sequence[_Port], training: set[tuple[object, ...]]) -> Known[str]:
    port = one.port
    if isinstance(port.state, Missing):
        return port.state
    if port.virtual:
        return "virtual"
    if not one.up and _beside_one_up(one, ports):
        at_its_place = (other for other in ports if other.kind == one.kind)
        used = any(other.up and other.place == one.place for other in at_its_place)
        return "other" if used else "spare"
    return "training" if (*one.kind, str(port.link_layer)) in training else "other"


def _beside_one_up(one: _Port, ports: Sequence[_Port]) -> bool:
    """Whether another port of its card is up."""
    return any(other.up and other.card == one.card for other in ports)


def _usual(alike: Sequence[NicPort], of: Callable[[NicPort], Known[T]]) -> Known[T]:
    """The value that most of them have; of two as frequent ones the greater."""
    told = [value for value in map(of, alike) if not isinstance(value, Missing)]
    return _most(told) if told else _NO_PEER


def _most(told: Sequence[T]) -> T:
    counted = Counter(told)
    return max(counted, key=lambda value: (counted[value], value))


def _layer(one: _Port, ports: Sequence[_Port]) -> Known[str]:
    """The link layer of its kind, where all but few of four or more have it, up or not: many of
    both are a design. A port that nobody uses is not held to it."""
    if not one.up and (one.port.phys_state == "Disabled" or _beside_one_up(one, ports)):
        return _UNUSED
    alike = (
        other.port
        for other in ports
        if other.kind == one.kind and other.port.virtual == one.port.virtual
    )
    told = Counter(port.link_layer for port in alike if isinstance(port.link_layer, str))
    row = adapter(one.nic.hca)
    if row is None or row.function or sum(told.values()) < 4:
        return _NO_PEER
    layer, count = told.most_common(1)[0]
    return layer if 4 * count >= 3 * sum(told.values()) else _NO_PEER


def _gid_index(port: NicPort) -> Known[int]:
    """The first RoCE v2 entry with an address of IPv4, else with a routed one of IPv6: what NCCL
    since 2.21 chooses by itself (NCCL release notes 2.21, NCCL_IB_GID_INDEX)."""
    if port.link_layer != "Ethernet" or port.transport == "iWARP":
        return _NO_ROCE if isinstance(port.link_layer, str) else NOT_IN_INPUT
    if isinstance(port.gids, Missing):
        return port.gids
    if any(isinstance(gid.kind, Missing) for gid in port.gids):
        return Missing("not-in-input", "the type of the entries is not in the input")
    second = [gid for gid in port.gids if gid.kind == "RoCE v2"]
    v4 = [gid.index for gid in second if isinstance(gid.ipv4, str)]
    if not v4 and any(gid.gid.startswith("ipv6-") for gid in second):
        return Missing("not-in-input", "the addresses are redacted")
    routed = [gid.index for gid in second if not gid.gid.startswith("fe8")]
    found = v4 or routed
    return min(found) if found else _NO_V2


def _named(nic: Nic, nics: Iterable[Nic]) -> Nic:
    """With its model, and the firmware that most adapters of its type and board have here."""
    row = adapter(nic.hca)
    alike = [
        other.firmware
        for other in nics
        if (other.hca, other.board_id, other.virtual) == (nic.hca, nic.board_id, nic.virtual)
        and isinstance(other.firmware, str)
    ]
    usual = _most(alike) if alike and isinstance(nic.hca, str) else _NO_PEER
    # One id of virtual functions is of several models.
    shared = row is not None and row.function
    return replace(nic, model=row.model if row else nic.model,
                   usual_firmware=_NO_PEER if shared else usual)  # fmt: skip
