"""Reports of training libraries: `accelerate env`, `transformers env`, `diffusers-cli env`, and
what PyTorch Lightning asks for in an issue.

The layouts are those that the projects ask for: transformers/commands/env.py,
accelerate/commands/env.py, and Lightning's requirements/collect_env_details.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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
    of_build,
    package_name,
    report,
    version,
)
from preflight.probes.spec import probe

_HF, _LIGHTNING = "hf-env", "lightning-env"

#: - PyTorch version (GPU?): 2.5.1+cu124 (True)
_VERSION = re.compile(
    r"- (?:🤗 )?`?([A-Za-z][\w.-]{0,60})`? version(?: \([^)]{1,30}\))?:[ \t]*(.*)"
)
_TORCH = re.compile(r"(\S+)(?: \((\w{1,20})\))?.*")
_PLATFORM = "- Platform:"
#: A heading of Lightning's report, an entry of it, and a GPU's name below `- GPU:`.
_HEADING = re.compile(r"\* ([\w ]{1,40}):")
_ENTRY = re.compile(r"- ([\w.-]{1,80}):[ \t]*(.*)")
_LIGHTNING_FIELDS = {
    ("CUDA", "available"): ("cuda_available", flag),
    ("CUDA", "version"): ("torch_cuda", built_with),
    ("System", "python"): ("python", version),
    ("System", "release"): ("kernel", version),
}


@probe(_HF, ["accelerate", "env"], timeout_s=60)
def hf_env(text: str) -> EnvReport:
    """`- NAME version: VERSION` lines."""
    lines = [line.strip() for line in text.split("\n")]
    found: Found = {}
    packages: list[Package] = []
    for number, line in enumerate(lines, 1):
        if line.startswith(_PLATFORM):
            found.setdefault("kernel", (kernel(line.removeprefix(_PLATFORM)), number))
        if not (match := _VERSION.fullmatch(line)):
            continue
        name, told = package_name(match[1]), version(match[2])
        if name == "python":
            found.setdefault("python", (told, number))
        elif name == "pytorch":
            found = {**_of_torch(match[2], number), **found}
        if name != "python" and isinstance(told, str):
            packages.append(Package("torch" if name == "pytorch" else name, told, number, _HF))
    if not found and not packages:
        raise ParseError("expected lines such as `- PyTorch version (GPU?): 2.5.1 (True)`", 1)
    return report(_HF, found, packages=first_of_each(packages))


def _of_torch(text: str, line: int) -> Found:
    """The version of torch, and in brackets whether it finds a GPU: True, or CUDA since 2025."""
    match = _TORCH.fullmatch(text.strip())
    torch, told = (version(match[1]), match[2] or "") if match else (version(text), "")
    found: Found = {"torch": (torch, line), **of_build(torch, line)}
    available: Known[bool] = True if told == "CUDA" else flag(told)
    return (
        found if isinstance(available, Missing) else {**found, "cuda_available": (available, line)}
    )


@probe(_LIGHTNING, ["python3", "collect_env_details.py"], timeout_s=60)
def lightning_env(text: str) -> EnvReport:
    """Headings with entries below them; names of GPUs, versions of packages."""
    found: Found = {}
    packages: list[Package] = []
    gpus: list[tuple[str, int]] = []
    for heading, key, value, line in _entries(text.split("\n")):
        field, read = _LIGHTNING_FIELDS.get((heading, key), ("", version))
        if field:
            found.setdefault(field, (read(value), line))
        elif heading in ("Packages", "Lightning") and isinstance(version(value), str):
            packages.append(Package(package_name(key), value.strip(), line, _LIGHTNING))
        elif heading == "CUDA" and key == "" and value != "None":
            gpus.append((value, line))
    if not found and not packages:
        raise ParseError("expected headings such as `* CUDA:` and entries below them", 1)
    if gpus:
        found["gpus"] = (tuple(name for name, _ in gpus), gpus[0][1])
    each = first_of_each(packages)
    torch = {one.name: one for one in each}.get("torch")
    if torch:
        found = {**of_build(torch.version, torch.line), **found}
        found["torch"] = (torch.version, torch.line)
    return report(_LIGHTNING, {**bundled_nccl(each), **found}, packages=each)


def _entries(lines: Sequence[str]) -> Iterator[tuple[str, str, str, int]]:
    """Heading, key, value and line; without a key for an entry of a list."""
    heading = ""
    for number, line in enumerate(lines, 1):
        said = line.strip()
        if match := _HEADING.fullmatch(said):
            heading = match[1]
        elif match := _ENTRY.fullmatch(said):
            yield heading, match[1], match[2], number
        elif heading and said.startswith("- "):
            yield heading, "", said[2:].strip(), number
