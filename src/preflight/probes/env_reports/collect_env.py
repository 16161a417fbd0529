"""`python -m torch.utils.collect_env`, and the longer copies of it in other projects (vLLM).

The layouts are those of torch/utils/collect_env.py from 0.4 on, and of vllm/collect_env.py, which
since 2025 has headings between rules and blanks before the colon.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.setup import Package
from preflight.facts.stack import EnvReport
from preflight.model import Known, Missing
from preflight.probes.env_reports.told import (
    Found,
    built_with,
    bundled_nccl,
    first_of_each,
    flag,
    kernel,
    name_of_pip,
    of_build,
    of_conda_build,
    of_each_gpu,
    package_name,
    report,
    version,
    words,
)
from preflight.probes.spec import probe
from preflight.probes.stack.env_text import variables
from preflight.probes.system import lscpu

_PROBE = "collect-env"

_KEY = re.compile(r"[ \t]{0,9}([A-Za-z][\w .()/-]{0,60}?)[ \t]{0,60}:(?:[ \t]+(.*)|)")
#: A name may be followed by its UUID, and a GPU by its MIG devices, which are no GPUs.
_GPU = re.compile(r"(?:GPU models and configuration[ \t]*:[ \t]*)?GPU (\d{1,3}): ([^\n(]+)")
_PIP = re.compile(r"\[pip\d?\] ([\w.-]+)(?:==| \()([^\s)]{1,80})\)?", re.ASCII)
_CONDA = re.compile(r"\[conda\] (\S{1,80})[ \t]+(\d\S{0,80})(?:[ \t]+(\S{1,80}))?")
#: The main library tells the version; a system may have its parts alone.
_CUDNN = re.compile(r"libcudnn\.so\.(\d+\.\d+\.\d+)")
_CUDNN_PART = re.compile(r"libcudnn\w*\.so\.(\d+\.\d+\.\d+)")


_FIELDS: dict[str, tuple[str, Callable[[str], Known[str] | Known[bool]]]] = {
    "PyTorch version": ("torch", version),
    "CUDA used to build PyTorch": ("torch_cuda", built_with),
    "ROCM used to build PyTorch": ("torch_hip", built_with),
    "OS": ("os", words),
    "Libc version": ("libc", words),
    "Python version": ("python", version),
    "Python platform": ("kernel", kernel),
    "Is CUDA available": ("cuda_available", flag),
    "CUDA runtime version": ("toolkit", version),
    "Nvidia driver version": ("driver", version),
}


@probe(_PROBE, ["python3", "-m", "torch.utils.collect_env"], timeout_s=60)
def collect_env(text: str) -> EnvReport:
    """`Key: value` lines, then lists; what could not be collected is missing."""
    lines = text.split("\n")
    found = _keys(lines)
    if not found:
        raise ParseError("expected lines such as `PyTorch version: 2.5.1+cu124`", 1)
    packages = first_of_each(_packages(lines))
    told = (_gpus(lines), _cudnn(lines), _cpu(text, lines), _conda_build(lines))
    for part in (*told, bundled_nccl(packages)):
        found = {**part, **found}
    return report(
        _PROBE,
        _without_torch(found),
        packages=packages,
        environment=variables(lines, of="report", probe=_PROBE),
    )


def _keys(lines: Sequence[str]) -> Found:
    found: Found = {}
    for number, line in enumerate(lines, 1):
        match = _KEY.fullmatch(line)
        field, read = _FIELDS.get(match[1], ("", words)) if match else ("", words)
        if match and field and field not in found:
            found[field] = (read(match[2] or ""), number)
    return found


def _without_torch(found: Found) -> Found:
    """Where torch could not be imported, N/A says nothing of what it was built with."""
    torch, line = found.get("torch", ("", 0))
    if isinstance(torch, Missing):
        return {name: told for name, told in found.items() if told[0] != "none"}
    # Copies that leave a line out, and reports of a build without CUDA but for ROCm.
    return {**of_build(torch, line), **found}


def _gpus(lines: Sequence[str]) -> Found:
    """The names in their order; the number before each is the device's."""
    named = [(n, match) for n, line in enumerate(lines, 1) if (match := _GPU.match(line.strip()))]
    if not named:
        return {}
    each = {int(match[1]): match[2].strip() for _, match in named}
    # Behind the list there is the driver's version at least.
    whole = any(line.strip() for line in lines[named[-1][0] :])
    return {"gpus": (of_each_gpu(each, whole=whole), named[0][0])}


def _cudnn(lines: Sequence[str]) -> Found:
    at = next((n for n, line in enumerate(lines) if line.lstrip().startswith("cuDNN version")), -1)
    paths = [lines[at]] if at >= 0 else []
    for line in lines[at + 1 : at + 60] if paths else ():
        if "cudnn" not in line:
            break
        paths.append(line)
    told = "\n".join(paths)
    versions = sorted(set(_CUDNN.findall(told) or _CUDNN_PART.findall(told)))
    if len(versions) > 1:
        several = Missing("unreadable", f"several cuDNN are found: {', '.join(versions[:5])}")
        return {"cudnn": (several, at + 1)}
    return {"cudnn": (versions[0], at + 1)} if versions else {}


def _cpu(text: str, lines: Sequence[str]) -> Found:
    """What lscpu, whose output is within the report, tells."""
    try:
        told = lscpu(text)
    except ParseError:
        return {}
    shown = ("Hypervisor vendor:", "Flags:")
    at = next((n for n, line in enumerate(lines, 1) if line.lstrip().startswith(shown)), 0)
    nodes = tuple(replace(node, probe=_PROBE) for node in told.nodes)
    found: Found = {"nodes": (nodes, nodes[0].line)} if nodes else {}
    known = not isinstance(told.hypervisor, Missing)
    return found | ({"hypervisor": (told.hypervisor, at)} if known else {})


def _conda_build(lines: Sequence[str]) -> Found:
    for number, line in enumerate(lines, 1):
        match = _CONDA.match(line.strip())
        if match and match[1] == "pytorch":
            return of_conda_build(match[3] or "", number)
    return {}


def _packages(lines: Sequence[str]) -> Iterator[Package]:
    """What pip lists comes first: it reads the metadata that Python would import by."""
    shapes = ((_PIP, package_name), (_CONDA, name_of_pip))
    for shape, name in shapes:
        for number, line in enumerate(lines, 1):
            if match := shape.match(line.strip()):
                yield Package(name(match[1]), match[2], number, _PROBE)
