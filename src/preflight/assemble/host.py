"""All answers of one host -> one Host. Where two probes tell the same the better counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.assemble.accelerators import accelerator_facts
from preflight.assemble.answers import read
from preflight.assemble.answers import site as site_answer
from preflight.assemble.asked import diag_of, log_of_job, told_once, training_of, watch_of
from preflight.assemble.benchmarks import benchmark_facts, whose_job
from preflight.assemble.bindings import bindings_of
from preflight.assemble.compared import (
    gpu_product,
    named,
    nic_facts,
    packages_of,
    told,
    with_clock,
)
from preflight.assemble.fabric_manager import fabric_manager
from preflight.assemble.fio import fio_facts
from preflight.assemble.gpus.inventory import (
    count_gpus,
    nameless,
    not_asked,
    nothing_wrong_without_gpus,
    nouveau_beside,
    silence,
)
from preflight.assemble.gpus.links import with_links
from preflight.assemble.gpus.looks import looks
from preflight.assemble.gpus.peers import with_peers
from preflight.assemble.gpus.processes import with_unexplained
from preflight.assemble.joined.p2p import as_asked
from preflight.assemble.joined.topology import topology_of
from preflight.assemble.kernel_logs import all_logs
from preflight.assemble.limits import limit_facts, processes_of
from preflight.assemble.nccl_logs import one_log, with_runs
from preflight.assemble.network.chosen import choice_of, ports_by_choice
from preflight.assemble.network.ports import by_place
from preflight.assemble.network.texts import merged_netdevs, merged_nics
from preflight.assemble.numa import numa_nodes
from preflight.assemble.objects import object_facts
from preflight.assemble.pci.paths import functions, looks_virtual, paths, shows
from preflight.assemble.pci.shape import shape
from preflight.assemble.pci.trees import pci_tree
from preflight.assemble.shard import shards_of
from preflight.assemble.software.environment import environment_facts
from preflight.assemble.software.reported import as_reported, both_limits, reports_of
from preflight.assemble.software.stack import stack_of
from preflight.assemble.sources import probe_of
from preflight.assemble.storage import proofs_of, storage_of
from preflight.assemble.stress import joined, stress_of, watch_under_load
from preflight.assemble.tables import SUPPLIERS
from preflight.facts.gpu import Gpu, NvidiaSmi
from preflight.facts.host import Cpu, Host, SiteAnswer
from preflight.facts.pci_tree import PciTree
from preflight.model import NOT_IN_INPUT, Known, Missing, MissingProbe, Raw

#: Parts that are facts as their probe tells them.
_AS_TOLD = (
    "board", "sysctls", "counters", "persisted", "software", "packages", "env_reports",
    "numa_nodes", "configured_limits", "asked_processes", "cgroup", "shared_memory", "disks",
    "processes", "clock", "cpu_state", "memory_state", "nccl_topo", "nccl",
    "collectives", "collective_shapes", "rdma_tests", "localisation", "bench_stack", "wire",
    "fio_runs", "fio_jobs", "fio_sides", "fio_syncs", "fio_totals",
    "patterns", "loader_reads", "loader_maps", "shards",
    "fio_large_reads", "fio_large_writes", "fio_random_reads",
    "object_stores", "object_ways", "object_small_ways",
    "bench_settings", "lasting", "network_growth", "inside",
)  # fmt: skip


class Assembled(Struct):
    """A host's facts, and the questions that got no usable answer."""

    host: Host
    missing: list[MissingProbe]


def assemble(name: str, raws: Iterable[Raw], nics: str = "") -> Assembled:
    """The facts of one host from all its answers. `nics`: which adapters the user named for
    training, as hca_list.py reads it."""
    by_probe = {raw.probe: raw for raw in raws}
    found = {probe: read(raw) for probe, raw in by_probe.items() if probe_of(probe)}
    parts = {part: _best(found, suppliers) for part, suppliers in SUPPLIERS.items()}
    asked = any(raw.argv for raw in by_probe.values())
    parts["watch"] = watch_under_load(parts["watch"], parts["stress"])
    parts["watch"] = watch_of(parts["watch"], parts["pci"], asked=asked)
    parts["training"] = training_of(parts["training"], asked=asked)
    parts["stress"] = stress_of(parts["stress"], asked=asked)
    parts["proofs"] = proofs_of(by_probe, asked=asked)
    parts["dcgm"] = diag_of(parts["dcgm"], asked=asked)
    parts["asked_processes"] = processes_of(parts["asked_processes"], asked=asked)
    parts["identity"] = with_clock(parts["identity"], by_probe.get("identity"))
    parts["kernel_log"] = all_logs(found, parts["kernel_log"], parts["identity"])
    parts["nccl"] = log_of_job(one_log(by_probe, found, parts["nccl"]), asked=asked)
    parts |= benchmark_facts(found, asked=asked)
    parts |= object_facts(parts["objects"], asked=asked)
    parts["shards"] = shards_of(parts["shard"], asked=asked)
    parts["nccl"] = with_runs(parts["nccl"], parts["collectives"])
    parts |= fio_facts(found, parts["memory"], asked=asked)
    python = named(parts["packages"], by_probe.get("packages"))
    parts["packages"] = packages_of(parts["packages"])
    site = {probe: site_answer(raw) for probe, raw in by_probe.items() if probe.startswith("site.")}
    parts["nics"] = merged_nics(found, SUPPLIERS["nics"], parts["nics"])
    parts["netdevs"] = merged_netdevs(found, SUPPLIERS["netdevs"], parts["netdevs"])
    parts["limits"] = both_limits(found, parts["limits"])
    parts["pci_tree"] = pci_tree(found)
    parts = as_reported(parts, reports_of(found))
    parts["numa_nodes"] = numa_nodes(found, parts["cpu"])
    host = replace(_host(name, parts, site), gpu_looks=looks(found))
    host = replace(host, stack=stack_of(host, python))
    p2p = as_asked(parts["p2p"], by_probe.get("nvidia-smi-p2p"))
    host = replace(host, nic_choice=choice_of(nics, host.environment))
    host = replace(host, topology=topology_of(host, parts["matrix"], p2p))
    ports = by_place(host.nic_ports, host.topology, host.nics)
    host = replace(host, nic_ports=ports_by_choice(ports, host.nic_choice))
    host = replace(host, bindings=bindings_of(host))
    host = replace(host, stress=joined(host), **whose_job(found))
    return Assembled(host, _unanswered(found, site))


def _host(name: str, parts: Mapping[str, Any], site: dict[str, Known[SiteAnswer]]) -> Host:
    identity, smi, pci, tree = (
        parts[part] for part in ("identity", "nvidia_smi", "pci", "pci_tree")
    )
    container = identity if isinstance(identity, Missing) else identity.container
    smi = not_asked(pci, smi)
    covers = partial(shows, None if pci is not NOT_IN_INPUT else tree)
    if pci is NOT_IN_INPUT:
        pci = functions(tree, smi)
    inventory = count_gpus(identity, pci, smi, parts["driver_module"], covers)
    smi = nothing_wrong_without_gpus(inventory, smi)
    virtualization = _virtualization(parts["cpu"], smi, tree)
    gpus = _gpus(smi)
    linked = with_links(gpus, parts["nvlink_status"], parts["nvlink_errors"])
    counted = nameless(inventory, linked, recorded=identity is NOT_IN_INPUT)
    return Host(
        name=name,
        identity=identity,
        os=parts["os"],
        container=container,
        virtualization=virtualization,
        cpu=parts["cpu"],
        memory=parts["memory"],
        pci=pci,
        driver=smi if isinstance(smi, Missing) else smi.driver,
        gpus=with_peers(with_unexplained(linked, container)),
        gpu_inventory=replace(inventory, nameless=counted),
        kernel_log=parts["kernel_log"],
        pci_tree=tree,
        pci_paths=paths(tree, smi, virtualization, parts["matrix"]),
        driver_module=nouveau_beside(parts["driver_module"], pci),
        services=parts["services"],
        fabric_manager=fabric_manager(parts["services"], pci, smi, virtualization),
        chassis=parts["chassis"],
        sel=parts["sel"],
        edac=parts["edac"],
        dimms=parts["dimms"],
        dcgm=parts["dcgm"],
        watch=told_once(parts["watch"], gpus),
        training=parts["training"],
        stress=parts["stress"],
        bug_report=parts["bug_report"],
        **{part: parts[part] for part in _AS_TOLD},
        **limit_facts(parts),
        **nic_facts(parts["nics"], parts["netdevs"], tree),
        **accelerator_facts(parts["npus"], parts["amd_gpus"], pci),
        **environment_facts(parts["environment"], parts.values()),
        storage=storage_of(parts),
        topology_shape=shape(parts["pci_sysfs"]),
        gpu_product=gpu_product(gpus),
        told=told(parts, smi, gpus),
        site=site,
    )


def _unanswered(
    read: Mapping[str, Any], site: Mapping[str, Known[SiteAnswer]]
) -> list[MissingProbe]:
    """The questions that got no usable answer, where no other probe supplied the same."""
    failed = {name: value for name, value in {**read, **site}.items() if isinstance(value, Missing)}
    supplied = {
        name
        for suppliers in SUPPLIERS.values()
        if any(name in read and name not in failed for name in suppliers)
        for name in suppliers
    }
    return [
        MissingProbe(name, value.kind, value.text)
        for name, value in failed.items()
        if name not in supplied
    ]


def _best(read: Mapping[str, Any], suppliers: Sequence[str]) -> Any:
    """The first supplier that has it; else the first one's reason."""
    answers = [read[name] for name in suppliers if name in read]
    found = [answer for answer in answers if not isinstance(answer, Missing)]
    return (found or answers or [NOT_IN_INPUT])[0]


def _gpus(smi: Known[NvidiaSmi]) -> Known[tuple[Gpu, ...]]:
    if isinstance(smi, Missing):
        return smi
    if not smi.gpus and smi.driver.state != "answers":
        return silence(smi.driver)
    if not smi.gpus and smi.attached != 0:
        return Missing("unreadable", "the input is cut short: no GPU is whole in it")
    if not smi.gpus:
        return Missing("not-applicable", "no NVIDIA GPU is listed by nvidia-smi")
    return smi.gpus


def _virtualization(cpu: Known[Cpu], smi: Known[NvidiaSmi], tree: Known[PciTree]) -> Known[str]:
    """`vm` or `none`: by the GPU driver where it was given a GPU, else by the CPU's hypervisor
    flag (which x86 has and other processors have not), else by devices that only virtual machines
    have."""
    gpus = () if isinstance(smi, Missing) else smi.gpus
    told = {gpu.virtualization for gpu in gpus if isinstance(gpu.virtualization, str)}
    if told - {"None", "Host VGPU", "Host VSGA"}:
        return "vm"
    if isinstance(cpu, Cpu) and isinstance(cpu.hypervisor, str):
        return "none" if cpu.hypervisor == "none" else "vm"
    if told:
        return "none"
    return "vm" if looks_virtual(tree) else NOT_IN_INPUT
