"""preflight topo: the machine as NCCL sees it, and how to start a job on it."""

from __future__ import annotations

from preflight.cli.judging import judge_and_report
from preflight.cli.options import Options
from preflight.cli.plan import Question
from preflight.cli.streams import Streams

#: The matrix shows the links between two GPUs, `fabric` what each GPU says of its own; variables
#: may keep NCCL from what is there.
DOMAINS = ("pcie", "topology", "fabric", "network", "nccl", "environment", "fleet")
PARTS: dict[str, tuple[str, ...]] = {
    "fabric": ("nvlink.*",),
    "environment": ("versions.env.devices",),
}
#: What of the comparison of hosts belongs to it.
FLEET = (
    "fleet.told.same", "fleet.topology.*", "fleet.nic.*", "fleet.cpu.numa.*",
    "fleet.gpu.count.same", "fleet.gpu.listed.same", "fleet.gpu.nvlink.*",
)  # fmt: skip
#: What the picture and the advice are made of, beside what the checks ask.
FACTS = ("topology", "pci_tree", "pci_paths", "gpus", "nics", "nic_ports", "netdevs", "numa_nodes",
         "stack", "environment")  # fmt: skip


def run(options: Options, streams: Streams) -> int:
    """Judge how the machine is joined; draw it, and advise."""
    question = Question("topo", DOMAINS, fleet=FLEET, parts=PARTS, facts=FACTS)
    return judge_and_report(question, options, streams)
