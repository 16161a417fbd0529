"""Python packages that the interpreter of the user's choice would import."""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.setup import Package
from preflight.model import Missing
from preflight.probes.spec import probe

_PROBE = "packages"

#: Those that training depends on, as pip writes them; what ends with * is the beginning of a name.
_NAMES = (
    "torch", "torchvision", "torchaudio", "torchdata", "pytorch-triton", "triton", "nvidia-*",
    "cuda-*", "flash-attn", "flash-attn-3", "transformer-engine*", "apex", "deepspeed",
    "megatron-core", "nemo-toolkit", "xformers", "bitsandbytes", "torchao", "torchtitan",
    "liger-kernel", "causal-conv1d", "mamba-ssm", "grouped-gemm", "deep-ep", "deep-gemm",
    "accelerate", "transformers", "datasets", "tokenizers", "peft", "trl", "safetensors", "timm",
    "lightning", "pytorch-lightning", "colossalai", "fairscale", "horovod", "ray", "vllm",
    "sglang", "jax", "jaxlib", "tensorflow", "mosaicml*", "webdataset", "pyarrow", "numpy",
    "scipy", "mpi4py", "cupy-*", "dask-cuda",
)  # fmt: skip

# The names of the directories that pip leaves are enough (PEP 376, 427: NAME-VERSION.dist-info):
# no package is imported, whatever the version of Python is. The first on sys.path is what
# would be imported. An entry without a name is the working directory: nothing is taken from there.
_PROGRAM = f"""\
import sys
sys.path[:] = [p for p in sys.path if p]
import os
names = {" ".join(_NAMES)!r}.split()
whole = set(n for n in names if n[-1] != "*")
begins = tuple(n[:-1] for n in names if n[-1] == "*")
def version(path):
    for name in ("METADATA", "PKG-INFO"):
        try:
            with open(os.path.join(path, name), "rb") as file:
                for line in file.read(4096).splitlines():
                    if line.startswith(b"Version:"):
                        return line[8:].decode("ascii", "replace").strip()
        except (OSError, ValueError):
            pass
    return ""
def say(*words):
    print(ascii(" ".join(words))[1:-1])
say("python", ".".join(map(str, sys.version_info[:3])), sys.executable or "")
seen = set()
for place in sys.path:
    try:
        entries = sorted(os.listdir(place))
    except OSError:
        continue
    for entry in entries:
        stem, kind = os.path.splitext(entry)
        if kind not in (".dist-info", ".egg-info"):
            continue
        parts = stem.split("-")
        name = parts[0].lower().replace("_", "-").replace(".", "-")
        if name in seen or not (name in whole or name.startswith(begins)):
            continue
        seen.add(name)
        told = parts[1] if len(parts) > 1 else version(os.path.join(place, entry))
        say("package", name, told)
say("end")
"""

_WHOLE = frozenset(name for name in _NAMES if not name.endswith("*"))
_BEGINNINGS = tuple(name[:-1] for name in _NAMES if name.endswith("*"))


def matters(name: str) -> bool:
    """Whether a package is one of those that training depends on, or Python itself."""
    return name in _WHOLE or name == "python" or name.startswith(_BEGINNINGS)


_PYTHON = re.compile(r"python ([0-9]+\.[0-9]+\.[0-9]+)(?: .*)?")
_PACKAGE = re.compile(r"package ([a-z0-9][\w-]{0,80})(?: (\S{1,80}))?", re.ASCII)


@probe(_PROBE, ["python3", "-c", _PROGRAM], timeout_s=10)
def packages(text: str) -> tuple[Package, ...]:
    """`python VERSION PATH`, then `package NAME VERSION` lines."""
    lines = [line.strip() for line in text.strip().split("\n")]
    # A site's own start-up files may print before and after us.
    if "end" not in lines:
        raise ParseError("the list of packages is cut short: no closing `end`", len(lines))
    found: dict[str, Package] = {}
    for number, line in enumerate(lines, 1):
        if match := _PYTHON.fullmatch(line):
            found.setdefault("python", Package("python", match[1], number, _PROBE))
        elif match := _PACKAGE.fullmatch(line):
            told = match[2] or Missing("unreadable", "its metadata tells no version")
            found.setdefault(match[1], Package(match[1], told, number, _PROBE))
    if "python" not in found:
        raise ParseError("expected a line `python VERSION PATH`", 1)
    return tuple(found.values())
