"""Which GPUs should work together: those that NVLink joins, else those nearest on PCIe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from math import gcd

from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.topology import PATHS, GpuPlace, Link, NvlinkDomain
from preflight.model import NOT_IN_INPUT, Group, Missing

#: A cluster of this UUID ends at the host.
_NO_CLUSTER = frozenset("0-")
#: Joined below a host bridge: copies between two GPUs stay on the switch.
_ON_SWITCH = ("PIX", "PXB")
Links = dict[frozenset[str], Link]


def groups_of(host: Host, gpus: Sequence[GpuPlace]) -> tuple[Group, ...]:
    """Groups that cover all GPUs, each in the order of its GPUs; none where there is one GPU, or
    nothing is known of how they are joined."""
    domains = host.topology.domains
    if len(gpus) < 2 or isinstance(domains, Missing) or unread(host, gpus):
        return ()
    order = {gpu.name: at for at, gpu in enumerate(gpus)}
    links, beyond = links_of(host), _beyond(host)
    parts = [
        (part, _why_nvlink(part, domain, links, len(gpus)) + beyond)
        for domain in domains
        for part in _whole_parts(domain, [name for name in order if name in domain.gpus], links)
    ]
    joined = {name for part, _ in parts for name in part}
    apart = [gpu for gpu in gpus if gpu.name not in joined]
    why = {gpu.name: told.text for gpu in apart if (told := _unshown(gpu))}
    parts.extend(((name,), f"how it is joined is not known: {text}") for name, text in why.items())
    parts.extend(_on_pcie([gpu for gpu in apart if gpu.name not in why], links, len(gpus)))
    ordered = [(tuple(sorted(part, key=order.__getitem__)), why) for part, why in parts if part]
    return tuple(
        Group(part, why) for part, why in sorted(ordered, key=lambda one: order[one[0][0]])
    )


def _unshown(gpu: GpuPlace) -> Missing | None:
    """Why nothing is told of this GPU, where the others are told of."""
    return gpu.domain if isinstance(gpu.domain, Missing) and gpu.domain != NOT_IN_INPUT else None


def unread(host: Host, gpus: Sequence[GpuPlace]) -> Missing | None:
    """Why it is not known what lies between two of the GPUs: the matrix was cut."""
    names = {gpu.name for gpu in gpus}
    links = () if isinstance(host.topology.links, Missing) else host.topology.links
    between = (one.path for one in links if one.a in names and one.b in names)
    return next((path for path in between if isinstance(path, Missing)
                 and path.kind == "unreadable"), None)  # fmt: skip


def common_size(groups: Iterable[Group]) -> int:
    """The largest number of ranks that divides every group; 0 without groups."""
    return gcd(*(len(group.members) for group in groups))


def links_of(host: Host) -> Links:
    """The link of each two devices that has a known path."""
    links = host.topology.links
    if isinstance(links, Missing):
        return {}
    return {frozenset((one.a, one.b)): one for one in links if isinstance(one.path, str)}


def worst(names: Iterable[str], links: Links) -> str:
    """The slowest path between two of these devices; "" where one of them is not known."""
    paths = [_path(a, b, links) for a, b in combinations(names, 2)]
    return "" if not paths or "" in paths else max(paths, key=PATHS.index)


def _path(a: str, b: str, links: Links) -> str:
    link = links.get(frozenset((a, b)))
    return link.path if link and isinstance(link.path, str) and link.path in PATHS else ""


def _whole_parts(
    domain: NvlinkDomain, names: Sequence[str], links: Links
) -> Iterator[tuple[str, ...]]:
    """The domain; where NVLink does not join each two of it, its largest equal parts in which it
    does (a hybrid cube mesh: two fours), if there are any."""
    if domain.complete or not links:
        yield tuple(names)
        return
    for size in (one for one in range(len(names), 1, -1) if len(names) % one == 0):
        parts = [tuple(names[at : at + size]) for at in range(0, len(names), size)]
        if all(worst(part, links) == "NV" for part in parts):
            yield from parts
            return
    yield tuple(names)


def _why_nvlink(part: Sequence[str], domain: NvlinkDomain, links: Links, gpus: int) -> str:
    size, bonds = len(part), _nvlinks(part, domain, links)
    if not domain.complete and links and worst(part, links) != "NV":
        return (
            f"NVLink joins these {size}, though not each two of them: other copies go over a third"
            " GPU or PCIe; data parallel across hosts"
        )
    joined = (
        f"NVLink joins each two of these {size} ({bonds}): tensor parallel ({sizes(size)}) inside"
    )
    if size == gpus:
        return f"{joined}, data parallel across hosts"
    rest = "the others are reached over PCIe"
    if size < len(domain.gpus):
        rest = f"not each two of all {len(domain.gpus)} are joined"
    return f"{joined}; {rest}: data or pipeline parallel across the groups"


def _nvlinks(part: Sequence[str], domain: NvlinkDomain, links: Links) -> str:
    counts = {
        links[pair].nvlinks for pair in map(frozenset, combinations(part, 2)) if pair in links
    }
    counts = counts or {domain.nvlinks}
    return f"NV{min(counts)}" if len(counts) == 1 else f"NV{min(counts)} to NV{max(counts)}"


def sizes(most: int) -> str:
    """The degrees of parallelism that fill a group evenly, as words: 2, 4 or 8."""
    fitting = [str(one) for one in range(2, most + 1) if most % one == 0]
    return " or ".join(filter(None, [", ".join(fitting[:-1]), fitting[-1]]))


def _beyond(host: Host) -> str:
    """GPUs of a rack are one NVLink domain over several hosts."""
    gpus: tuple[Gpu, ...] = () if isinstance(host.gpus, Missing) else host.gpus
    for gpu in gpus:
        uuid = gpu.fabric.cluster_uuid
        if isinstance(uuid, str) and not _NO_CLUSTER.issuperset(uuid):
            clique = gpu.fabric.clique_id
            named = "" if isinstance(clique, Missing) else f", clique {clique}"
            return f"; NVLink goes on into the other hosts of its rack{named}: groups may span them"
    return ""


def _on_pcie(
    gpus: Sequence[GpuPlace], links: Links, all_gpus: int
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Without NVLink: by switch where switches hold several GPUs, else by NUMA node."""
    names = [gpu.name for gpu in gpus]
    switches = _components(names, lambda a, b: _path(a, b, links) in _ON_SWITCH)
    if any(1 < len(part) < all_gpus for part in switches) or len(switches) == 1 < len(names):
        for part in switches:
            yield part, _why_switch(part, links)
        return
    node = {gpu.name: gpu.numa_node for gpu in gpus}
    for part in _components(names, lambda a, b: node[a] == node[b]):
        yield part, _why_node(part, node[part[0]], links)


def _components(names: Sequence[str], near: Callable[[str, str], bool]) -> list[tuple[str, ...]]:
    parts: list[list[str]] = []
    for name in names:
        touching = [part for part in parts if any(near(name, other) for other in part)]
        parts = [part for part in parts if part not in touching]
        parts.append([*(one for part in touching for one in part), name])
    return [tuple(part) for part in parts]


def _why_switch(part: Sequence[str], links: Links) -> str:
    if len(part) == 1:
        return "no NVLink, and no other GPU on its PCIe switch"
    return (
        f"no NVLink; these {len(part)} share a PCIe switch ({worst(part, links)}): tensor"
        " parallel, if at all, inside; data or pipeline parallel across"
    )


def _why_node(part: Sequence[str], node: int | Missing, links: Links) -> str:
    place = "whose NUMA node is not known" if isinstance(node, Missing) else f"of NUMA node {node}"
    path = worst(part, links)
    if len(part) == 1:
        return f"no NVLink; the only GPU without it {place}"
    if path == "SYS":
        return (
            f"no NVLink; these {len(part)} are {place}, and even so every copy between them goes "
            "the longest way (SYS): data or pipeline parallel, no tensor parallel"
        )
    shown = f" ({path} at worst)" if path else ""
    return (
        f"no NVLink; these {len(part)} are {place}{shown}: tensor parallel, if at all, inside;"
        " data or pipeline parallel across"
    )
