"""A process on the first GPU of a host with two NUMA nodes, as our questions print it; made up."""

from __future__ import annotations

from tests.conftest import sample
from tests.system_text import PROCESS

BOUND = PROCESS.replace(
    "files 1512\n",
    "Cpus_allowed_list:\t0-47\nMems_allowed_list:\t0-1\nfiles 1512\nopens 0\n"
    "policy default\nnode 0 33554432\nnode 1 1048576\nnodes end\n",
)
TWO_NODES = (
    "available: 2 nodes (0-1)\n"
    f"node 0 cpus: {' '.join(map(str, range(48)))}\n"
    "node 0 size: 1031844 MB\nnode 0 free: 900000 MB\n"
    f"node 1 cpus: {' '.join(map(str, range(48, 96)))}\n"
    "node 1 size: 1032192 MB\nnode 1 free: 900000 MB\n"
    "node distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n"
)
#: One GPU, at 0000:19:00.0, which lists the process.
ON_GPU = (
    sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml")
    .replace("<attached_gpus>4", "<attached_gpus>1")
    .replace("00000000:01:00.0", "00000000:19:00.0")
    .replace(
        "<processes />",
        "<processes><process_info><pid>4711</pid><type>C</type><process_name>python3</process_name>"
        "<used_memory>70000 MiB</used_memory></process_info></processes>",
    )
)
