"""`env`, `printenv`, `export -p`: the variables that training feels, and never a secret."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.errors import ParseError
from preflight.facts.stack import EnvVar
from preflight.probes.spec import probe

_PROBE = "env"

#: What the names of training's variables begin with: NCCL and its plugins, CUDA, PyTorch, OpenMP,
#: MPI, UCX, libfabric, launchers, and those of other vendors' accelerators.
FAMILIES = (
    "NCCL_", "TORCH_", "TORCHELASTIC_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "PYTORCH_", "CUDA_",
    "CUBLAS_", "CUBLASLT_", "CUDNN_", "NVIDIA_", "NVTE_", "NVSHMEM_", "OMP_", "KMP_", "MKL_",
    "GOMP_", "OPENBLAS_", "UCX_", "UCC_", "FI_", "OMPI_", "PMIX_", "I_MPI_", "MPICH_", "SHARP_",
    "GLOO_", "HCCL_", "ASCEND_", "ACL_", "HSA_", "ROCR_", "HIP_", "RCCL_", "MIOPEN_", "DEEPSPEED_",
    "DS_", "VLLM_", "SGLANG_", "TRITON_", "XLA_", "PYTHON", "TRANSFORMERS_", "FLASH_ATTENTION_",
    "ACCELERATE_", "IBV_", "MLX5_", "RDMAV_", "EFA_",
)  # fmt: skip
NAMES = frozenset(
    {
        "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK",
        "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "TOKENIZERS_PARALLELISM",
    }
)  # fmt: skip
#: A variable whose name has such a word holds what opens a door.
_SECRET = re.compile(
    r"(?:^|_)(?:[A-Z]*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL)|PASS|PWD|AUTH)S?(?=_|$)"
)
#: A user and a password in an address.
_LOGIN = re.compile(r"(://)[^\s/@]{0,256}@")

_LINE = re.compile(
    r"[ \t]*(?:(?:export|declare -x|set -gx|setenv)[ \t]+)?([A-Za-z_]\w{0,120})=(.*)", re.ASCII
)
_LONGEST = 4096


def variables(
    lines: Sequence[str], *, of: str, probe: str, first_line: int = 1
) -> tuple[EnvVar, ...]:
    """The variables among the lines that training feels, the last of each name; `first_line` is
    the number of the first of them."""
    found: dict[str, EnvVar] = {}
    for number, line in enumerate(lines, first_line):
        match = _LINE.fullmatch(line)
        if match and is_felt(match[1]):
            value = _LOGIN.sub(r"\1***@", _unquoted(match[2].strip())[:_LONGEST])
            found[match[1]] = EnvVar(match[1], value, of, number, probe)
    return tuple(found.values())


def is_felt(name: str) -> bool:
    """Whether training feels this variable, and it is no secret."""
    return name in NAMES or (name.startswith(FAMILIES) and not _SECRET.search(name))


def _unquoted(value: str) -> str:
    """Without the quotes of `export -p`."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


@probe(_PROBE, ["env"], timeout_s=10)
def env(text: str) -> tuple[EnvVar, ...]:
    """`NAME=value` lines; those that training does not feel are left out."""
    lines = text.split("\n")
    if not any(_LINE.fullmatch(line) for line in lines):
        raise ParseError("expected lines such as `NCCL_DEBUG=INFO`", 1)
    return variables(lines, of="shell", probe=_PROBE)
