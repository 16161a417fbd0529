"""Settings of NCCL that recipes carry from machine to machine, and that are better left alone."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.facts.host import Host
from preflight.facts.topology import GpuPlace
from preflight.model import Missing
from preflight.placement.advice.adapters import link_layers
from preflight.placement.advice.said import Said, left

#: As many GPUs as a board with NVSwitches has: the sizes in which clouds hand them out whole.
_WHOLE_BOARD = 8


def constants(host: Host, gpus: Sequence[GpuPlace]) -> Said:
    """What matters on this host, and why no constant is given."""
    lines = []
    layers = link_layers(host)
    if len(gpus) > 1:
        lines.append(
            "NCCL_ALGO, NCCL_PROTO, NCCL_P2P_LEVEL, NCCL_NET_GDR_LEVEL: NCCL derives them from the"
            " topology that it finds; a constant holds for every size and communicator"
        )
    if "Ethernet" in layers:
        lines.append(
            "NCCL_IB_QPS_PER_CONNECTION: 1 by default; where the fabric has several paths 2 or 4"
            " may gain: compare with nccl-tests on two hosts or more"
        )
    return left(*lines, *_topology_file(host, gpus))


def _topology_file(host: Host, gpus: Sequence[GpuPlace]) -> tuple[str, ...]:
    """A virtual machine mostly shows no switches and one node: clouds ship a file that does."""
    set_already = any(one.name == "NCCL_TOPO_FILE" for one in host.stack.environment)
    nodes = {gpu.numa_node for gpu in gpus if not isinstance(gpu.numa_node, Missing)}
    if host.virtualization != "vm" or len(gpus) < _WHOLE_BOARD or set_already or len(nodes) > 1:
        return ()
    return (
        "NCCL_TOPO_FILE: this virtual machine shows one NUMA node for all its GPUs, so NCCL guesses"
        " which adapter is near; where the cloud ships a file for this size, name it",
    )
