"""Where the process of each local rank runs: its GPU, the adapters beside it, its processors."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.expect.memory_policy import may_bind_memory
from preflight.facts.host import Host
from preflight.facts.topology import GpuPlace
from preflight.model import Missing, Seat
from preflight.placement.advice.adapters import has_efa
from preflight.placement.advice.cpu_shares import count, share


def seats_of(host: Host, order: Sequence[GpuPlace]) -> tuple[Seat, ...]:
    """One seat for each GPU; the local rank is its position in `order`."""
    unbound = why_unbound(host, order)
    return tuple(_seat(host, order, rank, unbound) for rank in range(len(order)))


def why_unbound(host: Host, order: Sequence[GpuPlace]) -> str:
    """Why no rank is to be bound; "" where ranks are."""
    if has_efa(host):
        return "not bound: aws-ofi-nccl, EFA's plugin, asks for processes that may use all CPUs"
    places = {(_node(gpu), cpus_of(host, gpu)) for gpu in order}
    known = _nodes_with_cpus(host)
    if known == 1:
        return "not bound: there is one NUMA node"
    if known > 1 or len(places) > 1:
        return ""
    if places == {(None, "")}:
        return "not bound: the NUMA nodes of the GPUs are not known"
    if len(order) == 1:
        return "not bound: how many NUMA nodes there are is not known (numactl -H)"
    return (
        "not bound: all GPUs show one NUMA node; a virtual machine may hide the others (numactl -H)"
    )


def _node(gpu: GpuPlace) -> int | None:
    """None where it is not known; -1 is the kernel's word for that."""
    return None if isinstance(gpu.numa_node, Missing) or gpu.numa_node < 0 else gpu.numa_node


def _nodes_with_cpus(host: Host) -> int:
    """0 where the nodes are not known. A node of memory alone is a GPU's, or CXL."""
    if isinstance(host.numa_nodes, Missing):
        return 0
    return sum(1 for node in host.numa_nodes if node.cpus != 0 and node.cpu_list != "")


def cpus_of(host: Host, gpu: GpuPlace) -> str:
    """The processors of a GPU's node; "" where they are not known, or the text is no list: it
    becomes part of a command."""
    nodes = () if isinstance(host.numa_nodes, Missing) else host.numa_nodes
    of_node = (one.cpu_list for one in nodes if one.name == f"node{_node(gpu)}")
    told = (one for one in (gpu.cpus, *of_node) if isinstance(one, str))
    return next((one for one in told if count(one)), "")


def _seat(host: Host, order: Sequence[GpuPlace], rank: int, unbound: str) -> Seat:
    gpu = order[rank]
    node = _node(gpu)
    cpus = cpus_of(host, gpu)
    beside = [one for one in order if _same_place(one, gpu)]
    part = share(cpus, beside.index(gpu), len(beside))
    bind = "" if unbound else _command(host, node, cpus)
    why = unbound or _shared(len(beside), bool(part))
    if not bind and not unbound:
        why = "not bound: the NUMA node of its GPU is not known"
    return Seat(
        local_rank=rank,
        gpu=gpu.name,
        nics=() if isinstance(gpu.nics, Missing) else gpu.nics,
        numa_node=node,
        cpus=part or cpus,
        bind=bind,
        why="; ".join(filter(None, (why, _memory(host) if bind else "", _nic(gpu)))),
    )


def _same_place(one: GpuPlace, other: GpuPlace) -> bool:
    return (one.numa_node, one.cpus) == (other.numa_node, other.cpus)


def _command(host: Host, node: int | None, cpus: str) -> str:
    """By node; where the node is not known, or memory may not be bound, by its processors."""
    if node is not None and not _memory(host) and not _without_memory(host, node):
        return f"numactl --cpunodebind={node} --membind={node}"
    if cpus:
        return f"taskset -c {cpus}"
    return "" if node is None else f"numactl --cpunodebind={node}"


def _without_memory(host: Host, node: int) -> bool:
    """Whether nothing can be bound to a node's memory: its processor has no modules."""
    nodes = () if isinstance(host.numa_nodes, Missing) else host.numa_nodes
    return any(one.name == f"node{node}" and one.total_bytes == 0 for one in nodes)


def _memory(host: Host) -> str:
    if may_bind_memory(host.container):
        return ""
    return "containers mostly may not set a memory policy; memory follows the CPUs"


def _shared(ranks: int, divided: bool) -> str:
    if ranks == 1:
        return "alone on the NUMA node of its GPU"
    cpus = "; cpus: an even share, for `taskset -c` where ranks are to be kept apart"
    return f"on the NUMA node of its GPU, with {ranks - 1} more{cpus if divided else ''}"


def _nic(gpu: GpuPlace) -> str:
    """Alike for all whose adapters are as near."""
    if isinstance(gpu.nics, Missing) or isinstance(gpu.nic_path, Missing) or not gpu.nics:
        return ""
    return f"nearest adapters by {gpu.nic_path}; NCCL finds them itself"
