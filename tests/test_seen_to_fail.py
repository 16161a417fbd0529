"""Every check of the catalogue is seen to pass, to fail and to be undetermined: seen_to_fail.yaml.

A check that cannot fail, or cannot pass, is a defect.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from preflight.collect import examine, examine_one_of_many
from preflight.judge.fleet import judge_fleet
from preflight.judge.load import DOMAINS, load
from preflight.judge.overrides import apply, mark
from preflight.model import Check, Override, Raw, Result, Status
from tests import (
    accelerator_text,
    checkpoint_text,
    collective_text,
    fio_text,
    object_lines,
    storage_text,
    wire_lines,
)
from tests import topology_text as topology
from tests.bench_lines import BASES as BENCHES
from tests.binding_text import BOUND, ON_GPU, TWO_NODES
from tests.conftest import sample
from tests.lab.watch_lines import WATCHES
from tests.loader_text import text as loaded
from tests.lspci_text import flat, server
from tests.nccl_lines import BASES as NCCL
from tests.nccl_lines import Job
from tests.nccl_topo_text import CLOUD, DUMP, answer, naming
from tests.network_text import BASES as NETWORK
from tests.parameters_text import BASES as PARAMETERS
from tests.setup_text import ENVIRONMENT, SETUP, TORCH
from tests.shard_text import shard
from tests.storage_text import PROOF, SEEN, STORAGE
from tests.stress_lines import lines as under_load
from tests.stress_lines import text as stressed
from tests.system_text import CGROUP, SHARED_MEMORY, STUCK, SYSTEM
from tests.topology_hosts import machine, sysfs
from tests.training_lines import slowed, swept, together
from tests.training_lines import text as trained
from tests.written import BMC, BUG_REPORT, DIMMS, EDAC, MODULES, NVSWITCH, SEL, SERVICES

#: By the reader in C, where it is there: every worker reads it.
ENTRIES: dict[str, dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "seen_to_fail.yaml").read_text(encoding="utf-8"),
    Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader),
)

ONE_GPU = "0000:01:00.0 0x030200 0x10de 0x20b2 nvidia\nend\n"
_COUNTERS = sample("nvlink/h100_errorcounters_excerpt.txt").replace("         [...]\n", "")
#: The counters of NVLink 5 as driver 595 names them, with the values of a sound B300.
_B300 = "GPU 0: NVIDIA B300 SXM6 AC (UUID: GPU-0000feed-0000-4000-8000-000000000001)\n"
_NVLINK5 = _B300 + "".join(
    f"\t Link {link}: {name}\n"
    for link in range(2)
    for name in (
        "Tx packets: 812", "Malformed packet Errors: 0", "Buffer overrun Errors: 0", "Rx Errors: 0",
        "Rx remote Errors: 0", "Rx General Errors: 0", "Local link integrity Errors: 0",
        "Tx discards: 0", "Link recovery successful events: 2", "Link recovery failed events: 0",
        "Total link recovery events: 2", "Effective Errors: 0", "Effective BER: 15e-255",
        "Symbol Errors: 0", "Symbol BER: 15e-255", "FEC Errors - 0: 36140749276",
        "Raw BER Lane 0: 2061", "Raw Errors Lane 0: 82",
    )
)  # fmt: skip
#: What inputs are made of: probe -> sample or text.
BASES: dict[str, dict[str, str]] = {
    "h100": {"nvidia-smi-q": "nvidia_smi_q/h100_sxm_x8_535.183_one_gpu_throttled.txt"},
    "metal": {"nvidia-smi-q": "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"},
    "a100": {"nvidia-smi": "nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml"},
    "v13": {"nvidia-smi": "nvidia_smi_xml/rtx_pro_6000_blackwell_590.44_v13.xml"},
    "pair": {"nvidia-smi": "nvidia_smi_xml/rtx_a5000_x2_nvlink_590.44_v13.xml"},
    "links": {"nvlink": "nvlink/h100_gpu0_status_then_capabilities.txt"},
    "links8": {"nvlink": "nvlink/a100_sxm4_x8_status.txt"},
    "counters": {"nvlink": _COUNTERS},
    "nvlink5": {"nvlink": _NVLINK5},
    "pages": {"nvidia-smi-q": "nvidia_smi_q/d_page_retirement_535.86_x8_clean.txt"},
    "quiet": {"kernel-log": "[    0.000000] Linux version 6.8.0\n[   12.0] usb 1-2: new device\n"},
    # The box: sensors and log of the BMC, memory, DCGM's diagnostics.
    "bmc": {"ipmi-sdr": BMC, "identity": "hostname node-07\ndate 2026-01-02T03:04:05Z\nuid 0\n"},
    "sel": {"ipmi-sel": SEL, "identity": "hostname node-07\ndate 2026-01-02T03:04:05Z\nuid 0\n"},
    "edac": {"edac": EDAC},
    "dimms": {"dmidecode": DIMMS},
    "dcgm3": {"dcgmi-diag": "dcgmi_diag/r2_a100_x8_dcgm3.3.3_pass.txt"},
    "dcgm4": {"dcgmi-diag": "dcgmi_diag/r3_a16_x4_dcgm4.0.0_pass.txt"},
    "wrapped": {
        "dmesg": "[700000.0] usb 1-2: new device\n[863000.0] usb 1-2: gone\n",
        "identity": "hostname node-07\ndate 2026-01-02T03:04:05Z\nuptime 864000.0 1\nuid 0\n",
    },
    "tree": {"lspci": server()},
    "tree_of_all": {
        "pci-tree": sysfs(machine()),
        "nics": SETUP["nics"],
        "lscpu": "CPU(s): 8\nFlags: fpu\n",
    },
    "cpu": {
        "lscpu": "CPU(s): 192\nModel name: AMD EPYC 9654 96-Core Processor\nSocket(s): 2\n"
        "NUMA node(s): 2\nFlags: fpu sse2\n"
    },
    "os": {"os-release": 'PRETTY_NAME="Ubuntu 22.04.4 LTS"\n'},
    "identity": {"identity": "hostname node-07\nkernel 5.15.0-94-generic\nuid 0\n"},
    "meminfo": {"meminfo": "MemTotal: 2113481236 kB\nMemAvailable: 2013481236 kB\n"},
    "bug-report": {"bug-report": BUG_REPORT},
    "switches": {
        "services": SERVICES,
        "nvidia-smi-q": "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt",
        "pci": NVSWITCH + "end\n",
    },
    "modules": {
        "driver-module": MODULES,
        "nvidia-smi-q": "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt",
    },
    "host": {
        "nvidia-smi": "nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml",
        "identity": "hostname node-07\ndate 2026-01-02T03:04:05Z\nuid 0\n",
        "pci": ONE_GPU,
        "meminfo": "MemTotal: 1000 kB\nMemAvailable: 900 kB\n",
    },
}
BASES |= (
    WATCHES | PARAMETERS | NETWORK | BENCHES | {name: {name: text} for name, text in SETUP.items()}
)
BASES |= {name: {name: text} for name, text in (SYSTEM | STORAGE).items()}
BASES["shard"] = {"shard": shard()}
BASES["proof"] = {"io-bench": PROOF}
BASES["proof-of-several"] = {"io-bench": PROOF.replace('{"kind": "end"', SEEN + '{"kind": "end"')}
BASES["checkpoint"] = {
    "io-bench": checkpoint_text.text(), "mounts": STORAGE["mounts"],
    "block-devices": STORAGE["block-devices"], "pci-tree": sysfs(machine()),
    "lscpu": "CPU(s): 8\nFlags: fpu\n",
}  # fmt: skip
BASES["loader"] = {"io-bench": loaded()}
BASES["drives"] = {"pci-tree": sysfs(machine()), "lscpu": "CPU(s): 8\nFlags: fpu\n"}
_MEMINFO = (
    "MemTotal: 2113481236 kB\nMemAvailable: 2013481236 kB\nSwapTotal: 8388604 kB\n"
    "SwapFree: 8388604 kB\nCommitLimit: 1056740618 kB\nCommitted_AS: 10567406 kB\n"
    "HugePages_Total: 0\nHugePages_Free: 0\nHugePages_Rsvd: 0\nHugepagesize: 2048 kB\n"
)
BASES |= {
    "clock-told": BASES["clock"],
    "stuck": {"processes": STUCK},
    "process-nccl": {"process": SYSTEM["process"], "packages": TORCH},
    "meminfo-all": {"meminfo": _MEMINFO},
    "commit": {"meminfo": _MEMINFO, "sysctls": "vm/overcommit_memory:2\nend\n"},
    "cgroup-gpu": {"cgroup": CGROUP, "pci": ONE_GPU},
    "shm-gpu": {"shared-memory": SHARED_MEMORY, "pci": ONE_GPU},
}
#: GPUs of a rack, as nvidia-smi 550 tells of their NVLink domain.
_RACK = (
    sample(BASES["metal"]["nvidia-smi-q"])
    .replace("NVIDIA H100 80GB HBM3", "NVIDIA GB200")
    .replace(
        "        Status                            : Success\n",
        "        Status                            : Success\n"
        "        CliqueId                          : 32766\n"
        "        ClusterUUID                       : 0000feed-0000-4000-8000-000000000001\n",
    )
)
#: The software under a run: a Python with torch, what the loader takes, the GPUs' driver.
_UNDER = {"packages": TORCH, "software": SETUP["software"]}
BASES |= {
    "stack": _UNDER | {"nvidia-smi-q": "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"},
    "stack_and_report": {
        "collect-env": "PyTorch version: 2.3.0+cu121\nCUDA used to build PyTorch: 12.1\n"
        "GPU 0: NVIDIA H100 80GB HBM3\nNvidia driver version: 535.161.08\n",
        "nvidia-smi-q": "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt",
    },
    "stack_t4": _UNDER | {"nvidia-smi": "nvidia_smi_xml/tesla_t4_515.105.xml"},
    "stack_a100": _UNDER | {"nvidia-smi": "nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml"},
    "collect_env": {
        "collect-env": "torch_collect_env/vllm_h100_x8_vm_torch2.5.1_cu124_ngc23.10.txt"
    },
    "ds_report": {"ds-report": "ds_report/deepspeed_0.7.7_polaris_all_prebuilt_ok.txt"},
    "rdma": {
        "driver-module": MODULES,
        "nics": SETUP["nics"],
        "nvidia-smi-q": BASES["metal"]["nvidia-smi-q"],
    },
    "gdrcopy": {
        "driver-module": MODULES,
        "software": "library libgdrapi.so.2 /usr/lib/libgdrapi.so.2.4\nlibc \nend\n",
    },
    "rack": {"services": SERVICES, "nvidia-smi-q": _RACK},
    "toolkit": {"software": SETUP["software"], "nvidia-smi-q": BASES["metal"]["nvidia-smi-q"]},
}
BASES |= {name: {"nccl-log": job.text(), "nics": SETUP["nics"]} for name, job in NCCL.items()}
BASES["npus"] = {
    "npu-smi": accelerator_text.npus(),
    "pci": accelerator_text.pci("0x19e5", 4),
    "identity": "hostname node-07\nuid 0\n",
}
BASES["clock"] = {"identity": "hostname node-07\ndate 2026-01-02T03:04:05Z\n"}
#: When the base's host was asked.
ASKED = {"clock": "2026-01-02T03:04:05Z"}
_X8 = "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"
#: With the GPUs that a variable may name.
BASES["environment"] = {"environment": ENVIRONMENT, "nvidia-smi-q": _X8}
#: A table and a full report of one host, as a ticket holds them.
BASES["two_looks"] = {
    "nvidia-smi-table": sample("nvidia_smi_table/h100_sxm_x8_550.90_idle.txt").replace(
        "550.90.07", "535.161.08"
    ),
    "nvidia-smi-q": _X8,
}
#: NCCL's topology file, of a host with the GPU and the NIC that it names.
BASES["topo-file"] = {
    "nccl-topo": answer(DUMP),
    "lspci": server(),
    "lscpu": "CPU(s): 192\nNUMA node(s): 2\nFlags: fpu sse2\n",
    "nics": SETUP["nics"],
}
BASES["topo-file-gpus"] = {
    "nccl-topo": answer(naming(*(f"0000:{bus}:00.0" for bus in
                                 ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db")))),
    "nvidia-smi-q": _X8,
}  # fmt: skip
#: A process on a GPU of node 0 of two.
BASES["bound"] = {
    "process": BOUND,
    "nvidia-smi": ON_GPU,
    "lspci": server(),
    "numactl": TWO_NODES,
}
#: A virtual machine whose GPUs and adapter hang on the root bus.
BASES["topo-guest"] = {
    "nccl-topo": answer(CLOUD),
    "lspci": flat(),
    "nvidia-smi-q": sample(_X8).replace(
        "Virtualization Mode               : None",
        "Virtualization Mode               : Pass-Through",
    ),
    "nics": SETUP["nics"],
}
BASES["pair-of-gpus"] = {
    "nvidia-smi-topo": "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV18\tPIX\t0-47\t0\nGPU1\tNV18\t X \tPIX\t0-47\t0\n"
    "mlx5_0\tPIX\tPIX\t X \t\t\n"
}
#: With the counters that later drivers print.
BASES["counted"] = {
    "nvidia-smi-q": sample(_X8).replace(
        "    FB Memory Usage\n",
        "    Clocks Event Reasons Counters\n        HW Thermal Slowdown       : 0 us\n"
        "        HW Power Braking          : 0 us\n    FB Memory Usage\n",
    )
}
BASES["dmon"] = {
    "nvidia-smi-dmon": "# gpu    pwr  gtemp  pviol  tviol\n# Idx      W      C      %   bool\n"
    + "    0    300     60     10      0\n" * 6
}
BASES["dmon-ecc"] = {
    "nvidia-smi-dmon": "# gpu  sbecc  dbecc    pci\n# Idx   errs   errs   errs\n"
    + "    0      0      0      0\n" * 6
}
BASES["dcgm-xid"] = {"dcgmi-dmon": "#Entity   XIDER\nID\n" + "GPU 0     0\n" * 6}
#: The matrix, with the models that it does not tell; sound, and with one fault each.
BASES |= {
    name: {"nvidia-smi-topo": text, "nvidia-smi-q": _X8}
    for name, text in {
        "matrix": topology.hgx(),
        "matrix-of-two": topology.matrix(2, lambda *_: "NV18"),
        "matrix-nv1": topology.hgx(odd={3: "NV1"}),
        "matrix-sys": topology.hgx(odd={3: "SYS"}),
        "matrix-seven-nics": topology.hgx(nics=7),
        "matrix-one-socket": topology.matrix(
            8, lambda *_: "NV18", nics=["mlx5_0", "mlx5_1"],
            near=lambda gpu, _: "NODE" if gpu < 4 else "SYS",
        ),
        "matrix-odd-node": topology.matrix(
            8, lambda *_: "NV18", nics=[f"mlx5_{at}" for at in range(8)], near=topology.rail,
            node=lambda gpu: str(int(gpu // 4 == 1 or gpu == 2)),
        ),
        "matrix-vm": topology.matrix(8, lambda *_: "NV18", node=lambda _: "0"),
    }.items()
}  # fmt: skip
BASES["matrix-pcie"] = {"nvidia-smi-topo": topology.pcie()}
BASES["matrix-seven-gpus"] = {"nvidia-smi-topo": topology.matrix(7, lambda *_: "NV18")}
BASES["matrix-bridges"] = {"nvidia-smi-topo": topology.pcie(bridges=True)}
BASES["matrix-three-bridges"] = {"nvidia-smi-topo": topology.pcie(bridges=True, without=2)}
BASES["p2p"] = {"nvidia-smi-p2p": "topo/h100_x8_p2p_r_all_ok.txt"}
BASES["table"] = {"nvidia-smi-table": "nvidia_smi_table/h100_sxm_x8_550.90_idle.txt"}
#: A run of the bundled loop; and with one part of each step longer, on one rank or on both.
BASES |= {
    "trained": {"micro-train": trained()},
    "trained-together": {"micro-train": together()},
    "trained-gpu": {"micro-train": trained(gpu=True)},
    "trained-straggler": {"micro-train": slowed("forward", 0.02, rank=1)},
    "trained-waiting": {"micro-train": slowed("data", 0.02)},
    "trained-pageable": {"micro-train": slowed("copy", 0.004)},
    "trained-drill": {"micro-train": "micro_train/injected_nan.jsonl"},
    "trained-idle": {"micro-train": slowed("rest", 0.008)},
    "swept": {"micro-train": swept()},
}
#: Eight GPUs under load, what links them and the air that cools them; two; some that fade, and one
#: that is hot.
_LOADED = {"nvidia-smi-q": _X8, "nvidia-smi-topo": topology.hgx(), "ipmi-sdr": BMC}
BASES |= {
    "bench": {"nccl-bench": sample("nccl_bench/sound_h1.jsonl")},
    "wire": {"nccl-bench": wire_lines.tcp()},
    "wire-shared": {"nccl-bench": wire_lines.tcp(together=0.5)},
    "wire-rdma": {"nccl-bench": wire_lines.rdma()},
    "wire-rdma-shared": {"nccl-bench": wire_lines.rdma(together=0.5)},
    "bench-lasting": {"nccl-bench": sample("nccl_bench/lasting_sound_h1.jsonl")},
    "bench-counted": {"nccl-bench": sample("nccl_bench/loses_h4.jsonl")},
    "bench-swept": {"nccl-bench": sample("nccl_bench/swept_h1.jsonl")},
    "stressed": {"stress": stressed(), **_LOADED},
    "stressed-two": {"stress": stressed(under_load(gpus=2, soak_s=1))},
    "stressed-briefly": {"stress": stressed(under_load(soak_s=1)), **_LOADED},
    "stressed-unlinked": {"stress": stressed(under_load(soak_s=1))},
    "stressed-fading": {"stress": stressed(under_load(fades=0.1)), **_LOADED},
    "stressed-hot": {"stress": stressed(under_load(hot=3)), **_LOADED},
}
NO_NVLS = Job(hosts=1, gpus=8).text().replace("support is available", "support is not available")
_SHORT = (8, 1 << 16, 1 << 20, 1 << 27)
#: A benchmark of eight H100, of two hosts of them; and of one adapter, whose port ibstat tells.
BASES |= {
    "collective": {"nccl-tests": collective_text.nccl_tests()},
    "collective-slow": {"nccl-tests": collective_text.nccl_tests(200.0)},
    "collective-short": {"nccl-tests": collective_text.nccl_tests(sizes=_SHORT)},
    "collective-short-slow": {"nccl-tests": collective_text.nccl_tests(150.0, sizes=_SHORT)},
    "collective-alone": {"nccl-tests": collective_text.nccl_tests(gpus=1) * 2},
    "collective-cut": {"nccl-tests": collective_text.nccl_tests(ends=False, most=1 << 40)},
    "collective-broken": {
        "nccl-tests": collective_text.nccl_tests(ends=False, most=1 << 40)
        + "node-01: Test NCCL failure common.cu:303 'unhandled system error / '\n"
    },
    "collective-pair": {"nccl-tests": collective_text.nccl_tests(hosts=2)},
    "collective-pair-slow": {"nccl-tests": collective_text.nccl_tests(3.0, hosts=2)},
    **{
        name: {"nccl-tests": collective_text.nccl_tests(busbw), "nccl-log": NO_NVLS}
        for name, busbw in (("collective-no-nvls", 370.0), ("collective-no-nvls-fast", 440.0))
    },
    "rdma-test": {
        "perftest": collective_text.perftest(),
        "ibstat": "infiniband/ibstat_h100_12hca_active.txt",
    },
}
BASES |= {
    "objects": {"objects": object_lines.text()},
    "fio": {"fio": fio_text.report()},
    "fio-log": {"fio": fio_text.report(fio_text.synced())},
    **{
        f"fio-{name}": {"fio": fio_text.report(told), "lsblk": storage_text.LSBLK}
        for name, told in {
            "random": fio_text.on_disk(), "read": fio_text.large("read", 190.0),
            "write": fio_text.large("write", 190.0),
        }.items()
    },
}  # fmt: skip
#: Edits that make the base sound: the sample announces four GPUs and holds one.
WHOLE = {"host": [["<attached_gpus>4", "<attached_gpus>1"]]}


@cache
def _checks() -> dict[str, Check]:
    return {check.id: check for check in load(DOMAINS).checks}


def _raws(entry: dict[str, Any], case: dict[str, Any]) -> list[Raw]:
    texts = {
        probe: sample(text) if re.fullmatch(r"[\w/.-]+", text) else text
        for probe, text in BASES[case.get("base", entry["base"])].items()
    }
    first = next(iter(texts))
    for pattern, replacement in WHOLE.get(entry["base"], []) + case.get("edit", []):
        edited, times = re.subn(pattern, replacement, texts[first], count=1)
        assert times == 1, f"{pattern!r} changes nothing"
        texts[first] = edited
    if "lines" in case:
        texts[first] = "".join(f"{line}\n" for line in case["lines"])
    if "sample" in case:
        texts[first] = sample(case["sample"])
    host = entry.get("host", "node-07")
    raws = {probe: Raw(host, probe, (probe,), 0, text) for probe, text in texts.items()}
    for probe, text in case.get("raws", {}).items():
        raws[probe] = Raw(host, probe, (probe,), 0, text)
    if case.get("denied"):
        raws[first] = Raw(host, first, (first,), 1, "", f"{first}: Operation not permitted")
    if "hung" in case:
        raws[case["hung"]] = Raw(host, case["hung"], (case["hung"],), 124, elapsed_s=32.0)
    if "rc" in case:
        raws[first] = replace(raws[first], rc=case["rc"])
    if "took" in case:
        raws[first] = replace(raws[first], elapsed_s=case["took"])
    if "absent" in case:
        raws[case["absent"]] = Raw(host, case["absent"], (case["absent"],), 127)
    started_at = ASKED.get(entry["base"], "")
    return [replace(raw, started_at=started_at) for raw in raws.values()]


#: Hosts of a fleet; of so many alike one is odd.
HOSTS = 6


def _judge_fleet(check: Check, key: str) -> list[Result]:
    """Over six hosts: all pass; the last is odd, or as many as the entry says; on all but the first
    it cannot be read."""
    entry = ENTRIES[check.id]
    usual = _raws(entry, entry.get("pass") or {})
    case = _raws(entry, entry.get(key) or {})
    odd = {"pass": HOSTS, "fail": 1, "unreadable": HOSTS - 1}[key]
    odd = entry.get("odd", odd)
    hosts = [usual] * (HOSTS - odd) + [case] * odd
    read = [
        examine_one_of_many(f"node-{number:02}", raws, [check]).readings
        for number, raws in enumerate(hosts, 1)
    ]
    return judge_fleet([one for one in read if one], [check])


def _judge(name: str, key: str) -> list[Result]:
    entry = ENTRIES[name]
    if _checks()[name].across == "fleet":
        return _judge_fleet(_checks()[name], key)
    checks = [replace(_checks()[name], row={**_checks()[name].row, **entry.get("row", {})})]
    if checks[0].rule == "drill":  # by what the others say
        checks += [one for one in _checks().values() if one.id in entry["others"]]
    if "set" in entry:
        checks = apply(checks, [Override(name, entry["set"], "--set")])
    if entry.get("asked"):
        checks = mark(checks, [name], asked=True)
    raws, nics = _raws(entry, entry.get(key) or {}), entry.get("nics", "")
    report = examine(entry.get("host", "node-07"), raws, checks, nics=nics)
    subject = entry.get("subject")
    mine = [one for one in report.results if one.check == name]
    return [one for one in mine if subject in (None, one.subject)]


def test_the_table_names_every_check_and_no_other() -> None:
    assert set(ENTRIES) == set(_checks())


@pytest.mark.parametrize("name", ENTRIES)
def test_it_passes(name: str) -> None:
    assert {one.status for one in _judge(name, "pass")} == {Status.PASS}


@pytest.mark.parametrize("name", ENTRIES)
def test_it_fails(name: str) -> None:
    worst = [one for one in _judge(name, "fail") if one.status is not Status.PASS]
    assert {one.status.value for one in worst} == {ENTRIES[name]["status"]}


@pytest.mark.parametrize("name", [name for name in ENTRIES if name.startswith("fleet.")])
def test_the_odd_host_is_named_and_nothing_else(name: str) -> None:
    (found,) = _judge(name, "fail")
    odd = "node-[01-06]" if ENTRIES[name].get("odd") else f"node-{HOSTS:02}"
    assert found.subject.split()[0] == odd


@pytest.mark.parametrize("name", ENTRIES)
def test_what_cannot_be_read_is_undetermined(name: str) -> None:
    worst = [one for one in _judge(name, "unreadable") if one.status is not Status.PASS]
    # Each host's own checks tell that it cannot be read; over the fleet nothing can be compared.
    fleet = _checks()[name].across == "fleet"
    assert {one.status for one in worst} == {Status.SKIP if fleet else Status.ERROR}
    assert all(one.reason for one in worst)
