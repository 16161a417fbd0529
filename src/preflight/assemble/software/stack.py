"""The software stack of a host: of each piece the best word, live questions before reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from preflight.assemble.software.gpudirect import gpudirect, imex
from preflight.assemble.software.packages import (
    Word,
    all_packages,
    bundled,
    cuda_in_version,
    cuda_of,
    torch_build,
)
from preflight.assemble.software.packages import of as package
from preflight.expect.models import Model, model_of
from preflight.facts.gpu import Gpu
from preflight.facts.host import Host
from preflight.facts.setup import Package, Software
from preflight.facts.stack import EnvReport, EnvVar
from preflight.facts.stack_pieces import PythonEnv, Source, Stack, StackGpu, TorchBuild
from preflight.model import NOT_IN_INPUT, Known, Missing

#: Words on a piece that are none on its version.
_NO_VERSIONS = ("torch_archs", "torch_nccl", "torch_whole", "deepspeed_built", "cuda_found")
_FOREIGN = re.compile(r"(?:AMD|Radeon|Instinct|Intel|gfx)\b", re.IGNORECASE)
_VIRTUAL = re.compile(r"(?:GRID|NVIDIA) ([A-Z]{1,2}\d{1,3}S?)[DXL]?-(?:\d-)?\d{1,3}[ABCQ](?:ME)?")
_NUMBER = re.compile(r"v?\d", re.ASCII)
_COMPAT = re.compile(r"(?:^|[:/])compat(?:[:/]|$)")


def stack_of(host: Host, python: Known[PythonEnv]) -> Stack:
    """All pieces; a piece that nobody told keeps the reason why."""
    reports, listed = host.env_reports, host.software
    packages = all_packages(python, reports)
    build = python if isinstance(python, Missing) else python.torch
    words = {
        **_driver_words(host),
        **_torch_words(build, reports, packages),
        **_library_words(listed, packages, build),
        **_report_words(reports),
    }
    chosen: dict[str, Word] = {
        name: _best(said if name in _NO_VERSIONS else map(_as_version, said))
        for name, said in words.items()
    }
    found: dict[str, Any] = {name: word.value for name, word in chosen.items()}
    loaded, torch = _nccl_loaded(found, reports), found["torch"]
    return Stack(
        **found,
        nccl_loaded=loaded,
        nccl_of_torch=torch if isinstance(torch, Missing) else loaded,
        gpus=_gpus(host),
        gpudirect=gpudirect(host),
        imex=imex(host),
        packages=packages,
        torch_build=torch_build(found, python),
        python_named=isinstance(python, PythonEnv) and python.named,
        twice=() if isinstance(python, Missing) else python.twice,
        pins=() if isinstance(python, Missing) else python.pins,
        environment=_variables(host),
        told_by={name: Source(one.probe, one.line) for name, one in chosen.items() if one.probe},
    )


def _as_version(word: Word) -> Word:
    """A word that begins with no number is no version, whoever said it."""
    if not isinstance(word.value, str) or word.value == "none" or _NUMBER.match(word.value):
        return word
    text = f"{word.value[:60]!r} is no version"
    return word._replace(value=Missing("unreadable", text))


def _best(words: Iterable[Word]) -> Word:
    """The first that is known; else the first reason that says more than "not in the input"."""
    said = list(words)
    known = [word for word in said if not isinstance(word.value, Missing)]
    told = [word for word in said if word.value is not NOT_IN_INPUT]
    return (known or told or [Word(NOT_IN_INPUT)])[0]


def _of_reports(reports: Iterable[EnvReport], name: str) -> Iterator[Word]:
    for report in reports:
        line = report.lines.get(name, report.line)
        yield Word(getattr(report, name), report.probe, line)


def _driver_words(host: Host) -> dict[str, list[Word]]:
    """nvidia-smi's word, the loaded module's, a report's."""
    smi, module, reports = host.driver, host.driver_module, host.env_reports
    version = [Word(smi)] if isinstance(smi, Missing) else [Word(smi.version, smi.probe, smi.line)]
    cuda = [Word(smi)] if isinstance(smi, Missing) else [Word(smi.cuda, smi.probe, smi.line)]
    if not isinstance(module, Missing):
        version.append(Word(module.version, module.probe, module.line))
    return {
        "driver": [*version, *_of_reports(reports, "driver")],
        "driver_cuda": cuda,
        "compat_driver": [_software(host.software, "compat-driver")],
        "compat_offered": list(_compat(reports)),
        "toolkit": [_software(host.software, "nvcc", NOT_IN_INPUT),
                    *_of_reports(reports, "toolkit"), _software(host.software, "cuda-toolkit")],
    }  # fmt: skip


def _compat(reports: Iterable[EnvReport]) -> Iterator[Word]:
    """NVIDIA's images name the driver of their package, beside the path that leads to it."""
    for report in reports:
        told = {one.name: one for one in report.environment}
        path, version = told.get("LD_LIBRARY_PATH"), told.get("CUDA_DRIVER_VERSION")
        if path and version and _COMPAT.search(path.value):
            yield Word(version.value, version.probe, version.line)


def _software(listed: Known[tuple[Software, ...]], name: str, absent: Known[str] = "none") -> Word:
    """What is installed; `absent` where the list is there and has it not."""
    if isinstance(listed, Missing):
        return Word(listed)
    one = next((one for one in listed if one.name == name), None)
    return Word(one.version, one.probe, one.line) if one else Word(absent)


def _torch_words(
    build: Known[TorchBuild], reports: tuple[EnvReport, ...], packages: Known[tuple[Package, ...]]
) -> dict[str, list[Word]]:
    listed = package(packages, "torch")
    version = [*_field(build, "version"), *_of_reports(reports, "torch"), listed]
    known = _best(version).value
    # Of a torch that is there: its version tells its CUDA, else the runtime beside it.
    beside = [Word(cuda_in_version(known), listed.probe, listed.line),
              package(packages, "nvidia-cuda-runtime*")]  # fmt: skip
    beside = [] if isinstance(known, Missing) else beside
    return {
        "torch": version,
        "torch_cuda": [*_field(build, "cuda"), *_of_reports(reports, "torch_cuda"), *beside],
        "torch_hip": [*_field(build, "hip"), *_of_reports(reports, "torch_hip")],
        "torch_archs": list(_of_reports(reports, "torch_archs")),
        "torch_nccl": list(_field(build, "nccl")),
        "torch_whole": list(_field(build, "whole")),
    }  # fmt: skip


def _field(build: Known[TorchBuild], name: str) -> Iterator[Word]:
    if isinstance(build, Missing):
        yield Word(build)
    else:
        yield Word(getattr(build, name), build.probe, build.line)


def _library_words(
    listed: Known[tuple[Software, ...]], packages: Known[tuple[Package, ...]],
    build: Known[TorchBuild],
) -> dict[str, list[Word]]:  # fmt: skip
    names = {"nccl_system": "nccl", "nccl_path": "nccl-path", "nccl_preload": "nccl-preload"}
    found = {field: [_software(listed, name)] for field, name in names.items()}
    own, beside = list(_field(build, "nccl_version")), bundled(packages, "nvidia-nccl-cu*")
    found["nccl_bundled"] = own if beside.value == "none" and _tells(own) else [beside]
    found["nccl_cuda"] = [cuda_of(packages, "nvidia-nccl")]
    cudnn = bundled(packages, "nvidia-cudnn-cu*")
    # Another first number has names of its own (libcudnn.so.8): torch's libraries never load it.
    first = cudnn.value.partition(".")[0] if isinstance(cudnn.value, str) else ""
    found |= {"cudnn_bundled": [cudnn], "cudnn_path": [_software(listed, f"cudnn-{first}-path")]}
    return found


def _tells(words: Iterable[Word]) -> bool:
    return any(isinstance(word.value, str) for word in words)


def _report_words(reports: tuple[EnvReport, ...]) -> dict[str, list[Word]]:
    names = ("deepspeed_torch", "deepspeed_cuda")
    found = {name: list(_of_reports(reports, name)) for name in names}
    with_ops = [report for report in reports if report.deepspeed_ops]
    found["deepspeed_built"] = [
        Word(any(op.installed is True for op in report.deepspeed_ops), report.probe, report.line)
        for report in with_ops
    ]
    # "No CUDA runtime is found" is the stronger word: it is torch's own reason.
    found["cuda_found"] = [
        *(word for word in _of_reports(reports, "cuda_runtime_found") if word.value is False),
        *_of_reports(reports, "cuda_available"),
    ]
    return found


def _variables(host: Host) -> tuple[EnvVar, ...]:
    """Those of the host itself, where they are asked; those of reports."""
    own = () if isinstance(host.environment, Missing) else host.environment
    return own or tuple(one for report in host.env_reports for one in report.environment)


def _nccl_loaded(found: dict[str, Any], reports: tuple[EnvReport, ...]) -> Known[str]:
    """What a process of this Python would load (ld.so(8)): LD_PRELOAD; where the library's DT_RPATH
    leads, which the wheels of pytorch.org have; LD_LIBRARY_PATH; DT_RUNPATH; ldconfig's."""
    told = _best(_of_reports(reports, "nccl")).value
    own, how = found["nccl_bundled"], found["torch_nccl"]
    if how == "static":
        return Missing("not-applicable", "NCCL is inside torch's own library")
    if isinstance(own, Missing) and own is not NOT_IN_INPUT:
        return own
    first, path = found["nccl_preload"], found["nccl_path"]
    untold = isinstance(how, Missing) and how is not NOT_IN_INPUT
    if untold and first == "none" and path not in ("none", own, NOT_IN_INPUT):
        return Missing("unreadable", how.text)  # it or its own may be the one
    inside = (own,) if how != "loader" and isinstance(own, str) else ()
    by_path = (path, *inside) if how == "runpath" else (*inside, path)
    order = (first, told, *by_path, found["nccl_system"])
    return next(
        (one for one in order if one not in ("none", NOT_IN_INPUT) and not _left_out(one)),
        Missing("not-applicable", "no NCCL is known here"),
    )


def _left_out(one: Known[str]) -> bool:
    """A file that LD_PRELOAD names and that is not there: the loader goes on without it."""
    return isinstance(one, Missing) and one.kind == "not-applicable"


def _gpus(host: Host) -> Known[tuple[StackGpu, ...]]:
    if not isinstance(host.gpus, Missing):
        return tuple(_gpu(gpu) for gpu in host.gpus)
    told = [report for report in host.env_reports if not isinstance(report.gpus, Missing)]
    if not told:
        return host.gpus
    products = told[0].gpus if not isinstance(told[0].gpus, Missing) else ()
    if products and all(map(_FOREIGN.match, products)):
        return Missing("not-applicable", f"no NVIDIA GPU: the report tells of {products[0]}")
    known = () if isinstance(told[0].capabilities, Missing) else told[0].capabilities
    return tuple(
        _designed(f"gpu{at}", product, known[at] if at < len(known) else NOT_IN_INPUT,
                  told[0].probe, told[0].lines.get("gpus", told[0].line))
        for at, product in enumerate(products)
    )  # fmt: skip


def _gpu(gpu: Gpu) -> StackGpu:
    """One that does not tell its model has a fault of its own, which is judged with the GPUs."""
    product = gpu.product
    if isinstance(product, Missing):
        product = Missing("not-applicable", f"its model is not known: {product.text}")
    return _designed(gpu.name, product, NOT_IN_INPUT, gpu.probe, gpu.line)


def _card_of_virtual(product: str) -> Model | None:
    """The card that a virtual GPU is cut from: GRID A100D-80C, NVIDIA L40S-48Q. By it code fits;
    what else the card has is not promised to its parts."""
    match = _VIRTUAL.fullmatch(product)
    names = ("{}", "{}-PCIE-16GB", "{}-PCIE-40GB", "{} PCIe") if match else ()
    found = (model_of(name.format(match[1])) for name in names if match)
    return next((one for one in found if not isinstance(one, Missing)), None)


def _designed(
    name: str, product: Known[str], capability: Known[str], probe: str, line: int
) -> StackGpu:
    design = model_of(product)
    if isinstance(design, Missing) and isinstance(product, str):
        design = _card_of_virtual(product) or design
    if isinstance(design, Missing):
        told = design if isinstance(capability, Missing) else capability
        return StackGpu(name, product, told, design, design, line, probe)
    own = design.capability if isinstance(capability, Missing) else capability
    return StackGpu(name, product, own, design.generation, design.form, line, probe)
