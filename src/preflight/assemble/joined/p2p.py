"""Whether each GPU may reach the memory of its peers, by `nvidia-smi topo -p2p`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from preflight.facts.gpu import Gpu
from preflight.facts.topology import GpuP2p, NvlinkDomain, P2p, P2pPair
from preflight.model import Known, Missing, Raw

#: Worst first: chipset, topology, a key of the driver's settings, not supported, unknown, GPU.
_WORST = ("CNS", "TNS", "DR", "NS", "U", "GNS", "OK")
_NO_PEER = Missing("not-applicable", "no other GPU is told of")


def as_asked(p2p: Known[tuple[P2p, ...]], raw: Raw | None) -> Known[tuple[P2p, ...]]:
    """The answer with what was asked for, where preflight asked."""
    if isinstance(p2p, Missing) or raw is None or raw.argv[-1:] != ("r",):
        return p2p
    return tuple(replace(one, capability="read") for one in p2p)


def gpu_p2p(
    names: Sequence[str],
    p2p: Known[tuple[P2p, ...]],
    gpus: Mapping[str, Gpu],
    domains: Known[tuple[NvlinkDomain, ...]],
    virtualization: Known[str],
) -> tuple[GpuP2p, ...]:
    """The worst that is said of each GPU, in the order of `names`; what was asked of the text is
    taken for reading where it does not tell."""
    if isinstance(p2p, Missing):
        return tuple(GpuP2p(name, p2p) for name in names)
    told = [one for one in p2p if isinstance(one.capability, Missing) or one.capability == "read"]
    pairs = _judged([pair for one in told for pair in one.pairs])
    joined = () if isinstance(domains, Missing) else [name for one in domains for name in one.gpus]
    found = []
    for name in names:
        worst = min(pairs.get(name, ()), key=_badness, default=None)
        if worst is None:
            found.append(GpuP2p(name, _none(told)))
            continue
        why = _by_design(worst, gpus.get(name), name in joined, virtualization)
        found.append(GpuP2p(name, why or worst.status, worst.line, worst.probe))
    return tuple(found)


def _judged(pairs: Sequence[P2pPair]) -> dict[str, list[P2pPair]]:
    """The pairs of each GPU. One that no other reaches is itself to blame: its pairs are not told
    of the others, which have some that are well."""
    of: dict[str, list[P2pPair]] = {}
    for pair in pairs:
        of.setdefault(pair.a, []).append(pair)
        of.setdefault(pair.b, []).append(pair)
    alone = {name for name, mine in of.items() if not any(pair.status == "OK" for pair in mine)}
    return {
        name: mine if name in alone else [one for one in mine if not {one.a, one.b} & alone]
        for name, mine in of.items()
    }


def _badness(pair: P2pPair) -> int:
    """Worst first; what is not known is worse than what is well."""
    if isinstance(pair.status, Missing):
        return _WORST.index("OK")
    if pair.status == "OK":
        return len(_WORST)
    return _WORST.index(pair.status) if pair.status in _WORST else -1


def _none(told: Sequence[P2p]) -> Missing:
    if any(one.pairs for one in told):
        return Missing("unreadable", "nvidia-smi topo -p2p does not tell of this GPU")
    return _NO_PEER if told else Missing("not-in-input", "`nvidia-smi topo -p2p r` is not in it")


def _by_design(
    pair: P2pPair, gpu: Gpu | None, nvlink: bool, virtualization: Known[str]
) -> Missing | None:
    """Why a GPU has no such access without anything being wrong."""
    if pair.status == "OK" or isinstance(pair.status, Missing):
        return None
    if pair.status == "GNS":
        return Missing("not-applicable", "the driver gives GPUs of this kind no such access (GNS)")
    if pair.status == "U":
        return Missing("not-applicable", "the driver says that it does not know (U)")
    if gpu and not isinstance(gpu.design, Missing) and gpu.design.form == "geforce":
        return Missing("not-applicable", f"GeForce cards have no such access ({pair.status})")
    if gpu and gpu.mig.mode == "Enabled":
        return Missing("not-applicable", f"MIG is on ({pair.status})")
    if virtualization == "vm" and not nvlink:
        text = f"in a virtual machine the hypervisor decides ({pair.status})"
        return Missing("not-applicable", text)
    return None
