"""`python3 -m sglang.check_env`: `key: value` lines, versions of packages among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from preflight.errors import ParseError
from preflight.facts.setup import Package
from preflight.facts.stack import EnvReport
from preflight.model import Known, Missing
from preflight.probes.env_reports.told import (
    Found,
    first_of_each,
    flag,
    of_build,
    of_each_gpu,
    package_name,
    report,
    version,
    words,
)
from preflight.probes.spec import probe

_PROBE = "sglang-env"

_KEY = re.compile(r"([A-Za-z][\w .-]{0,60}?):{1,2}(?:[ \t]+(.*)|)", re.ASCII)
_GPU = re.compile(r"GPU (\d{1,3}(?:,\d{1,3}){0,255})(?: (Compute Capability))?: (.+)")
_RELEASES = (re.compile(r"\bV(\d+(?:\.\d+){1,3})"), re.compile(r"\brelease (\d+\.\d+)"))
#: Above the matrix of `nvidia-smi topo -m` and its legend, in which nothing is a package.
_TOPOLOGY = re.compile(r"[\w ]{1,40}Topology: ?")
_PACKAGE = re.compile(r"\d[\w.+!-]{0,80}", re.ASCII)


def _toolkit(text: str) -> Known[str]:
    """`Cuda compilation tools, release 12.9, V12.9.86`."""
    found = next((match for shape in _RELEASES if (match := shape.search(text))), None)
    return found[1] if found else version(text)


def _limit(text: str) -> Known[int]:
    said = text.strip()
    return int(said) if re.fullmatch(r"[0-9]{1,18}", said) else Missing("unreadable", said[:60])


_FIELDS: dict[str, tuple[str, Callable[[str], Known[str] | Known[bool] | Known[int]]]] = {
    "PyTorch": ("torch", version),
    "CUDA available": ("cuda_available", flag),
    "NVCC": ("toolkit", _toolkit),
    "CUDA Driver Version": ("driver", version),
    "Python": ("python", version),
    "Hypervisor vendor": ("hypervisor", words),
    "ulimit soft": ("open_files", _limit),
}


@probe(_PROBE, ["python3", "-m", "sglang.check_env"], timeout_s=60)
def sglang_env(text: str) -> EnvReport:
    """The versions, and a name and a compute capability for each GPU."""
    lines = [line.strip() for line in text.split("\n")]
    found: Found = {}
    for number, line in enumerate(lines, 1):
        match = _KEY.fullmatch(line)
        field, read = _FIELDS.get(match[1], ("", words)) if match else ("", words)
        if match and field and field not in found:
            found[field] = (read(match[2] or ""), number)
    if "torch" not in found and "python" not in found:
        raise ParseError("expected lines such as `PyTorch: 2.5.1+cu124`", 1)
    torch, line_of_torch = found.get("torch", ("", 0))
    found = {**of_build(torch, line_of_torch), **_gpus(lines), **found}
    return report(_PROBE, found, packages=first_of_each(_packages(lines)))


def _gpus(lines: Sequence[str]) -> Found:
    """`GPU 0,1: NVIDIA H20`: each kind of GPU has a line that lists which are of it."""
    told: dict[str, dict[int, str]] = {}
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if match := _GPU.fullmatch(line):
            field = "capabilities" if match[2] else "gpus"
            first.setdefault(field, number)
            each = told.setdefault(field, {})
            each.update((int(index), match[3].strip()) for index in match[1].split(","))
    return {field: (of_each_gpu(each, whole=True), first[field]) for field, each in told.items()}


def _packages(lines: Sequence[str]) -> Iterator[Package]:
    """Lines whose value is a version and whose key is no field; one that is not installed says so
    in words, and is left out."""
    for number, line in enumerate(lines, 1):
        if _TOPOLOGY.fullmatch(line):
            return
        match = _KEY.fullmatch(line)
        if not match or " " in match[1] or not _PACKAGE.fullmatch((match[2] or "").strip()):
            continue
        name = "torch" if match[1] == "PyTorch" else package_name(match[1])
        if match[1] not in _FIELDS or name == "torch":
            yield Package(name, match[2].strip(), number, _PROBE)
