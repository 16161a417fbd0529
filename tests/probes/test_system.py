"""What a host tells of itself."""

from __future__ import annotations

import pytest

from preflight.errors import ParseError
from preflight.facts.host import Identity
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.identity import granted, identity
from preflight.probes.pci.functions import pci
from preflight.probes.site import site_answer
from preflight.probes.system import lscpu, meminfo, os_release

TOLD = """hostname node-07
kernel 6.8.0-45-generic
boot_id b0883328-5378-4c10-aecc-ca363c0ef43a
date 2026-01-02T03:04:05Z
uptime 880.10 1712.71
uid 1000
container_file /.dockerenv
device_node /dev/nvidia0
device_node /dev/nvidia3
allocation NVIDIA_VISIBLE_DEVICES 0,3
allocation CUDA_VISIBLE_DEVICES
"""


def test_identity() -> None:
    told = identity(TOLD)
    assert told.hostname == "node-07"
    assert told.date_s == 1767323045
    assert told.uptime_s == 880.10
    assert told.uid == 1000
    assert told.container == "docker"
    assert told.nvidia_device_nodes == 2
    assert told.allocation == {"NVIDIA_VISIBLE_DEVICES": "0,3", "CUDA_VISIBLE_DEVICES": ""}


def test_identity_of_a_host_that_tells_little() -> None:
    told = identity("hostname x\nboot_id \nuptime nonsense\n")
    assert isinstance(told.boot_id, Missing)
    assert isinstance(told.uptime_s, Missing)
    assert told.container == "none"


def test_identity_needs_a_host_name() -> None:
    with pytest.raises(ParseError, match="hostname NAME"):
        identity("bash: uname: command not found\n")


@pytest.mark.parametrize(
    ("variables", "nodes", "container", "count"),
    [
        ({"NVIDIA_VISIBLE_DEVICES": "0,1,5"}, 3, "docker", 3),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-1b,GPU-2c"}, 8, "none", 2),
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, 4, "docker", 4),  # CDI
        ({"NVIDIA_VISIBLE_DEVICES": "0:0,0:1"}, 8, "docker", 1),
        ({"NVIDIA_VISIBLE_DEVICES": "0,0"}, 8, "docker", 1),
        ({"SLURM_STEP_GPUS": "2", "SLURM_JOB_GPUS": "0-3"}, 8, "none", 1),
        ({"SLURM_JOB_GPUS": "0-3,6"}, 8, "none", 5),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, 4, "docker", 4),
        # nvidia-smi does not heed it, so it limits nothing here.
        ({"CUDA_VISIBLE_DEVICES": "0"}, 8, "none", NOT_IN_INPUT),
        ({}, 8, "none", NOT_IN_INPUT),
        ({}, 4, "kubernetes", 4),
    ],
)
def test_what_an_allocation_grants(
    variables: dict[str, str], nodes: int, container: str, count: object
) -> None:
    host = Identity("x", container=container, nvidia_device_nodes=nodes, allocation=variables)
    assert granted(host) == count


@pytest.mark.parametrize(
    ("variables", "container"),
    [
        ({}, "docker"),
        ({"NVIDIA_VISIBLE_DEVICES": "MIG-aaa,MIG-bbb"}, "docker"),
        ({"SLURM_JOB_ID": "4711"}, "none"),
    ],
)
def test_where_it_cannot_be_read_what_was_granted(
    variables: dict[str, str], container: str
) -> None:
    host = Identity("x", container=container, nvidia_device_nodes=0, allocation=variables)
    told = granted(host)
    assert isinstance(told, Missing)
    assert told.kind == "not-applicable"


def test_pci() -> None:
    text = "0000:1b:00.0 0x030200 0x10de 0x2330 nvidia\n0000:05:00.0 0x068000 0x10de 0x22a3 \nend\n"
    gpu, switch = pci(text)
    assert (gpu.address, gpu.vendor_id, gpu.driver) == ("0000:1b:00.0", "0x10de", "nvidia")
    assert (switch.driver, switch.line) == ("", 2)
    assert pci("end\n") == ()


def test_a_list_of_pci_functions_that_is_cut_is_not_a_short_list() -> None:
    with pytest.raises(ParseError, match="cut short"):
        pci("0000:1b:00.0 0x030200 0x10de 0x2330 nvidia\n")
    with pytest.raises(ParseError, match="line 1"):
        pci("garbage\nend\n")


def test_lscpu_on_metal_and_in_a_guest() -> None:
    metal = (
        "CPU(s):  192\nModel name:  AMD EPYC 9654\nSocket(s):  2\nNUMA node(s):  2\nFlags: fpu\n"
    )
    told = lscpu(metal)
    assert (told.cpus, told.sockets, told.numa_nodes, told.hypervisor) == (192, 2, 2, "none")
    assert lscpu(metal + "Hypervisor vendor:  KVM\n").hypervisor == "KVM"
    assert lscpu(metal.replace("fpu", "fpu hypervisor lahf_lm")).hypervisor == "unknown"
    with pytest.raises(ParseError):
        lscpu("lscpu: failed\n")


def test_meminfo() -> None:
    told = meminfo("MemTotal:  1000 kB\nMemFree: 5 kB\nMemAvailable:  250 kB\nSwapTotal: 0 kB\n")
    assert (told.total_bytes, told.available_percent, told.line) == (1024000, 25.0, 3)
    with pytest.raises(ParseError):
        meminfo("")


def test_os_release() -> None:
    assert os_release('NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12"\n') == "Debian GNU/Linux 12"
    with pytest.raises(ParseError):
        os_release("NAME=x\n")


def test_site_answer() -> None:
    told = site_answer("used: 87.5 %\nfree\n")
    assert (told.text, told.lines, told.number) == ("used: 87.5 %\nfree", 2, 87.5)
    assert isinstance(site_answer("none").number, Missing)


def test_meminfo_shows_the_line_of_each_fact() -> None:
    text = "MemTotal:  1000 kB\nMemFree: 5 kB\nMemAvailable:  250 kB\nSwapTotal: 0 kB\n"
    locate = meminfo.probe.locate  # type: ignore[attr-defined]
    start = meminfo(text).line
    told = {"total_bytes": 1, "available_percent": 3, "available_bytes": 3, "swap_total_bytes": 4}
    assert {field: locate(text, start, field) for field in told} == told
    assert locate("MemTotal:  1000 kB\n", 1, "available_bytes") == 1
