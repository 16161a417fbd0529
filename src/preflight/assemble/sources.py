"""Which probe supplies what: the tables, and the questions that a set of checks needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module

from preflight.model import Check, Command
from preflight.probes.spec import Probe

#: Where each probe lives, below probes; a reader of logs below preflight. Cheap ones first, vendor
#: tools last: a tool that hangs costs no answer.
#: The BMC comes before what else waits for the driver: its word is wanted most where that hangs.
PROBES: dict[str, str] = {
    "identity": "identity:identity",
    "bug-report": "bug_report:bug_report",
    "pci": "pci.functions:pci",
    "meminfo": "system:meminfo",
    "os-release": "system:os_release",
    "lscpu": "system:lscpu",
    "driver-module": "driver_module:driver_module",
    "services": "services:services",
    "edac": "edac:edac",
    "board": "board:board",
    "sysctls": "parameters.sysctls:sysctls",
    "network-counters": "parameters.network_counters:network_counters",
    "persisted": "parameters.persisted:persisted",
    "nics": "nics:nics",
    "pci-tree": "pci.tree:pci_tree",
    "numa": "numa:numa",
    "netdevs": "netdevs.sysfs:netdevs",
    "ethtool": "netdevs.ethtool:ethtool",
    "software": "stack.software:software",
    "packages": "stack.packages:packages",
    "limits": "limits.limits:limits",
    "limits-conf": "limits.limits_conf:limits_conf",
    "process": "limits.process:process",
    "cgroup": "state.cgroup:cgroup",
    "shared-memory": "state.shared_memory:shared_memory",
    "memory-state": "state.memory_state:memory_state",
    "cpu-state": "state.cpu_state:cpu_state",
    "processes": "state.processes:processes",
    "disks": "state.disks:disks",
    "service-limits": "limits.service_limits:service_limits",
    "clock": "state.clock:clock",
    "environment": "stack.environment:environment",
    "nccl-topo": "nccl_topo:nccl_topo",
    "dmidecode": "dmidecode:dmidecode",
    "dmesg": "kernel_log.log:dmesg",
    "journalctl": "kernel_log.log:journalctl",
    "kernel-log": "kernel_log.log:kernel_log",
    "lspci": "pci.lspci:lspci",
    "lspci-tree": "pci.drawn:lspci_tree",
    "hwloc": "pci.hwloc:hwloc",
    "nvidia-smi": "nvidia_smi.xml:nvidia_smi_xml",
    "nvidia-smi-q": "nvidia_smi.text:nvidia_smi_text",
    "nvidia-smi-table": "nvidia_smi.table:nvidia_smi_table",
    "npu-smi": "accelerators.npu_smi:npu_smi",
    "rocm-smi": "accelerators.rocm_smi:rocm_smi",
    "ipmi-sdr": "ipmi.sdr:ipmi_sdr",
    "ipmi-sel": "ipmi.sel:ipmi_sel",
    "nvlink-s": "nvidia_smi.nvlink:nvlink_status",
    "nvlink-e": "nvidia_smi.nvlink:nvlink_errors",
    "nvlink": "nvidia_smi.nvlink:nvlink",
    "nvidia-smi-topo": "nvidia_smi.topo:matrix",
    "nvidia-smi-p2p": "nvidia_smi.topo:p2p",
    "dcgmi-diag": "dcgm.diag:dcgmi_diag",
    "watch": "watch:watch",
    "nvidia-smi-dmon": "nvidia_smi.dmon:nvidia_smi_dmon",
    "dcgmi-dmon": "dcgm.dmon:dcgm_dmon",
    "collect-env": "env_reports.collect_env:collect_env",
    "sglang-env": "env_reports.sglang_env:sglang_env",
    "ds-report": "env_reports.ds_report:ds_report",
    "hf-env": "env_reports.launchers:hf_env",
    "lightning-env": "env_reports.launchers:lightning_env",
    "pip-freeze": "env_reports.listed:pip_freeze",
    "pip-list": "env_reports.listed:pip_list",
    "conda-list": "env_reports.listed:conda_list",
    "sysctl": "parameters.sysctl_text:sysctl",
    "numactl": "numactl:numactl",
    "ibstat": "infiniband.ibstat:ibstat",
    "ibstatus": "infiniband.ibstat:ibstatus",
    "ibv_devinfo": "infiniband.ibv_devinfo:ibv_devinfo",
    "rdma-link": "infiniband.rdma_link:rdma_link",
    "show-gids": "infiniband.rdma_link:show_gids",
    "ibdev2netdev": "infiniband.rdma_link:ibdev2netdev",
    "ip-addr": "netdevs.ip_addr:ip_addr",
    "bonding": "netdevs.bonding:bonding",
    "mlnx-qos": "netdevs.mlnx_qos:mlnx_qos",
    "proc-limits": "limits.ulimit:proc_limits",
    "prlimit": "limits.ulimit:prlimit",
    "ulimit": "limits.ulimit:ulimit",
    "ulimit-hard": "limits.ulimit:ulimit_hard",
    "env": "stack.env_text:env",
    "nccl-log": "logs.nccl.log:nccl_log",
}

#: Each part of the vocabulary and the probes that can supply it, best first.
SUPPLIERS: dict[str, tuple[str, ...]] = {
    "identity": ("identity",),
    "pci": ("pci",),
    "memory": ("meminfo",),
    "os": ("os-release",),
    "cpu": ("lscpu",),
    "kernel_log": ("dmesg", "journalctl", "kernel-log"),
    "pci_tree": ("lspci", "pci-tree", "lspci-tree", "hwloc"),
    "pci_sysfs": ("pci-tree",),
    "driver_module": ("driver-module",),
    "services": ("services",),
    "nvidia_smi": ("nvidia-smi", "nvidia-smi-q", "nvidia-smi-table"),
    "nvlink_status": ("nvlink-s", "nvlink"),
    "nvlink_errors": ("nvlink-e", "nvlink"),
    "matrix": ("nvidia-smi-topo",),
    "p2p": ("nvidia-smi-p2p",),
    "chassis": ("ipmi-sdr",),
    "sel": ("ipmi-sel",),
    "edac": ("edac",),
    "dimms": ("dmidecode",),
    "dcgm": ("dcgmi-diag",),
    "watch": ("watch", "nvidia-smi-dmon", "dcgmi-dmon"),
    "bug_report": ("bug-report",),
    "board": ("board",),
    "sysctls": ("sysctls", "sysctl"),
    "counters": ("network-counters",),
    "persisted": ("persisted",),
    # Of each adapter what only a later one knows is taken from that: assemble/network/texts.py.
    "nics": (
        "nics",
        "ibv_devinfo",
        "ibstat",
        "ibstatus",
        "rdma-link",
        "show-gids",
        "ibdev2netdev",
    ),
    "netdevs": ("netdevs", "ethtool", "ip-addr", "bonding", "mlnx-qos"),
    "software": ("software",),
    "packages": ("packages",),
    # One part each: none stands for another.
    "collect_env": ("collect-env",),
    "sglang_env": ("sglang-env",),
    "ds_report": ("ds-report",),
    "hf_env": ("hf-env",),
    "lightning_env": ("lightning-env",),
    "pip_freeze": ("pip-freeze",),
    "pip_list": ("pip-list",),
    "conda_list": ("conda-list",),
    "numa_nodes": ("numa", "numactl", "hwloc"),
    "limits": ("limits", "proc-limits", "prlimit", "ulimit", "ulimit-hard"),
    "service_limits": ("service-limits",),
    "configured_limits": ("limits-conf",),
    "asked_processes": ("process",),
    "cgroup": ("cgroup",),
    "shared_memory": ("shared-memory",),
    "disks": ("disks",),
    "processes": ("processes",),
    "clock": ("clock",),
    "cpu_state": ("cpu-state",),
    "memory_state": ("memory-state",),
    "environment": ("environment", "env"),
    "nccl_topo": ("nccl-topo",),
    "nccl": ("nccl-log",),
    "npus": ("npu-smi",),
    "amd_gpus": ("rocm-smi",),
}

#: Forms of a part that only a recording holds: never asked of a live host.
RECORDED_ONLY = frozenset(
    {
        "kernel-log", "nvidia-smi-q", "nvidia-smi-table", "nvlink", "dcgmi-diag",
        "nvidia-smi-dmon", "dcgmi-dmon", "bug-report", "collect-env", "sglang-env", "ds-report",
        "hf-env", "lightning-env",
        "pip-freeze", "pip-list", "conda-list", "sysctl", "numactl", "proc-limits", "prlimit",
        "ulimit", "ulimit-hard", "env", "lspci-tree", "hwloc",
        "ibstat", "ibstatus", "ibv_devinfo", "rdma-link",
        "show-gids", "ibdev2netdev", "ip-addr", "bonding", "mlnx-qos", "nccl-log",
    }
)  # fmt: skip

#: Asked by an option of its own (--duration, --pid), with a command that depends on it.
BY_OPTION = frozenset({"watch", "process"})

#: The first word of a fact path -> the parts it is made of. `identity` and `pci` are always asked.
MADE_OF: dict[str, tuple[str, ...]] = {
    "identity": ("identity",),
    "os": ("os",),
    "cpu": ("cpu",),
    "memory": ("memory",),
    "pci": ("pci",),
    "container": ("identity",),
    "virtualization": ("cpu", "nvidia_smi"),
    "driver": ("nvidia_smi", "pci"),
    "gpus": ("nvidia_smi", "pci"),
    "gpu_inventory": ("nvidia_smi", "pci", "identity"),
    "gpu_looks": ("nvidia_smi",),
    "kernel_log": ("kernel_log",),
    "pci_tree": ("pci_tree",),
    "pci_paths": ("pci_tree", "nvidia_smi", "cpu"),
    "driver_module": ("driver_module",),
    "services": ("services",),
    "fabric_manager": ("services", "pci", "nvidia_smi", "cpu"),
    "chassis": ("chassis",),
    "sel": ("sel",),
    "edac": ("edac",),
    "dimms": ("dimms",),
    "dcgm": ("dcgm",),
    "watch": ("watch", "pci"),
    "bug_report": ("bug_report",),
    "board": ("board",),
    "sysctls": ("sysctls",),
    "counters": ("counters",),
    "persisted": ("persisted", "sysctls"),
    "nics": ("nics",),
    "nic_ports": ("nics", "netdevs"),
    "netdevs": ("netdevs", "nics"),
    "nic_count": ("nics",),
    "topology": (
        "matrix",
        "p2p",
        "pci_tree",
        "nics",
        "numa_nodes",
        "nvidia_smi",
        "nvlink_status",
        "pci",
        "cpu",
    ),
    "topology_shape": ("pci_sysfs",),
    "software": ("software",),
    "packages": ("packages",),
    "env_reports": (
        "collect_env",
        "sglang_env",
        "ds_report",
        "pip_freeze",
        "pip_list",
        "conda_list",
    ),
    "numa_nodes": ("numa_nodes", "cpu"),
    "limits": ("limits", "service_limits", "asked_processes", "nics"),
    "job_services": ("service_limits", "limits", "nics"),
    "configured_limits": ("configured_limits",),
    "asked_processes": ("asked_processes",),
    "bindings": ("asked_processes", "nvidia_smi", "pci", "pci_tree", "numa_nodes"),
    "cgroup": ("cgroup",),
    "shared_memory": ("shared_memory",),
    "disks": ("disks",),
    "processes": ("processes",),
    "clock": ("clock",),
    "cpu_state": ("cpu_state",),
    "memory_state": ("memory_state",),
    "stack": (
        "nvidia_smi",
        "pci",
        "driver_module",
        "software",
        "packages",
        "nics",
        "services",
        "environment",
    ),
    # Judged by the versions that are installed and the devices that are there.
    "environment": (
        "environment",
        "packages",
        "software",
        "nvidia_smi",
        "npus",
        "amd_gpus",
        "pci",
        "cpu",
        "nics",
    ),
    "env_targets": ("environment",),
    # Held against what the host has.
    "nccl_topo": ("nccl_topo", "pci_tree", "nvidia_smi", "pci", "cpu", "nics"),
    "accelerators": ("npus", "amd_gpus", "pci"),
    "accelerator_count": ("npus", "amd_gpus", "pci", "identity"),
    "gpu_product": ("nvidia_smi", "pci"),
    # Held against the adapters and links of the host that wrote it.
    "nccl": ("nccl", "nics", "identity"),
    "told": (),  # of what is asked for other checks
    "site": (),
}
#: The same for facts of a GPU that are asked for by themselves: the word below `gpus[*]`.
BELOW_GPUS: dict[str, tuple[str, ...]] = {"nvlink": ("nvlink_status", "nvlink_errors")}


def probe_of(name: str) -> Probe | None:
    """The probe called `name`, or `name#2`; None where it is a site's own or unknown."""
    stem = name.partition("#")[0]
    if stem not in PROBES:
        return None
    module, function = PROBES[stem].split(":")
    where = "preflight" if module.startswith("logs.") else "preflight.probes"
    found: Probe = getattr(import_module(f"{where}.{module}"), function).probe
    return found


def commands_for(
    checks: Iterable[Check], site: Sequence[Command] = (), facts: Sequence[str] = ()
) -> list[Command]:
    """The questions that these checks need, and the facts besides, in the order in which they are
    asked."""
    paths = {*facts, *(path for check in checks for path in _paths(check))}
    parts = {"identity", "pci", "os", "cpu", "memory"}
    parts.update(part for path in paths for part in _parts(path))
    wanted = {name for part in parts for name in SUPPLIERS[part]} - RECORDED_ONLY - BY_OPTION
    probes = [probe_of(name) for name in PROBES if name in wanted]
    return [probe.command for probe in probes if probe] + list(site)


def _parts(path: str) -> Iterator[str]:
    """The parts that the fact at `path` is made of."""
    root = path.partition("[")[0].partition(".")[0]
    yield from MADE_OF.get(root, ())
    if root == "gpus":
        yield from BELOW_GPUS.get(path.partition("[*].")[2].partition(".")[0], ())


def _paths(check: Check) -> Iterator[str]:
    """All facts of the host that a check reads: its own, its conditions', what it compares with."""
    yield from (check.fact, *check.when, *check.row.get("reads", ()))
    yield from (path for path in check.like if not path.startswith("."))
    for declared in (check.fail_unless, check.warn_unless):
        for argument in declared.values():
            if isinstance(argument, dict) and not str(argument.get("fact", ".")).startswith("."):
                yield argument["fact"]
    if check.row.get("settled_by"):
        yield "gpus"
