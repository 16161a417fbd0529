"""The software under a training run: what a report of an environment tells, and variables."""

from __future__ import annotations

from msgspec import Struct, field

from preflight.facts.numa import NumaNode
from preflight.facts.setup import Package
from preflight.model import NOT_IN_INPUT, Known


class EnvVar(Struct, frozen=True):
    """A variable of the environment that training feels. The value of one that we do not know
    is `***`: it may be a secret."""

    name: str
    value: str
    of: str = "shell"  # whose environment: shell, pid 4711, /etc/nccl.conf, report
    line: int = 0
    probe: str = ""
    before: str = ""  # what an earlier line of the same text sets it to


class EnvTargets(Struct, frozen=True):
    """What the host has of that which variables name: interfaces, adapters, files."""

    netdevs: Known[tuple[str, ...]] = NOT_IN_INPUT  # ("lo", "eth0")
    adapters: Known[tuple[str, ...]] = NOT_IN_INPUT  # RDMA: ("mlx5_0",)
    link_layers: Known[tuple[str, ...]] = NOT_IN_INPUT  # of their first ports: InfiniBand, Ethernet
    unreadable: Known[tuple[str, ...]] = (
        NOT_IN_INPUT  # variables that name a file that cannot be read
    )


class Environment(Struct, frozen=True):
    """One answer: the variables of a shell or a process and of NCCL's files."""

    variables: tuple[EnvVar, ...]
    targets: EnvTargets = EnvTargets()
    line: int = 1
    probe: str = ""


class DeepSpeedOp(Struct, frozen=True):
    """A row of ds_report's table: an extension that DeepSpeed compiles."""

    name: str  # cpu_adam
    installed: Known[bool]  # built with the wheel
    compatible: Known[bool]  # can be built on this machine
    line: int = 0
    probe: str = ""


class EnvReport(Struct, frozen=True):
    """What a text that describes an environment tells: torch's collect_env and its relatives,
    ds_report, pip freeze, conda list. Versions as written there, without words around them."""

    torch: Known[str] = NOT_IN_INPUT  # 2.5.1+cu124
    torch_cuda: Known[str] = (
        NOT_IN_INPUT  # the CUDA torch was built with, 12.4; "none": built without
    )
    torch_hip: Known[str] = NOT_IN_INPUT
    torch_archs: Known[tuple[str, ...]] = NOT_IN_INPUT  # ("8.0", "9.0+PTX")
    cuda_available: Known[bool] = NOT_IN_INPUT  # whether torch found a GPU
    toolkit: Known[str] = NOT_IN_INPUT  # nvcc's version; collect_env calls it the CUDA runtime
    driver: Known[str] = NOT_IN_INPUT  # 550.90.12
    cudnn: Known[str] = NOT_IN_INPUT  # 8.9.5, of the system
    nccl: Known[str] = NOT_IN_INPUT
    gpus: Known[tuple[str, ...]] = NOT_IN_INPUT  # product names, one for each GPU
    capabilities: Known[tuple[str, ...]] = NOT_IN_INPUT  # compute capability of each GPU, 9.0
    python: Known[str] = NOT_IN_INPUT
    libc: Known[str] = NOT_IN_INPUT  # glibc-2.35
    os: Known[str] = NOT_IN_INPUT
    kernel: Known[str] = NOT_IN_INPUT
    hypervisor: Known[str] = NOT_IN_INPUT  # KVM; "none"
    nodes: Known[tuple[NumaNode, ...]] = NOT_IN_INPUT  # by lscpu within the report
    open_files: Known[int] = NOT_IN_INPUT  # soft limit
    deepspeed: Known[str] = NOT_IN_INPUT
    deepspeed_torch: Known[str] = NOT_IN_INPUT  # the torch that its wheel was compiled with
    deepspeed_cuda: Known[str] = NOT_IN_INPUT
    deepspeed_ops: tuple[DeepSpeedOp, ...] = ()
    cuda_runtime_found: Known[bool] = NOT_IN_INPUT  # False: "No CUDA runtime is found"
    packages: tuple[Package, ...] = ()
    environment: tuple[EnvVar, ...] = ()
    lines: dict[str, int] = field(default_factory=dict)  # field -> line
    line: int = 1
    probe: str = ""
