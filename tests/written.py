"""Healthy answers in the layouts of their tools, where no sample is; the values are made up."""

# ruff: noqa: E501

from __future__ import annotations

from tests import fio_text, object_lines, ras_text, shard_text, stack_text
from tests.accelerator_text import amd, npus
from tests.binding_text import BOUND
from tests.collective_text import BENCH, LATENCY
from tests.lab.watch_lines import WATCHES
from tests.nccl_lines import OLD as NCCL
from tests.nccl_topo_text import CLOUD, DUMP, answer
from tests.network_text import WRITTEN as NETWORK
from tests.parameters_text import COUNTERS
from tests.parameters_text import FILES as PERSISTED
from tests.setup_text import ENVIRONMENT, SETUP
from tests.software_text import SOFTWARE
from tests.storage_text import (
    NVME_LOG,
    NVME_LOG_TEXT,
    REBUILT,
    RECORDED,
    SMARTCTL_NVME,
    SMARTCTL_SATA,
    STORAGE,
)
from tests.system_text import SYSTEM
from tests.topology_hosts import machine, tree
from tests.traces.built import timeline_texts, trace_texts
from tests.training_lines import text as trained

NVSWITCH = "0000:05:00.0 0x068000 0x10de 0x22a3 nvidia-nvswitch\n"
SERVICES = """\
daemon nv-fabricmanage
Fabric Manager version is : 535.161.08
systemd: yes
NRestarts=0
Result=success
Id=nvidia-fabricmanager.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled

Id=nvidia-imex.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
end
"""
MODULES = """\
NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Jan 27 03:08:31 UTC 2024
GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)
module version: 535.161.08
nvidia-modprobe: no
nvidia_uvm 1523712 4 - Live 0x0000000000000000 (PO)
nvidia 56717312 42 nvidia_uvm, Live 0x0000000000000000 (PO)
end
"""
BUG_REPORT = "Start of NVIDIA bug report log file.\nEnd of NVIDIA bug report log file.\n"
BMC = """\
Inlet Temp       | 04h | ok  |  7.1 | 22 degrees C
Fan1             | 30h | ok  |  7.1 | 5040 RPM
Fan2             | 31h | ok  |  7.1 | 5160 RPM
PS1 Status       | 70h | ok  | 10.1 | Presence detected
PS2 Status       | 71h | ok  | 10.2 | Presence detected
PS1 Output       | 72h | ok  | 10.1 | 1210 Watts
PS2 Output       | 73h | ok  | 10.2 | 1180 Watts
PS1 Fan          | 74h | ok  | 10.1 | 9000 RPM
PS Redundancy    | 77h | ok  |  7.1 | Fully Redundant
CPU1 Status      | 60h | ok  |  3.1 | Processor presence detected
"""
SEL = "   1 | 01/01/2026 | 00:00:00 | Event Logging Disabled | Log area reset/cleared | Asserted\n"
EDAC = """\
mc0/mc_name:AMD64 Family 19h
mc0/seconds_since_reset:864000
mc0/ce_count:3
mc0/ue_count:0
mc0/dimm0/dimm_label:CPU_SrcID#0_Chan#1_DIMM#0
mc0/dimm0/dimm_ce_count:3
mc0/dimm0/dimm_ue_count:0
mc0/dimm0/size:65536
end
"""
DIMM = """\
Handle 0x{0:04X}, DMI type 17, 92 bytes
Memory Device
\tSize: 64 GB
\tLocator: DIMM_A{0}
\tBank Locator: P0 CHANNEL A
\tType: DDR5
\tSpeed: 5600 MT/s
\tManufacturer: Samsung
\tConfigured Memory Speed: 4800 MT/s

"""
DIMMS = "# dmidecode 3.3\nGetting SMBIOS data from sysfs.\n\n" + "".join(map(DIMM.format, range(4)))
DCGM_DMON = """\
#Entity   SMCLK        MMCLK        DVCCTR                      MMTMP             TMPTR        POWER             GRACT        SMACT        TENSO        DRAMA        PCITX             NVLTX
ID                                                              C                 C            W
GPU 0     1755         2619         4                           70                60           690.123           N/A          N/A          N/A          N/A          N/A               N/A
GPU 1     345          2619         140                         71                61           190.000           N/A          N/A          N/A          N/A          N/A               N/A
GPU 0     1755         2619         4                           71                61           691.123           0.991        0.902        0.611        0.455        1500000000        21000000000
GPU 1     345          2619         140                         71                61           191.000           0.995        0.903        0.100        0.050        1500000000        2000000000

dmon was stopped do to receiving a signal
"""

#: Two sockets, and the memory of a GPU, which has no processors.
NUMA = """\
node0/cpulist:0-47,96-143
node1/cpulist:48-95,144-191
node2/cpulist:
node0/distance:10 21 80
node1/distance:21 10 80
node2/distance:80 80 10
node0/meminfo:Node 0 MemTotal:       1056293812 kB
node0/meminfo:Node 0 MemFree:        1020000000 kB
node1/meminfo:Node 1 MemTotal:       1056904860 kB
node1/meminfo:Node 1 MemFree:        1030000000 kB
node2/meminfo:Node 2 MemTotal:       97871872 kB
node2/meminfo:Node 2 MemFree:        97871872 kB
end
"""

#: Probe -> its answers.
WRITTEN: dict[str, tuple[str, ...]] = {
    "stacks": (stack_text.spied(stack_text.LOADS), stack_text.faulted(stack_text.WAITS)),
    "ras": (
        ras_text.answer("INCOMPLETE", ras_text.DEAD, ras_text.TIMED_OUT),
        ras_text.answer("ERROR", ras_text.FAILED, ras_text.mismatch()),
        ras_text.as_json({0: 9, 1: 8}, missing={2: True}, errors={1: 6}),
    ),
    "trace": trace_texts(),
    "timeline": timeline_texts(),
    "services": (SERVICES,),
    "driver-module": (MODULES,),
    "ipmi-sdr": (BMC,),
    "bug-report": (BUG_REPORT,),
    "ipmi-sel": (SEL,),
    "edac": (EDAC,),
    "numa": (NUMA,),
    "lspci-tree": (tree(machine()),),
    "dmidecode": (DIMMS,),
    "all-reduce-bench": (BENCH,),
    "perftest": (LATENCY,),
    "fio": (fio_text.report(), fio_text.report(fio_text.synced())),
    "io-bench": (fio_text.bench(),),
    "objects": (object_lines.text(20),),
    "shard": (shard_text.shard(),),
    "dcgmi-dmon": (DCGM_DMON,),
    **{probe: (text,) for probe, text in SETUP.items()},
    **SOFTWARE,
    **{probe: (text,) for probe, text in SYSTEM.items()},
    **{probe: (text,) for probe, text in (RECORDED | STORAGE).items()},
    "mdstat": (STORAGE["mdstat"], REBUILT),
    "smart": (NVME_LOG, NVME_LOG_TEXT, SMARTCTL_NVME, SMARTCTL_SATA),
    "process": (SYSTEM["process"], f"minor 0 0000:19:00.0\n{BOUND}"),
    "nccl-log": tuple(NCCL.values()),
    "network-counters": (COUNTERS,),
    "persisted": (PERSISTED,),
    "environment": (ENVIRONMENT,),
    "nccl-topo": (DUMP, CLOUD, answer(DUMP), "state none\nend\n"),
    "npu-smi": (npus(),),
    "rocm-smi": (amd(),),
    **{probe: texts for probe, texts in NETWORK.items() if probe != "nics"},
    "nics": (*NETWORK["nics"], SETUP["nics"]),
    "micro-train": (trained(), trained(gpu=True)),
    "watch": tuple(texts["watch"] for texts in WATCHES.values() if "watch" in texts),
}
