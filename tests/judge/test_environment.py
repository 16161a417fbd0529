"""Variables: what is told of which, and that sound environments are left alone."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from msgspec.structs import replace

from preflight.assemble.software.stack import stack_of
from preflight.env_table import Recipe, family_of, table
from preflight.errors import UsageError
from preflight.facts.accelerators import Accelerator
from preflight.facts.gpu import Gpu
from preflight.facts.host import Cpu, Host
from preflight.facts.nics import NicPort
from preflight.facts.setup import Package, Software
from preflight.facts.stack import EnvReport, EnvTargets, EnvVar
from preflight.facts.stack_pieces import PythonEnv
from preflight.facts.topology import NicPlace, Topology
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.judge.overrides import apply, parse
from preflight.model import NOT_IN_INPUT, Missing, Result, Status

CHECKS = [one for one in load(("environment",)).checks if one.id.startswith("versions.env.")]
IB = EnvTargets(("lo", "eth0", "ib0"), ("mlx5_0", "mlx5_1", "mlx5_10"), ("InfiniBand",), ())
ROCE = EnvTargets(("lo", "eth0"), ("mlx5_0",), ("Ethernet",), ())
EFA = EnvTargets(("lo", "ens32"), ("rdmap16s27",), ("Unspecified",), ())
PLAIN = EnvTargets(("lo", "eth0", "docker0"), (), (), ())
GPUS = (Gpu(0, "gpu0", "0000:1b:00.0"), Gpu(1, "gpu1", "0000:2c:00.0"))


def host(text: str, targets: EnvTargets = PLAIN, of: str = "shell", **parts: Any) -> Host:
    """A host with these variables, as a script sets them: NAME=VALUE, a line each."""
    pairs = (line.strip().partition("=") for line in text.strip().splitlines())
    variables = tuple(
        EnvVar(name, value, of, at, "environment") for at, (name, _, value) in enumerate(pairs, 2)
    )
    given = {"cpu": Cpu(cpus=192), **parts}
    one = Host("node-07", environment=variables, env_targets=targets, **given)
    packages = given.get("packages", NOT_IN_INPUT)
    python = packages if isinstance(packages, Missing) else PythonEnv(packages)
    return replace(one, stack=stack_of(one, python))


def odd(one: Host) -> list[Result]:
    """What is told of the host; what nobody can tell is no fault."""
    quiet = (Status.PASS, Status.SKIP)
    return [each for each in judge(one, CHECKS) if each.status not in quiet]


def skipped(one: Host) -> list[tuple[str, str]]:
    """(last word of the check, reason) of all that nobody can tell."""
    found = [each for each in judge(one, CHECKS) if each.status is Status.SKIP]
    return [(each.check.rpartition(".")[2], each.reason) for each in found]


def told(one: Host) -> list[tuple[str, str]]:
    """(last word of the check, subject) of all that did not pass."""
    return [(each.check.rpartition(".")[2], each.subject) for each in odd(one)]


def nccl(version: str) -> dict[str, Any]:
    return {"packages": (Package("nvidia-nccl-cu12", version),)}


def torch(version: str) -> dict[str, Any]:
    return {"packages": (Package("torch", version),)}


#: What NVIDIA's PyTorch image of 2023 and 2024 sets (its `env`).
NGC = """
NCCL_VERSION=2.19.3
CUDA_VERSION=12.2.2.009
CUDA_DRIVER_VERSION=535.104.05
CUDA_CACHE_DISABLE=1
CUDA_MODULE_LOADING=LAZY
CUDA_HOME=/usr/local/cuda
CUBLAS_VERSION=12.2.5.6
CUDNN_VERSION=8.9.5
NVIDIA_VISIBLE_DEVICES=all
NVIDIA_DRIVER_CAPABILITIES=compute,utility,video
NVIDIA_REQUIRE_CUDA=cuda>=9.0
NVIDIA_REQUIRE_JETPACK_HOST_MOUNTS=
NVIDIA_PRODUCT_NAME=PyTorch
NVIDIA_BUILD_ID=71422337
NVIDIA_PYTORCH_VERSION=23.10
PYTORCH_VERSION=2.1.0a0+32f93b1
PYTORCH_BUILD_VERSION=2.1.0a0+32f93b1
PYTORCH_BUILD_NUMBER=0
PYTORCH_HOME=/opt/pytorch/pytorch
TORCH_CUDA_ARCH_LIST=5.2 6.0 6.1 7.0 7.2 7.5 8.0 8.6 8.7 9.0+PTX
TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1
TORCH_NCCL_USE_COMM_NONBLOCKING=0
UCC_CL_BASIC_TLS=^sharp
OMPI_MCA_coll_hcoll_enable=0
LD_LIBRARY_PATH=/usr/local/cuda/compat/lib:/usr/local/nvidia/lib
"""
#: As the clouds' images and guides set them: Azure ND, Amazon EFA, Google A3 with TCPX, CoreWeave.
AZURE = """
CUDA_DEVICE_ORDER=PCI_BUS_ID
NCCL_SOCKET_IFNAME=eth0
UCX_TLS=rc
UCX_NET_DEVICES=mlx5_0:1
NCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml
NCCL_IB_PCI_RELAXED_ORDERING=1
"""
AMAZON = """
FI_PROVIDER=efa
NCCL_PROTO=simple
FI_EFA_USE_DEVICE_RDMA=1
FI_EFA_FORK_SAFE=1
NCCL_DEBUG=INFO
NCCL_SOCKET_IFNAME=^docker,lo,veth
OFI_NCCL_PROTOCOL=RDMA
"""
GOOGLE = """
NCCL_FASTRAK_CTRL_DEV=eth0
NCCL_FASTRAK_NUM_FLOWS=2
NCCL_GPUDIRECTTCPX_FORCE_ACK=0
NCCL_CROSS_NIC=0
NCCL_ALGO=Ring,Tree
NCCL_PROTO=Simple
NCCL_NET_GDR_LEVEL=PIX
NCCL_P2P_NET_CHUNKSIZE=131072
NCCL_P2P_PCI_CHUNKSIZE=131072
NCCL_P2P_NVL_CHUNKSIZE=524288
NCCL_NVLSTREE_MAX_CHUNKSIZE=131072
NCCL_DYNAMIC_CHUNK_SIZE=524288
NCCL_BUFFSIZE=4194304
NCCL_MAX_NCHANNELS=12
NCCL_MIN_NCHANNELS=4
"""
COREWEAVE = """
NCCL_SOCKET_IFNAME=eth0
NCCL_IB_HCA=ibp
NCCL_COLLNET_ENABLE=0
SHARP_COLL_ENABLE_PCI_RELAXED_ORDERING=1
UCX_NET_DEVICES=ibp0:1,ibp1:1
"""
TRAINING = """
NCCL_DEBUG=WARN
OMP_NUM_THREADS=1
TORCH_NCCL_ASYNC_ERROR_HANDLING=1
TORCH_DISTRIBUTED_DEBUG=OFF
CUDA_DEVICE_MAX_CONNECTIONS=1
NVTE_FLASH_ATTN=1
CUBLAS_WORKSPACE_CONFIG=:4096:8
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128
NCCL_NVLS_ENABLE=0
NCCL_CUMEM_ENABLE=0
TOKENIZERS_PARALLELISM=false
CUDA_PATH_V11_8=/usr/local/cuda-11.8
CUDA_MY_OWN_THING=1
TORCHELASTIC_RUN_ID=7
"""
ASCEND = """
ASCEND_HOME_PATH=/usr/local/Ascend/ascend-toolkit/latest
ASCEND_LAUNCH_BLOCKING=0
ASCEND_SLOG_PRINT_TO_STDOUT=0
ASCEND_GLOBAL_LOG_LEVEL=3
ACL_OP_COMPILER_CACHE_MODE=enable
ACL_OP_COMPILER_CACHE_DIR=./cache
HCCL_CONNECT_TIMEOUT=1800
HCCL_EXEC_TIMEOUT=1800
HCCL_WHITELIST_DISABLE=1
TASK_QUEUE_ENABLE=2
COMBINED_ENABLE=1
"""
AMD = """
ROCR_VISIBLE_DEVICES=0,1,2,3
HIP_FORCE_DEV_KERNARG=1
RCCL_MSCCL_ENABLE=0
PYTORCH_ROCM_ARCH=gfx942
NCCL_MIN_NCHANNELS=112
"""
SOUND = {
    "empty": ("", PLAIN), "ngc": (NGC, IB), "azure": (AZURE, IB), "amazon": (AMAZON, EFA),
    "google": (GOOGLE, PLAIN), "training": (TRAINING, IB), "ascend": (ASCEND, PLAIN),
    "amd": (AMD, ROCE),
    "coreweave": (COREWEAVE, EnvTargets(("lo", "eth0"), ("ibp0", "ibp1"), ("InfiniBand",), ())),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_environment_passes(name: str) -> None:
    text, targets = SOUND[name]
    cards = tuple(Accelerator(f"card{at}", "AMD") for at in range(4))
    packages = (Package("torch", "2.8.0"), Package("nvidia-nccl-cu12", "2.27.3"))
    one = host(text, targets, packages=packages, accelerators=cards, gpus=GPUS)
    assert {each.status for each in judge(one, CHECKS)} == {Status.PASS}
    assert odd(host(text, targets)) == []


def test_an_empty_environment_says_that_nothing_is_set() -> None:
    (found,) = [one for one in judge(host(""), CHECKS) if one.check == "versions.env.unknown"]
    assert (found.status, found.measured) == (Status.PASS, "none is set")


#: Variables -> what is told: check and subject; the first line of a case names it.
CASES = [
    ("NCCL_IB_TIMOUT=22", "unknown NCCL_IB_TIMOUT"),
    ("NCCL_SOCKET_IFNAMES=eth0", "unknown NCCL_SOCKET_IFNAMES"),
    ("NCCL_FROBNICATE_ALL=1", "unknown NCCL_FROBNICATE_ALL"),
    ("NCCL_NET_GDR_LEVL=PIX", "unknown NCCL_NET_GDR_LEVL"),
    ("TORCH_NCCL_ASYNC_ERROR_HANDLIN=1", "unknown TORCH_NCCL_ASYNC_ERROR_HANDLIN"),
    ("CUDA_VISIBLE_DEVICE=0", "unknown CUDA_VISIBLE_DEVICE"),
    ("OMP_NUM_THREAD=4", "unknown OMP_NUM_THREAD"),
    ("PYTORCH_CUDA_ALOC_CONF=x:1", "unknown PYTORCH_CUDA_ALOC_CONF"),
    ("HCCL_CONECT_TIMEOUT=1800", "unknown HCCL_CONECT_TIMEOUT"),
    ("NCCL_SOCKET_TIMEOUT=60", "never NCCL_SOCKET_TIMEOUT"),
    ("NCCL_TIMEOUT=1800", "never NCCL_TIMEOUT"),
    ("NCCL_ASYNC_ERROR_HANDLING=1", "renamed NCCL_ASYNC_ERROR_HANDLING"),
    ("NCCL_BLOCKING_WAIT=0", "renamed NCCL_BLOCKING_WAIT"),
    ("NCCL_MAX_NRINGS=8", "renamed NCCL_MAX_NRINGS"),
    ("NCCL_TREE_THRESHOLD=1", "gone NCCL_TREE_THRESHOLD"),
    ("NCCL_IB_CUDA_SUPPORT=1", "gone NCCL_IB_CUDA_SUPPORT"),
    ("NCCL_NTHREADS=8", "value NCCL_NTHREADS"),
    ("NCCL_IB_TIMEOUT=99", "value NCCL_IB_TIMEOUT"),
    ("NCCL_IB_TIMEOUT=fast", "value NCCL_IB_TIMEOUT"),
    ("NCCL_DEBUG=debug", "value NCCL_DEBUG"),
    ("NCCL_DEBUG=INFO\nNCCL_DEBUG_SUBSYS=INIT,NETWORK", "value NCCL_DEBUG_SUBSYS"),
    ("NCCL_P2P_LEVEL=NVLINK", "value NCCL_P2P_LEVEL"),
    ("NCCL_CROSS_NIC=3", "value NCCL_CROSS_NIC"),
    ("CUBLAS_WORKSPACE_CONFIG=4096", "value CUBLAS_WORKSPACE_CONFIG"),
    ("CUDA_DEVICE_MAX_CONNECTIONS=0", "value CUDA_DEVICE_MAX_CONNECTIONS"),
    ("PYTORCH_CUDA_ALLOC_CONF=max_split_size:128", "value PYTORCH_CUDA_ALLOC_CONF"),
    ("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:8", "value PYTORCH_CUDA_ALLOC_CONF"),
    ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments", "value PYTORCH_CUDA_ALLOC_CONF"),
    ("HCCL_CONNECT_TIMEOUT=60", "value HCCL_CONNECT_TIMEOUT"),
    ("HCCL_CONNECT_TIMEOUT=7201", "value HCCL_CONNECT_TIMEOUT"),
    ("ACL_OP_COMPILER_CACHE_MODE=on", "value ACL_OP_COMPILER_CACHE_MODE"),
    ("OMP_NUM_THREADS=many", "value OMP_NUM_THREADS"),
    ("OMP_PLACES=core", "value OMP_PLACES"),
    ("FI_PROVIDER=eaf", "value FI_PROVIDER"),
    ("FI_LOG_LEVEL=verbose", "value FI_LOG_LEVEL"),
    ("UCX_LOG_LEVEL=verbose", "value UCX_LOG_LEVEL"),
    ("UCX_TLS=rc,gpu", "value UCX_TLS"),
    ("TASK_QUEUE_ENABLE=on", "value TASK_QUEUE_ENABLE"),
    ("HSA_OVERRIDE_GFX_VERSION=9.4.2", "harmful HSA_OVERRIDE_GFX_VERSION"),
    ("UCX_LOG_LEVEL=data", "harmful UCX_LOG_LEVEL"),
    ("FI_LOG_LEVEL=debug", "harmful FI_LOG_LEVEL"),
    ("AMD_SERIALIZE_KERNEL=3", "blocking AMD_SERIALIZE_KERNEL"),
    ("NCCL_ALGO=allreduce:rign", "value NCCL_ALGO"),
    ("NCCL_PROTO=^LL512", "value NCCL_PROTO"),
    ("NCCL_MIN_NCHANNELS=32\nNCCL_MAX_NCHANNELS=16", "contradictory NCCL_MIN_NCHANNELS"),
    (
        "PYTORCH_CUDA_ALLOC_CONF=backend:native\nPYTORCH_ALLOC_CONF=expandable_segments:True",
        "contradictory PYTORCH_CUDA_ALLOC_CONF",
    ),
    ("CUDA_VISIBLE_DEVICES=0,1\nHIP_VISIBLE_DEVICES=1", "contradictory CUDA_VISIBLE_DEVICES"),
    ("NCCL_SHARP_DISABLE=1", "no_effect NCCL_SHARP_DISABLE"),
    ("NCCL_DEBUG_FILE=/tmp/n.%h", "no_effect NCCL_DEBUG_FILE"),
    ("NVTE_FLASH_ATTN=0\nNVTE_FUSED_ATTN=0\nNVTE_UNFUSED_ATTN=0", "contradictory NVTE_FLASH_ATTN"),
    ("NCCL_MAX_NCHANNELS=8\nNCCL_MAX_CTAS=8", "contradictory NCCL_MAX_NCHANNELS"),
    ("NCCL_P2P_DISABLE=1", "harmful NCCL_P2P_DISABLE"),
    ("NCCL_ALGO=Ring", "harmful NCCL_ALGO"),
    ("NCCL_PROTO=Simple", "harmful NCCL_PROTO"),
    ("NCCL_PROTO=LL128", "harmful NCCL_PROTO"),
    ("NCCL_DEBUG=trace", "harmful NCCL_DEBUG"),
    ("TORCH_DISTRIBUTED_DEBUG=DETAIL", "harmful TORCH_DISTRIBUTED_DEBUG"),
    ("CUDA_CACHE_DISABLE=1", "harmful CUDA_CACHE_DISABLE"),
    ("PYTORCH_NO_CUDA_MEMORY_CACHING=0", "harmful PYTORCH_NO_CUDA_MEMORY_CACHING"),
    ("CUDA_LAUNCH_BLOCKING=1", "blocking CUDA_LAUNCH_BLOCKING"),
    ("ASCEND_LAUNCH_BLOCKING=1", "blocking ASCEND_LAUNCH_BLOCKING"),
    ("OMP_NUM_THREADS=256", "threads OMP_NUM_THREADS"),
    ("NCCL_SOCKET_IFNAME=eth1", "devices NCCL_SOCKET_IFNAME"),
    ("NCCL_SOCKET_IFNAME==eth", "devices NCCL_SOCKET_IFNAME"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_what_is_told_of_a_variable(text: str, expected: str) -> None:
    assert [" ".join(one) for one in told(host(text))] == [expected]


@pytest.mark.parametrize(
    "text",
    ["NCCL_IB_DISABLE=0", "CUDA_LAUNCH_BLOCKING=0", "NCCL_P2P_DISABLE=0", "NCCL_SHM_DISABLE=0",
     "NCCL_DEBUG=INFO\nNCCL_DEBUG_SUBSYS=INIT,VERSION", "OMP_PLACES={0:4},{4:4}", "UCX_TLS=^dc,ud",
     "FI_PROVIDER=verbs;ofi_rxm", "CUDA_VISIBLE_DEVICES=0,1\nHIP_VISIBLE_DEVICES=0,1",
     "NCCL_MIN_NCHANNELS=16\nNCCL_MAX_NCHANNELS=16", "NCCL_ALGO=allreduce:tree,ring;allgather:^pat",
     "PYTORCH_CUDA_ALLOC_CONF=backend:native\nPYTORCH_ALLOC_CONF=backend:native",
     "NCCL_ALGO=allreduce:tree", "NCCL_ALGO=^tree", "NCCL_PROTO=^LL128", "NCCL_IB_HCA=^mlx5_9",
     "NCCL_SOCKET_IFNAME=^docker0", "NCCL_SOCKET_IFNAME=ens,eth", "NCCL_BUFFSIZE=0x400000",
     "NCCL_ASYNC_ERROR_HANDLING=1\nTORCH_NCCL_ASYNC_ERROR_HANDLING=1",
     "NCCL_DEBUG=info", "NCCL_DEBUG=", "CUDA_VISIBLE_DEVICES=0,1", "NCCL_IB_GID_INDEX=3",
     "PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:[256:1,512:2,>:4],backend:native",
     "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8, max_split_size_mb:512"],
)  # fmt: skip
def test_what_is_right_is_left_alone(text: str) -> None:
    assert odd(host(text)) == []


def test_the_nearest_name_is_told() -> None:
    (found,) = odd(host("NCCL_IB_TIMOUT=22"))
    assert found.expected == "NCCL_IB_TIMEOUT"
    assert found.measured == "NCCL_IB_TIMOUT=22"
    assert found.evidence[0].line == 2


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ("NCCL_RAS_ENABLE=1", nccl("2.21.5"), ["early"]),
        ("NCCL_RAS_ENABLE=1", nccl("2.24.3"), []),
        ("NCCL_RAS_ENABLE=1", {}, []),
        ("NCCL_TREE_THRESHOLD=1", nccl("2.4.8"), []),
        ("NCCL_ASYNC_ERROR_HANDLING=1", torch("2.1.0a0+32f93b1"), []),
        ("NCCL_ASYNC_ERROR_HANDLING=1", torch("2.5.1+cu124"), ["renamed"]),
        ("TORCH_NCCL_ASYNC_ERROR_HANDLING=1", torch("2.1.2"), ["early"]),
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", torch("2.8.0"), []),
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", torch("2.9.1+cu128"), ["renamed"]),
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", {}, []),
        ("PYTORCH_ALLOC_CONF=expandable_segments:True", torch("2.8.0"), ["early"]),
        ("NCCL_RAS_ENABLE=1", {"software": (Software("nccl", "2.19.3"),)}, ["early"]),
        ("NCCL_RAS_ENABLE=1", {"software": (Software("nccl", Missing("unreadable", "x")),)}, []),
    ],
)
def test_versions_decide(text: str, parts: dict[str, Any], expected: list[str]) -> None:
    assert [check for check, _ in told(host(text, **parts))] == expected


@pytest.mark.parametrize(
    ("text", "targets", "expected"),
    [
        ("NCCL_IB_DISABLE=1", IB, ["harmful"]),
        ("NCCL_IB_DISABLE=1", PLAIN, []),  # nothing to lose
        ("NCCL_IB_DISABLE=1", EnvTargets(), []),  # not known
        ("NCCL_IB_DISABLE=1", EFA, []),  # its own plugin reaches it, not verbs
        ("NCCL_NET_GDR_LEVEL=LOC", ROCE, ["harmful"]),
        ("NCCL_IB_GID_INDEX=3", IB, ["no_effect"]),
        ("NCCL_IB_GID_INDEX=3", ROCE, []),
        ("NCCL_IB_HCA=mlx5", IB, []),
        ("NCCL_IB_HCA==mlx5_0:1,mlx5_1:1", IB, []),
        ("NCCL_IB_HCA=mlx5_4", PLAIN, ["devices"]),
        ("NCCL_IB_HCA=mlx5_4", EnvTargets(), []),
        ("NCCL_SOCKET_IFNAME=ib", IB, []),
        ("NCCL_TOPO_FILE=/x.xml", replace(IB, unreadable=("NCCL_TOPO_FILE",)), ["files"]),
    ],
)  # fmt: skip
def test_the_hosts_devices_decide(text: str, targets: EnvTargets, expected: list[str]) -> None:
    assert [check for check, _ in told(host(text, targets))] == expected


def _ports(**states: str) -> dict[str, Any]:
    """One port of each adapter, in this state; of mlx5_9 two."""
    ports = [NicPort(f"{name}/1", name, state=state) for name, state in states.items()]
    return {"nic_ports": (*ports, NicPort("mlx5_9/1", "mlx5_9", state="DOWN"),
                          NicPort("mlx5_9/2", "mlx5_9", state="ACTIVE"))}  # fmt: skip


UP = _ports(mlx5_0="ACTIVE", mlx5_1="ACTIVE", mlx5_10="ACTIVE", mlx5_2="DOWN")
ADAPTERS = replace(IB, adapters=("mlx5_0", "mlx5_1", "mlx5_10", "mlx5_2", "mlx5_9"))


@pytest.mark.parametrize(
    ("value", "status", "reason"),
    [
        ("mlx5_2", Status.FAIL, "mlx5_2 is DOWN: no port is left, NCCL falls back to TCP"),
        ("=mlx5_0,mlx5_2", Status.WARN, "mlx5_2 is DOWN: NCCL leaves it out"),
        ("=mlx5_9:1", Status.FAIL, "mlx5_9 is DOWN: no port is left"),
        ("=mlx5_0:1,mlx5_1:2", Status.WARN, "mlx5_1 has no port 2: NCCL leaves it out"),
        ("mlx5_0,mlx5_1", Status.WARN, "without a = before the list it takes mlx5_10 too"),
        ("mlx5_2,mlx5_7", Status.WARN, "the host has no mlx5_7"),
    ],
)
def test_ports_that_are_down_and_adapters_that_nobody_named(
    value: str, status: Status, reason: str
) -> None:
    found = odd(host(f"NCCL_IB_HCA={value}", ADAPTERS, **UP))
    assert reason in found[0].reason
    assert found[0].status is status


@pytest.mark.parametrize(
    "value",
    ["mlx5", "=mlx5_0,mlx5_1", "mlx5_0", "=mlx5_9", "=mlx5_9:2", "^mlx5_2", "mlx5_1,mlx5_10",
     "^=mlx5_2,mlx5_9", "=mlx5_0:1"],
)  # fmt: skip
def test_a_list_that_fits_the_ports_is_left_alone(value: str) -> None:
    assert odd(host(f"NCCL_IB_HCA={value}", ADAPTERS, **UP)) == []


_PLACES = tuple(
    NicPlace(f"mlx5_{at}", gpu_path="PIX" if at < 4 else "NODE",
             role="training" if at < 4 else "other")
    for at in range(6)
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "out"),
    [
        ("mlx5_0", "takes 1 of the 4 adapters beside a GPU, and leaves out mlx5_1, mlx5_2, mlx5_3"),
        (
            "=mlx5_0:1,mlx5_1,mlx5_2",
            "takes 3 of the 4 adapters beside a GPU, and leaves out mlx5_3",
        ),
        ("^=mlx5_3", "leaves out mlx5_3"),
        ("=mlx5_0,mlx5_1,mlx5_2,mlx5_3", ""),
        ("mlx5", ""),
        ("^mlx5_4,mlx5_5", ""),
    ],
)
def test_a_list_that_leaves_out_adapters_beside_gpus_is_a_warning(value: str, out: str) -> None:
    there = EnvTargets(("lo",), tuple(nic.name for nic in _PLACES), ("InfiniBand",), ())
    found = odd(host(f"NCCL_IB_HCA={value}", there, topology=Topology(nics=_PLACES)))
    assert [(one.status, out in one.reason) for one in found] == (
        [(Status.WARN, True)] if out else []
    )
    away = odd(host(f"NCCL_IB_HCA={value}", there, of="report", topology=Topology(nics=_PLACES)))
    assert away == []


def test_ports_that_are_not_known_are_no_fault() -> None:
    unread = _ports(mlx5_0="ACTIVE")["nic_ports"][:1]
    ports = tuple(replace(one, state=Missing("unreadable", "?")) for one in unread)
    assert odd(host("NCCL_IB_HCA=mlx5_0", IB, nic_ports=ports)) == []
    assert odd(host("NCCL_IB_HCA=mlx5_1", IB, nic_ports=Missing("not-in-input", "?"))) == []
    assert odd(host("NCCL_IB_HCA=mlx5_2", ADAPTERS, of="report", **UP)) == []


def test_one_adapter_of_several_that_is_absent_is_a_warning() -> None:
    (some,) = odd(host("NCCL_IB_HCA==mlx5_0,mlx5_7", IB))
    assert (some.status, some.reason[:22]) == (Status.WARN, "the host has no mlx5_7")
    (none,) = odd(host("NCCL_IB_HCA==mlx5_6,mlx5_7", IB))
    assert none.status is Status.FAIL


@pytest.mark.parametrize(
    ("value", "status"),
    [("0,1", None), ("1", None), ("0,1,2", Status.FAIL), ("0,0", Status.FAIL), ("", Status.WARN),
     ("-1", Status.WARN), ("GPU-5ebe9f43", None), ("MIG-0f1e", None)],
)  # fmt: skip
def test_gpus_that_are_named_must_be_there(value: str, status: Status | None) -> None:
    one = host(f"CUDA_VISIBLE_DEVICES={value}", gpus=GPUS)
    assert [each.status for each in odd(one)] == ([status] if status else [])
    assert skipped(one) == []


@pytest.mark.parametrize(
    ("value", "left"),
    [("0,1,x", "2 of 3 are seen"), ("x,0", "no GPU at all"), ("GPU-7", "no GPU at all"),
     ("GPU-5ebe,GPU-9", "1 of 2 are seen"), ("GPU-5e,GPU-aa", ""), ("0,-1,1", ""), ("MIG-7", "")],
)  # fmt: skip
def test_what_is_no_gpu_ends_the_list(value: str, left: str) -> None:
    gpus = (Gpu(0, "gpu0", "0000:1b:00.0", uuid="GPU-5ebe9f43"),
            Gpu(1, "gpu1", "0000:2c:00.0", uuid="GPU-aa0e"))  # fmt: skip
    found = odd(host(f"CUDA_VISIBLE_DEVICES={value}", gpus=gpus))
    assert [one.status for one in found] == ([Status.FAIL] if left else [])
    assert all(left in one.reason for one in found)


@pytest.mark.parametrize(
    ("outer", "inner", "names"),
    [("0,1", "2,3", ["HIP_VISIBLE_DEVICES"]), ("2,3", "0,1", []), ("0,1", "0", []),
     ("0,9", "0", ["ROCR_VISIBLE_DEVICES"])],
)  # fmt: skip
def test_hip_counts_among_what_rocr_left(outer: str, inner: str, names: list[str]) -> None:
    four = tuple(Accelerator(f"card{at}", "AMD") for at in range(4))
    text = f"ROCR_VISIBLE_DEVICES={outer}\nHIP_VISIBLE_DEVICES={inner}"
    found = odd(host(text, accelerators=four))
    assert [(one.subject, one.status) for one in found] == [(name, Status.FAIL) for name in names]


def test_hip_is_judged_by_what_rocr_left_where_the_gpus_are_not_known() -> None:
    one = host("ROCR_VISIBLE_DEVICES=0,1\nHIP_VISIBLE_DEVICES=2")
    assert [each.subject for each in odd(one)] == ["HIP_VISIBLE_DEVICES"]
    assert [each for each in skipped(one) if "HIP" in each[1]] == []


def test_a_host_without_any_adapter_says_so() -> None:
    (found,) = odd(host("NCCL_IB_HCA=mlx5_0"))
    assert "it has none" in found.reason


def test_expectations_are_words() -> None:
    for row in table().variables:
        assert row.told or not re.search(r"[\\\[(*+?{]", row.like), row.name


def test_a_value_that_nearly_fits_takes_no_time() -> None:
    began = time.monotonic()
    odd(host(f"NCCL_ALGO={'nvlstree' * 400}x\nNCCL_PROTO={'ll,' * 1000}"))
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("name", "vendor"),
    [("ASCEND_RT_VISIBLE_DEVICES", "Huawei Ascend"), ("HIP_VISIBLE_DEVICES", "AMD")],
)
def test_devices_of_other_makers_too(name: str, vendor: str) -> None:
    two = (Accelerator("a", vendor), Accelerator("b", vendor))
    assert odd(host(f"{name}=0,1", accelerators=two)) == []
    assert [one.status for one in odd(host(f"{name}=0,2", accelerators=two))] == [Status.FAIL]
    other = (Accelerator("a", "another"),)
    assert odd(host(f"{name}=0,2", accelerators=other)) == []


def test_what_a_process_or_a_file_sets_is_named_with_it() -> None:
    found = odd(host("NCCL_P2P_DISABLE=1", of="pid 4711"))
    assert [one.subject for one in found] == ["NCCL_P2P_DISABLE (pid 4711)"]
    file = EnvVar("NCCL_P2P_DISABLE", "1", "/etc/nccl.conf", 9, "environment")
    shell = host("NCCL_P2P_LEVEL=SYS")
    both = replace(shell, environment=(*shell.environment, file))  # type: ignore[misc]
    assert told(both) == [
        ("contradictory", "NCCL_P2P_DISABLE (/etc/nccl.conf)"),
        ("harmful", "NCCL_P2P_DISABLE (/etc/nccl.conf)"),
    ]


def test_what_one_text_sets_twice_is_told() -> None:
    twice = EnvVar("NCCL_DEBUG", "WARN", "shell", 9, "env", before="INFO")
    (found,) = odd(Host("x", environment=(twice,), env_targets=PLAIN))
    assert (found.check, found.status) == ("versions.env.contradictory", Status.WARN)
    assert "set twice, before this to INFO" in found.reason


def test_the_shell_counts_before_nccls_file() -> None:
    file = EnvVar("NCCL_P2P_DISABLE", "1", "/etc/nccl.conf", 9, "environment")
    shell = host("NCCL_P2P_DISABLE=0")
    both = replace(shell, environment=(file, *shell.environment))  # type: ignore[misc]
    assert told(both) == []


def test_stated_defaults_are_listed() -> None:
    found = judge(host("NCCL_IB_DISABLE=0\nCUDA_LAUNCH_BLOCKING=0\nNCCL_DEBUG=WARN"), CHECKS)
    (one,) = [each for each in found if each.check == "versions.env.no_effect"]
    assert one.measured == "3 set; as by default: NCCL_IB_DISABLE=0, CUDA_LAUNCH_BLOCKING=0"


def test_variables_of_a_report_are_not_held_against_devices() -> None:
    one = host("NCCL_SOCKET_IFNAME=eth7\nCUDA_VISIBLE_DEVICES=9\nOMP_NUM_THREADS=999", of="report")
    assert odd(one) == []
    assert [check for check, _ in skipped(one)] == ["devices", "devices", "threads"]


@pytest.mark.parametrize(
    ("of", "probe", "value", "expected"),
    [("shell", "collect-env", "0,2", "FAIL"), ("report", "collect-env", "0,2", "FAIL"),
     ("shell", "collect-env", "0,1", "PASS"), ("shell", "collect-env", "GPU-5ebe", "PASS"),
     # These list the GPUs that the variable left, from 0 again.
     ("shell", "sglang-env", "4,5", "SKIP"), ("shell", "lightning-env", "4,5", "SKIP")],
)  # fmt: skip
def test_gpus_of_a_report_are_held_against(of: str, probe: str, value: str, expected: str) -> None:
    report = EnvReport(gpus=("NVIDIA H100 80GB HBM3",) * 2, probe=probe)
    one = host(f"CUDA_VISIBLE_DEVICES={value}", of=of, env_reports=(report,))
    (found,) = [each for each in judge(one, CHECKS) if each.check == "versions.env.devices"]
    assert found.status.value == expected


#: What is not known of the host -> what is said in place of a pass.
UNTOLD = [
    ("CUDA_VISIBLE_DEVICES=0", {}, "devices", "CUDA_VISIBLE_DEVICES: the host's GPUs are"),
    ("NCCL_IB_HCA=mlx5_0", {}, "devices", "NCCL_IB_HCA: the host's adapters are"),
    ("NCCL_SOCKET_IFNAME=eth0\nGLOO_SOCKET_IFNAME=eth0", {}, "devices",
     "NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME: the host's interfaces are"),
    ("ASCEND_RT_VISIBLE_DEVICES=0", {}, "devices", "ASCEND_RT_VISIBLE_DEVICES: the host's acc"),
    ("HIP_VISIBLE_DEVICES=0", {"accelerators": Missing("no-tool", "no rocm-smi")}, "devices",
     "HIP_VISIBLE_DEVICES: the host's accelerators are not known: no rocm-smi"),
    ("RANK_TABLE_FILE=/x.json", {}, "files", "RANK_TABLE_FILE: the host's files are not known"),
    ("OMP_NUM_THREADS=8", {"cpu": NOT_IN_INPUT}, "threads", "OMP_NUM_THREADS: the host's CPUs"),
    ("NCCL_IB_DISABLE=1", {}, "harmful", "NCCL_IB_DISABLE: the host's RDMA adapters are"),
    ("NCCL_RAS_ENABLE=1", {}, "early", "NCCL_RAS_ENABLE: the version of NCCL is not known"),
    ("PYTORCH_CUDA_ALLOC_CONF=backend:native", {}, "renamed",
     "PYTORCH_CUDA_ALLOC_CONF: the version of torch is not known"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "parts", "check", "reason"), UNTOLD)
def test_what_is_not_known_does_not_pass(
    text: str, parts: dict[str, Any], check: str, reason: str
) -> None:
    one = host(text, EnvTargets(), **parts)
    assert odd(one) == []
    assert [said[: len(reason)] for name, said in skipped(one) if name == check] == [reason]


@pytest.mark.parametrize("text", ["OMP_NUM_THREADS=1", "NCCL_IB_HCA=^mlx5_0", "NCCL_IB_HCA="])
def test_what_needs_no_host_is_judged_without(text: str) -> None:
    assert skipped(host(text, EnvTargets(), cpu=NOT_IN_INPUT)) == []


def test_a_site_says_what_is_meant() -> None:
    meant = apply(CHECKS, [parse("versions.env.harmful=[NCCL_P2P_DISABLE, NCCL_ALGO]")])
    found = judge(host("NCCL_P2P_DISABLE=1\nNCCL_ALGO=Ring\nNCCL_SHM_DISABLE=1"), meant)
    assert [one.subject for one in found if one.status is Status.WARN] == ["NCCL_SHM_DISABLE"]


def test_advice_names_the_variable_and_a_placeholder_is_refused() -> None:
    (found,) = odd(host("NCCL_P2P_DISABLE=1"))
    assert "needed here: --set versions.env.harmful='[NCCL_P2P_DISABLE]'" in found.fix
    with pytest.raises(UsageError, match="NAME stands for a name"):
        apply(CHECKS, [parse("versions.env.harmful=[NAME]")])


def test_what_is_meant_and_not_set_is_said() -> None:
    meant = apply(CHECKS, [parse("versions.env.harmful=[NCCL_ALGO]")])
    found = {one.check: one.measured for one in judge(host("NCCL_DEBUG=WARN"), meant)}
    assert found["versions.env.harmful"] == "1 set; meant so and not set: NCCL_ALGO"


def test_what_could_not_be_read_is_no_pass() -> None:
    one = replace(host(""), environment=Missing("denied", "pid 7: no"))
    assert {each.status for each in judge(one, CHECKS)} == {Status.ERROR}


@pytest.mark.parametrize(
    "recipe", table().recipes, ids=lambda one: f"{one.check} {'+'.join(one.set)}"
)
def test_a_recipe_speaks_of_known_names_and_its_patterns_are_patterns(recipe: Recipe) -> None:
    for name, pattern in recipe.set.items():
        re.compile(pattern)
        assert family_of(name) is not None
    assert f"versions.env.{recipe.check}" in {one.id for one in CHECKS}


def test_each_row_stands_once_and_belongs_to_a_family() -> None:
    names = [one.name for one in table().variables]
    assert len(names) == len(set(names))
    singles = {"COMBINED_ENABLE", "CPU_AFFINITY_CONF"}
    assert {name for name in names if family_of(name) is None} <= singles
    for row in table().variables:
        re.compile(row.like)
        assert row.does or row.successor, row.name
    for family in table().families:
        assert family.source
        assert family.unknown in ("all", "near")


def test_no_regular_expression_is_told() -> None:
    for row in table().variables:
        words = row.told or row.like.replace("|", " or ")
        assert not set(words) & set("[](){}*+\\^?"), row.name
