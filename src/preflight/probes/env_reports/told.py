"""The words of a report of an environment turned into values, or into the reason why not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from preflight.facts.setup import Package
from preflight.facts.stack import EnvReport
from preflight.model import Known, Missing

#: A field of EnvReport -> its value and the line that shows it.
Found = dict[str, tuple[Any, int]]

_VERSION = re.compile(r"v?([0-9][\w.+!-]{0,80})", re.ASCII)
#: What stands in place of a value, in small letters.
_NO_VALUE = ("", "n/a", "na", "could not collect", "no cuda", "none", "not available",
             "not installed", "module not found", "unknown", "not found", "not set")  # fmt: skip
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
#: The platform that a build of torch is for, in the local part of its version: cu124, rocm6.2, cpu.
_CUDA = re.compile(r"\+(?:[\w.]*\.)?cu(\d{1,2})(\d)(?![\da-z])")
_ROCM = re.compile(r"\+(?:[\w.]*\.)?rocm(\d+(?:\.\d+){0,3})(?![\da-z])")
_CPU = re.compile(r"\+(?:[\w.]*\.)?cpu(?![\da-z])")
#: conda's build of pytorch: py3.9_cuda12.1_cudnn8.9.2_0, cuda126_mkl_py312_h0_300.
_CONDA_CUDA = re.compile(r"(?:^|_)cuda(\d{1,2})\.?(\d{1,2}?)(?:\.\d+)*(?=_|py|$)")
_CONDA_CPU = re.compile(r"(?:^|_)cpu(?=_|$)")
#: uname's machine and what follows it are Python's: Linux-6.8.0-47-generic-x86_64-with-glibc2.35.
_PLATFORM = re.compile(
    r"Linux-(\S{1,120}?)(?:-(?:x86_64|aarch64|arm64|ppc64le|s390x|riscv64|i\d86)){1,2}(?:-with\S*)?"
)
#: A package of conda -> what pip calls it.
_NAME_OF_PIP = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch"}


def words(text: str) -> Known[str]:
    """Any text that is a value."""
    said = text.strip()
    if said.lower() in _NO_VALUE:
        return Missing("not-in-input", f"the report says: {said or 'nothing'}")
    return said


def version(text: str) -> Known[str]:
    """The version that the text begins with: of `version 3.25.0` and `3.10.12 (main, ...)` too."""
    said = words(text)
    if isinstance(said, Missing):
        return said
    found = _VERSION.match(said.removeprefix("version "))
    return found[1] if found else Missing("unreadable", f"'{said[:60]}' is no version")


def built_with(text: str) -> Known[str]:
    """The platform that torch was built with; "none" where it was built without."""
    # torch.version.cuda is None for a build without CUDA, which collect_env turns into "Could not
    # collect" since 1.0; N/A stands where the build is for ROCm.
    said = text.strip().lower()
    return "none" if said in ("none", "n/a", "could not collect") else version(text)


def flag(text: str) -> Known[bool]:
    said = words(text)
    if isinstance(said, Missing):
        return said
    return _FLAGS.get(said.lower(), Missing("unreadable", f"'{said[:60]}' is no yes or no"))


def kernel(text: str) -> Known[str]:
    """The release of the kernel in what Python calls its platform."""
    said = words(text)
    found = _PLATFORM.fullmatch(said.split()[0]) if isinstance(said, str) else None
    return found[1] if found else Missing("not-in-input", "the report names no Linux kernel")


def of_build(torch: Known[str], line: int) -> Found:
    """What the local part of torch's version tells of the platform that it was built for."""
    told = torch if isinstance(torch, str) else ""
    if match := _CUDA.search(told):
        return {"torch_cuda": (f"{match[1]}.{match[2]}", line), "torch_hip": ("none", line)}
    if match := _ROCM.search(told):
        return {"torch_cuda": ("none", line), "torch_hip": (match[1], line)}
    if _CPU.search(told):
        return {"torch_cuda": ("none", line), "torch_hip": ("none", line)}
    return {}


def of_conda_build(build: str, line: int) -> Found:
    """The same from conda's name of a build of pytorch."""
    if match := _CONDA_CUDA.search(build):
        return {"torch_cuda": (f"{match[1]}.{match[2]}", line)}
    return {"torch_cuda": ("none", line)} if _CONDA_CPU.search(build) else {}


def of_each_gpu(told: Mapping[int, str], *, whole: bool) -> Known[tuple[str, ...]]:
    """What is told of each GPU by its number; `whole`: whether the list goes on to its end."""
    if not whole or set(told) != set(range(len(told))):
        return Missing("unreadable", "the list of GPUs is cut short in the report")
    return tuple(told[number] for number in sorted(told))


def package_name(name: str) -> str:
    """As pip writes it, see PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of_pip(name: str) -> str:
    """The same for a package of conda, which has a name of its own for torch."""
    plain = package_name(name)
    return _NAME_OF_PIP.get(plain, plain)


def first_of_each(packages: Iterable[Package]) -> tuple[Package, ...]:
    """One of each name: the first, but one that tells its version rather than one that does not."""
    found: dict[str, Package] = {}
    for one in packages:
        known = found.get(one.name)
        if known is None or (isinstance(known.version, Missing) and isinstance(one.version, str)):
            found[one.name] = one
    return tuple(found.values())


def bundled_nccl(packages: Iterable[Package]) -> Found:
    """NCCL as pip installed it for torch, or conda (`nccl`); where there are two, nobody knows
    which is taken."""
    told = [one for one in packages if one.name == "nccl" or one.name.startswith("nvidia-nccl-cu")]
    return {"nccl": (told[0].version, told[0].line)} if len(told) == 1 else {}


def report(probe: str, found: Mapping[str, tuple[Any, int]], **parts: Any) -> EnvReport:
    """The report that holds these fields."""
    lines = {name: line for name, (_, line) in found.items()}
    values = {name: value for name, (value, _) in found.items()}
    first = min([*lines.values(), *(one.line for one in parts.get("packages", ()))], default=1)
    return EnvReport(**values, **parts, lines=lines, line=first, probe=probe)
