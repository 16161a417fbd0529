"""Where the RDMA adapters of a host sit, which of them carry training, and which GPUs they serve.

The rule is told in facts/topology.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from preflight.expect.adapters import adapter
from preflight.facts.nics import Nic, NicPort
from preflight.facts.topology import PATHS, Link, NicPlace
from preflight.model import NOT_IN_INPUT, Known, Missing

_BESIDE = ("PIX", "PXB")
#: Slower than this part of the fastest is no adapter of training, unless its like are.
_SLOW = 0.5
#: So many of a host's GPUs have an adapter beside them where that is the board's design: one of
#: DGX-1's four adapters serves two of its eight GPUs.
_MOST = 0.75
_NO_TRAINING = Missing("not-applicable", "no adapter of this host carries training")
_NO_PATH = Missing("not-in-input", "its way to the GPUs is not in the input")
_DESIGN = Missing(
    "not-applicable", "not most of the GPUs have an adapter beside them, by the host's design"
)

_UNTOLD = Missing("not-in-input", "whether it does RDMA is not in the input")

#: From adapter and GPU to the link between them.
Between = Callable[[str, str], Link | None]


class _Seen(Struct, frozen=True):
    """An adapter and what decides on its role."""

    place: NicPlace
    up: Known[bool]
    second: bool  # a virtual function or a bond
    beside: frozenset[str]  # GPUs below one PCIe switch with it
    rdma: bool  # known as an RDMA device; else a network adapter of any kind
    by_ports: Known[bool]  # whether its ports are of those that training uses: see ports.py
    kind: tuple[object, ...]  # what adapters of one model and use have in common; empty: not known
    unread: Missing | None = None  # why it is not known of some GPU whether it is beside it

    @property
    def rate(self) -> float:
        """0 where it is not known."""
        rate = self.place.rate_gbits
        return 0.0 if isinstance(rate, Missing) else rate


def place(
    name: str,
    nic: Nic | None,
    ports: Sequence[NicPort],
    gpus: Sequence[str],
    between: Between,
    *,
    rdma: bool,
) -> _Seen:
    """One adapter by its name, with what sysfs tells of it and the GPUs nearest to it."""
    links = {gpu: link.path for gpu in gpus if (link := between(name, gpu))}
    paths = {gpu: path for gpu, path in links.items() if not isinstance(path, Missing)}
    unread = _unread(links.values())
    best = min(paths.values(), key=PATHS.index, default=None)
    nearest = tuple(gpu for gpu in paths if paths[gpu] == best)
    found = NicPlace(
        name=name,
        address=nic.address if nic else NOT_IN_INPUT,
        numa_node=nic.numa_node if nic else NOT_IN_INPUT,
        gpus=_settled(best, unread) or nearest or _NO_PATH,
        gpu_path=_settled(best, unread) or best or _NO_PATH,
        rate_gbits=_rate(ports),
        link_layer=ports[0].link_layer if ports else NOT_IN_INPUT,
        line=nic.line if nic else 0,
        probe=nic.probe if nic else "",
    )
    beside = frozenset(gpu for gpu, path in paths.items() if path in _BESIDE)
    second = bool(nic and nic.virtual) or "bond" in name
    kind = _kind(nic, ports)
    return _Seen(found, _up(ports), second, beside, rdma, _by_ports(ports), kind, unread)


def _kind(nic: Nic | None, ports: Sequence[NicPort]) -> tuple[object, ...]:
    if nic is None or isinstance(nic.hca, Missing) or not ports:
        return ()
    return nic.hca, str(nic.board_id), len(ports), str(ports[0].link_layer)


def _unread(paths: Iterable[Known[str]]) -> Missing | None:
    """Why some path is not known that the input should tell: a matrix that was cut."""
    missing = (path for path in paths if isinstance(path, Missing) and path.kind == "unreadable")
    return next(missing, None)


def _settled(best: str | None, unread: Missing | None) -> Missing | None:
    """What is not known of the best path, where another one may be better."""
    return None if best in _BESIDE else unread


def _rate(ports: Sequence[NicPort]) -> Known[float]:
    """Of its fastest port that is up."""
    live = [port for port in ports if port.state == "ACTIVE"] or ports
    known = [port.rate_gbits for port in live if not isinstance(port.rate_gbits, Missing)]
    return max(known) if known else NOT_IN_INPUT


def _by_ports(ports: Sequence[NicPort]) -> Known[bool]:
    roles = [port.role for port in ports if not isinstance(port.role, Missing)]
    return "training" in roles if roles else NOT_IN_INPUT


def _up(ports: Sequence[NicPort]) -> Known[bool]:
    states = [port.state for port in ports]
    if "ACTIVE" in states:
        return True
    unknown = next((state for state in states if isinstance(state, Missing)), None)
    return NOT_IN_INPUT if unknown or not states else False


def with_roles(seen: Sequence[_Seen], gpus: Iterable[str]) -> tuple[NicPlace, ...]:
    """The adapters with what they are for."""
    live = [one for one in seen if one.up is not False]
    plain = [one for one in live if not one.second]
    # Bonds may be what is beside the GPUs, and a single adapter the one for storage.
    apart = any(one.beside for one in live) and not any(one.beside for one in plain)
    first = live if apart or not plain else plain
    fastest = max((one.rate for one in first), default=0.0)
    quick = [one for one in first if not 0 < one.rate < _SLOW * fastest]
    beside = _of_gpus([one for one in first if one.beside], quick, frozenset(gpus), fastest)
    chosen = {one.place.name for one in beside}
    if not beside or not _most(beside, frozenset(gpus)):
        top = max((one.rate for one in quick), default=0.0)
        chosen |= {one.place.name for one in first if _fit(one, quick, top)}
    return tuple(replace(one.place, role=_role(one, chosen)) for one in seen)


def _of_gpus(
    near: Sequence[_Seen], quick: Sequence[_Seen], gpus: frozenset[str], fastest: float
) -> list[_Seen]:
    """Of those beside GPUs the ones that serve them: the quick; those like them, which fell behind;
    all of a kind that could be quick and is beside most GPUs; and, of no known kind, the only one
    beside its GPU where most have one."""
    kept = [one for one in near if one in quick]
    kinds = {one.kind for one in kept if one.kind}
    for kind in {one.kind for one in near if one.kind}:
        alike = [one for one in near if one.kind == kind]
        row = adapter(kind[0])
        able = row is not None and row.gbits >= _SLOW * fastest
        if able and len(alike) > 1 and _most(alike, gpus):
            kinds.add(kind)
    kept += [one for one in near if one not in kept and one.kind in kinds]
    alone = [one for one in near if not one.kind and one not in kept and one.beside - _beside(kept)]
    return kept + alone if _most(kept, gpus) else kept


def _beside(seen: Iterable[_Seen]) -> frozenset[str]:
    return frozenset[str]().union(*(one.beside for one in seen))


def _most(seen: Iterable[_Seen], gpus: frozenset[str]) -> bool:
    """Whether most GPUs have one of these beside them: then ports beside none serve none."""
    return len(_beside(seen) & gpus) >= _MOST * len(gpus)


def _fit(one: _Seen, quick: Sequence[_Seen], top: float) -> bool:
    """Whether one that is beside no GPU may serve those that have none beside them."""
    if isinstance(one.by_ports, Missing):
        return one in quick and one.rate in (0.0, top)
    return one.by_ports


def _role(one: _Seen, chosen: set[str]) -> Known[str]:
    if one.up is False:
        return "down"
    if not one.beside and not one.rdma:
        return _UNTOLD
    if not one.beside and one.unread is not None:
        return one.unread
    return "training" if one.place.name in chosen else "other"


class Near(Struct, frozen=True):
    """The adapters of training that are nearest to a GPU."""

    nics: Known[tuple[str, ...]]
    path: Known[str]


def nearest(gpu: str, nics: Known[Sequence[NicPlace]], between: Between) -> Near:
    """Those of one GPU."""
    if isinstance(nics, Missing):
        return Near(nics, nics)
    training = [nic.name for nic in nics if nic.role == "training"]
    if not training:
        why = _none_of_training(nics)
        return Near(why, why)
    found = {name: link.path for name in training if (link := between(name, gpu))}
    known = {name: path for name, path in found.items() if not isinstance(path, Missing)}
    if not known:
        why = next((path for path in found.values() if isinstance(path, Missing)), _NO_PATH)
        return Near(why, why)
    best = min(known.values(), key=PATHS.index)
    if (why_not := _settled(best, _unread(found.values()))) is not None:
        return Near(why_not, why_not)
    return Near(tuple(name for name in known if known[name] == best), best)


def _none_of_training(nics: Sequence[NicPlace]) -> Missing:
    return next((nic.role for nic in nics if isinstance(nic.role, Missing)), _NO_TRAINING)


def beside(near: Mapping[str, Near]) -> dict[str, Known[bool]]:
    """Whether each GPU has an adapter beside it, where most of them have."""
    told = {gpu: one.path for gpu, one in near.items()}
    have = sum(path in _BESIDE for path in told.values())
    if have < _MOST * len(told):
        return {gpu: path if isinstance(path, Missing) else _DESIGN for gpu, path in told.items()}
    return {
        gpu: path if isinstance(path, Missing) else path in _BESIDE for gpu, path in told.items()
    }


def training_places(nics: Known[Sequence[NicPlace]], between: Between) -> Known[int]:
    """How many switches or slots the adapters of training are in: two ports of one card are one."""
    if isinstance(nics, Missing):
        return nics
    heads: list[str] = []
    if not any(nic.role == "training" for nic in nics):
        return _none_of_training(nics)
    for nic in (nic.name for nic in nics if nic.role == "training"):
        links = [between(head, nic) for head in heads]
        if not any(link and link.path == "PIX" for link in links):
            heads.append(nic)
    return len(heads)
