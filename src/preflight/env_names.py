"""Which variables of the environment may be known: of a name that we know the value, of a family's
other names that they are set, of all else nothing.

The one place that decides it, for what is asked of hosts, pasted, judged, locked and stored.
"""

from __future__ import annotations

import re
from functools import cache

from preflight.env_table import known_names, table

#: The families that are told, by the beginning of their names. Others are nobody's business here.
FAMILIES = (
    "NCCL", "TORCH", "TORCHINDUCTOR", "TORCHELASTIC", "TORCHDYNAMO", "PYTORCH", "CUDA", "CUBLAS",
    "CUBLASLT", "CUDNN", "NVTE", "NVIDIA", "NVSHMEM", "OMP", "KMP", "GOMP", "MKL", "OPENBLAS",
    "NUMEXPR", "GLOO", "UCX", "UCC", "FI", "OFI", "RDMAV", "IBV", "SHARP", "MELLANOX", "OMPI_MCA",
    "HCCL", "ASCEND", "ACL", "NPU", "HSA", "ROCR", "HIP", "RCCL", "ROCM", "GPU", "AMD", "MIOPEN",
    "XLA", "TRITON", "DEEPSPEED", "DS", "ACCELERATE", "MALLOC", "TASK_QUEUE",
)  # fmt: skip
#: Names of no family.
SINGLE = (
    "LD_LIBRARY_PATH", "LD_PRELOAD", "TOKENIZERS_PARALLELISM", "PYTHONPATH", "PYTHONHASHSEED",
    "PYTHONFAULTHANDLER", "PYTHONNOUSERSITE", "COMBINED_ENABLE", "CPU_AFFINITY_CONF",
)  # fmt: skip
#: Names of files that are read.
FILES = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_CONF_FILE", "RANK_TABLE_FILE")
#: Extended regular expressions, for awk as well; letters are large when they are held against it.
FELT = rf"^(({'|'.join(FAMILIES)})_[A-Za-z0-9_]+|{'|'.join(SINGLE)})$"
SECRET = (
    r"(^|_)[A-Z]*(TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?(_|$)"
    r"|(^|_)(PASS|PWD|PW|AUTH)S?(_|$)"
)
MASK = "***"
#: A user and a password in an address.
_LOGIN = re.compile(r"(://)[^\s/@]{0,256}@")
_felt = re.compile(FELT)
_secret = re.compile(SECRET)


@cache
def known() -> frozenset[str]:
    """The names whose values are settings: those of the table, those that were never read."""
    never = {name for recipe in table().recipes for name in recipe.set}
    return known_names() | never | set(SINGLE)


def is_felt(name: str) -> bool:
    """Whether that it is set may be told."""
    return name in known() or bool(_felt.match(name) and not _secret.search(name.upper()))


def shown(name: str, value: str) -> str:
    """What may be told of a value: of a name that nobody knows nothing."""
    return _LOGIN.sub(rf"\1{MASK}@", value) if name in known() else MASK
