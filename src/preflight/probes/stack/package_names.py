"""Which Python packages training depends on."""

from __future__ import annotations

#: Those that training depends on, as pip writes them; what ends with * is the beginning of a name.
NAMES = (
    "torch", "torchvision", "torchaudio", "torchdata", "pytorch-triton", "triton", "nvidia-*",
    "cuda-*", "flash-attn", "flash-attn-3", "transformer-engine*", "apex", "deepspeed",
    "megatron-core", "nemo-toolkit", "xformers", "bitsandbytes", "torchao", "torchtitan",
    "liger-kernel", "causal-conv1d", "mamba-ssm", "grouped-gemm", "deep-ep", "deep-gemm",
    "accelerate", "transformers", "datasets", "tokenizers", "peft", "trl", "safetensors", "timm",
    "lightning", "pytorch-lightning", "colossalai", "fairscale", "horovod", "ray", "vllm",
    "sglang", "jax", "jaxlib", "tensorflow", "mosaicml*", "webdataset", "pyarrow", "numpy",
    "scipy", "mpi4py", "cupy-*", "dask-cuda", "torchtext", "pytorch", "flashinfer-python",
    "torch-tensorrt", "onnxruntime-gpu",
)  # fmt: skip

_WHOLE = frozenset(name for name in NAMES if not name.endswith("*"))
_BEGINNINGS = tuple(name[:-1] for name in NAMES if name.endswith("*"))


def matters(name: str) -> bool:
    """Whether a package is one of those that training depends on, or Python itself."""
    return name in _WHOLE or name == "python" or name.startswith(_BEGINNINGS)
