"""Where a process that the user named may run, beside where its GPUs are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from preflight import cpulists
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.system import AskedProcess, Binding, NodeShare
from preflight.model import NOT_IN_INPUT, Known, Missing

#: What the driver itself takes of a GPU for a process, a context and its kernels, is less.
_CONTEXT_BYTES = 1 << 30
_NO_GPU = Missing("not-applicable", "it holds no GPU")
_NOT_LISTED = Missing("not-applicable", "no GPU lists it: it holds none, or runs in a container")
_NO_NODE = Missing("not-applicable", "the kernel names no NUMA node for its GPU")


def bindings_of(host: Host) -> Known[tuple[Binding, ...]]:
    """One for each process that the user named."""
    asked = host.asked_processes
    if isinstance(asked, Missing):
        return asked
    return tuple(_binding(host, process) for process in asked)


def _binding(host: Host, process: AskedProcess) -> Binding:
    gpus = _gpus_of(host, process)
    nodes = gpus if isinstance(gpus, Missing) else _settled(_nodes(host, gpus), gpus, process)
    memory = _counted(host, process.memory)
    return Binding(
        process.name,
        gpus=gpus if isinstance(gpus, Missing) else tuple(gpu.name for gpu in gpus),
        gpu_nodes=nodes,
        near_cpus=nodes if isinstance(nodes, Missing) else _cpus(host, nodes),
        cpus_allowed=process.cpus_allowed,
        memory_policy=process.memory_policy,
        memory=memory,
        near_percent=_near(memory, nodes),
        line=process.line,
        probe=process.probe,
    )


def _gpus_of(host: Host, process: AskedProcess) -> Known[Sequence[Gpu]]:
    """Those on which nvidia-smi lists it; in a container, where it lists none, those whose files it
    has open, which may be more."""
    if isinstance(process.command, Missing):
        return process.command
    if isinstance(host.gpus, Missing):
        return _NO_GPU if host.gpus.kind == "not-applicable" else host.gpus
    pid = int(process.name.removeprefix("pid "))
    listed = [gpu for gpu in host.gpus if pid in _pids(gpu)]
    if listed:
        # A context on another GPU, which many programs open on the first, is no work on it.
        return [gpu for gpu in listed if _worked_on(gpu, pid)] or listed
    if isinstance(process.gpus_open, Missing):
        return process.gpus_open
    opened = {_key(bus_id) for bus_id in process.gpus_open}
    return [gpu for gpu in host.gpus if _key(gpu.bus_id) in opened] or _NOT_LISTED


def _worked_on(gpu: Gpu, pid: int) -> bool:
    """Whether the process holds more of the GPU than a context."""
    processes = () if isinstance(gpu.processes, Missing) else gpu.processes
    held = (one.memory_bytes for one in processes if one.pid == pid)
    return any(isinstance(one, int) and one > _CONTEXT_BYTES for one in held)


def _settled(
    nodes: Known[tuple[int, ...]], gpus: Sequence[Gpu], process: AskedProcess
) -> Known[tuple[int, ...]]:
    """The nodes; of several, only where its memory shows that it works on GPUs of each."""
    pid = int(process.name.removeprefix("pid "))
    if isinstance(nodes, Missing) or len(nodes) < 2 or all(_worked_on(one, pid) for one in gpus):
        return nodes
    names = ", ".join(gpu.name for gpu in gpus)
    text = f"it holds {names} of several NUMA nodes, and so little that it may work on one alone"
    return Missing("not-applicable", text)


def _pids(gpu: Gpu) -> set[int]:
    return set() if isinstance(gpu.processes, Missing) else {one.pid for one in gpu.processes}


def _key(bus_id: str) -> str:
    return bus_id.lower().lstrip("0")


def _nodes(host: Host, gpus: Sequence[Gpu]) -> Known[tuple[int, ...]]:
    """The NUMA nodes of the GPUs, by the topology or else by PCI."""
    told: dict[str, Known[int]] = {}
    if not isinstance(host.pci_tree, Missing):
        told |= {_key(one.name): one.numa_node for one in host.pci_tree.devices}
    for place in () if isinstance(host.topology.gpus, Missing) else host.topology.gpus:
        if isinstance(place.bus_id, str) and isinstance(place.numa_node, int):
            told[_key(place.bus_id)] = place.numa_node
    found = [told.get(_key(gpu.bus_id), NOT_IN_INPUT) for gpu in gpus]
    unknown = next((one for one in found if isinstance(one, Missing)), None)
    if unknown is not None:
        return unknown if told else _untold(host)
    nodes = sorted({one for one in found if isinstance(one, int)})
    return tuple(nodes) if min(nodes) >= 0 else _NO_NODE


def _untold(host: Host) -> Missing:
    return host.pci_tree if isinstance(host.pci_tree, Missing) else NOT_IN_INPUT


def _cpus(host: Host, nodes: Iterable[int]) -> Known[str]:
    """The processors of these nodes."""
    lists = _cpu_lists(host)
    if isinstance(lists, Missing):
        return lists
    found: list[int] = []
    for node in nodes:
        told = lists.get(node, NOT_IN_INPUT)
        if isinstance(told, Missing):
            return told
        try:
            found += cpulists.parse(told)
        except ValueError as error:
            return Missing("unreadable", str(error))
    return cpulists.fold(found)


def _cpu_lists(host: Host) -> Known[Mapping[int, Known[str]]]:
    """Node -> its processors."""
    lists: dict[int, Known[str]] = {}
    for place in () if isinstance(host.topology.gpus, Missing) else host.topology.gpus:
        if isinstance(place.numa_node, int) and isinstance(place.cpus, str):
            lists[place.numa_node] = place.cpus
    for one in () if isinstance(host.numa_nodes, Missing) else host.numa_nodes:
        number = one.name.removeprefix("node")
        if number.isdecimal() and isinstance(one.cpu_list, str):
            lists[int(number)] = one.cpu_list
    if not lists and isinstance(host.numa_nodes, Missing):
        return host.numa_nodes
    return lists


def _counted(host: Host, memory: Known[tuple[NodeShare, ...]]) -> Known[tuple[NodeShare, ...]]:
    """Without that of nodes which have no processors: a GPU's own memory, memory of an expander."""
    if isinstance(memory, Missing) or isinstance(host.numa_nodes, Missing):
        return memory
    bare = {one.name for one in host.numa_nodes if one.cpus == 0}
    if len(bare) == len(host.numa_nodes):
        return memory
    return tuple(share for share in memory if f"node{share.node}" not in bare)


def _near(memory: Known[tuple[NodeShare, ...]], nodes: Known[tuple[int, ...]]) -> Known[float]:
    """How much of the memory is on the GPUs' nodes."""
    if isinstance(memory, Missing):
        return memory
    if isinstance(nodes, Missing):
        return nodes
    held = sum(share.held_bytes for share in memory)
    near = sum(share.held_bytes for share in memory if share.node in nodes)
    return 100 * near / held if held else Missing("not-applicable", "it holds no memory")
