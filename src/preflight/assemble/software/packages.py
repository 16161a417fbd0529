"""Python packages that training depends on: of the interpreter, and of reports."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from preflight.facts.setup import Package
from preflight.facts.stack import EnvReport
from preflight.facts.stack_pieces import PythonEnv
from preflight.model import NOT_IN_INPUT, Known, Missing

#: What conda calls otherwise than pip.
_CONDA = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-triton": "triton",
          "torchtriton": "triton"}  # fmt: skip
_LOCAL = re.compile(r"\+(?:.*[.])?cu(\d{2,3})(?:[._].*)?", re.ASCII)


class Word(NamedTuple):
    """One word on a piece, and who said it."""

    value: Known[Any]
    probe: str = ""
    line: int = 1


def all_packages(
    python: Known[PythonEnv], reports: Iterable[EnvReport]
) -> Known[tuple[Package, ...]]:
    """One of each name: the interpreter's before a report's, pip's name before conda's."""
    listed = [one for report in reports for one in report.packages]
    if isinstance(python, Missing) and not listed:
        return python
    live = () if isinstance(python, Missing) else python.packages
    found: dict[str, Package] = {}
    for one in (*live, *listed):
        found.setdefault(one.name, one)
    for theirs, ours in _CONDA.items():
        if theirs in found:
            found.setdefault(ours, Package(ours, *_said(found[theirs])))
    return tuple(found.values())


def _said(one: Package) -> tuple[Known[str], int, str]:
    return one.version, one.line, one.probe


def of(packages: Known[tuple[Package, ...]], pattern: str) -> Word:
    """The version of the first package of that name, `*` for what follows."""
    if isinstance(packages, Missing):
        return Word(packages)
    one = next((one for one in packages if fnmatchcase(one.name, pattern)), None)
    return Word(one.version, one.probe, one.line) if one else Word(NOT_IN_INPUT)


def cuda_of(packages: Known[tuple[Package, ...]], stem: str) -> Word:
    """The CUDA in the name of a library's package: nvidia-nccl-cu12 -> 12."""
    if isinstance(packages, Missing):
        return Word(packages)
    one = next((one for one in packages if re.fullmatch(rf"{stem}-cu\d+", one.name)), None)
    return Word(one.name.rpartition("-cu")[2], one.probe, one.line) if one else Word("none")


def bundled(packages: Known[tuple[Package, ...]], pattern: str) -> Word:
    """The same of a library that comes as a package beside torch; "none" where it does not."""
    word = of(packages, pattern)
    return Word("none") if word.value is NOT_IN_INPUT else word


def cuda_in_version(torch: Known[str]) -> Known[str]:
    """The CUDA in the version of a torch: 2.5.1+cu124 -> 12.4, +cpu and +rocm6.2 -> none."""
    if isinstance(torch, Missing):
        return torch
    if match := _LOCAL.search(torch):
        return f"{match[1][:-1]}.{match[1][-1]}"
    return "none" if re.search(r"\+(cpu|rocm|xpu)", torch) else NOT_IN_INPUT


def torch_build(found: dict[str, Any], python: Known[PythonEnv]) -> Known[str]:
    """The torch in the words by which hosts are compared: those of one job have it alike."""
    torch, cuda = found["torch"], found["torch_cuda"]
    if isinstance(torch, Missing):
        absent = isinstance(python, PythonEnv) and torch.kind == "not-applicable"
        return "no torch" if absent else torch
    if isinstance(cuda, Missing):
        return cuda
    parts = re.findall(r"\d+", torch)[:2]
    built = "no CUDA" if cuda == "none" else "CUDA " + ".".join(re.findall(r"\d+", cuda)[:2])
    return f"{'.'.join(parts)}, {built}"
