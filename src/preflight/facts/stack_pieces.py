"""The software under a training run as one record, whichever question or report told it."""

from __future__ import annotations

from msgspec import Struct, field

from preflight.facts.setup import Package
from preflight.facts.stack import EnvVar
from preflight.model import NOT_IN_INPUT, Known


class TorchBuild(Struct, frozen=True):
    """The torch that the interpreter would import, by its own version.py and its libraries."""

    version: Known[str] = NOT_IN_INPUT  # 2.5.1+cu124
    cuda: Known[str] = NOT_IN_INPUT  # 12.4; "none": built without
    hip: Known[str] = NOT_IN_INPUT
    #: How it comes to its NCCL: wheel (a path in the library leads to its own, which comes before
    #: LD_LIBRARY_PATH), runpath (such a path that comes behind it), loader (LD_LIBRARY_PATH, then
    #: ldconfig), static (inside the library).
    nccl: Known[str] = NOT_IN_INPUT
    path: str = ""
    line: int = 0
    probe: str = ""
    whole: bool = True  # False: its folder holds no version.py
    nccl_version: Known[str] = NOT_IN_INPUT  # of the file that its path leads to (conda's)


class Twice(Struct, frozen=True):
    """A package that is there once more: in a later place of the module path, hidden by the first,
    or in the same place with the metadata of another version."""

    name: str
    version: Known[str]
    place: str = ""
    line: int = 0
    probe: str = ""


class Pin(Struct, frozen=True):
    """What a package's metadata asks for to the last digit: `of` in exactly this version. A version
    that ends with .* is a beginning."""

    name: str  # torchvision
    of: str  # torch
    version: str  # 2.5.1
    line: int = 0
    probe: str = ""


class PythonEnv(Struct, frozen=True):
    """One answer: what the interpreter would import."""

    packages: tuple[Package, ...] = ()
    torch: Known[TorchBuild] = NOT_IN_INPUT
    twice: tuple[Twice, ...] = ()
    pins: tuple[Pin, ...] = ()
    unreadable: tuple[str, ...] = ()  # places of the module path that may not be listed
    named: bool = False  # by the user, with --python
    line: int = 1
    probe: str = ""


class StackGpu(Struct, frozen=True):
    """A GPU that the software is to run on."""

    name: str  # gpu0
    product: Known[str] = NOT_IN_INPUT
    capability: Known[str] = NOT_IN_INPUT  # compute capability: 9.0
    generation: Known[str] = NOT_IN_INPUT
    form: Known[str] = NOT_IN_INPUT  # sxm | pcie | superchip | workstation | geforce
    line: int = 0
    probe: str = ""


class Source(Struct, frozen=True):
    """Which answer told a field, and where."""

    probe: str
    line: int = 1


class Stack(Struct, frozen=True):
    """Versions as they were told. A list that was not told is Missing, one that is empty is ()."""

    driver: Known[str] = NOT_IN_INPUT  # 550.90.12
    driver_cuda: Known[str] = NOT_IN_INPUT  # the CUDA that nvidia-smi names beside it
    #: Of a libcuda that the loader takes before the driver's own; "none": there is none.
    compat_driver: Known[str] = NOT_IN_INPUT
    #: Of the forward-compatibility package of an image: its start script takes it where it helps.
    compat_offered: Known[str] = NOT_IN_INPUT
    toolkit: Known[str] = NOT_IN_INPUT  # the nvcc that extensions are built with: 12.3.107
    torch: Known[str] = NOT_IN_INPUT
    torch_cuda: Known[str] = NOT_IN_INPUT  # 12.4; "none": built without
    torch_hip: Known[str] = NOT_IN_INPUT
    torch_archs: Known[tuple[str, ...]] = NOT_IN_INPUT  # ("8.0", "9.0+PTX"), where they are told
    torch_whole: Known[bool] = NOT_IN_INPUT  # False: its folder lacks what it cannot be without
    #: What hosts must have alike for one job: "2.5, CUDA 12.4"; "no torch".
    torch_build: Known[str] = NOT_IN_INPUT
    torch_nccl: Known[str] = NOT_IN_INPUT  # wheel | runpath | loader | static, see TorchBuild
    cuda_found: Known[bool] = NOT_IN_INPUT  # whether torch found a GPU to compute on
    gpus: Known[tuple[StackGpu, ...]] = NOT_IN_INPUT
    cudnn_bundled: Known[str] = NOT_IN_INPUT  # the wheel beside torch
    cudnn_path: Known[str] = NOT_IN_INPUT  # of the same first number, on LD_LIBRARY_PATH; "none"
    nccl_bundled: Known[str] = NOT_IN_INPUT  # the wheel beside torch
    nccl_cuda: Known[str] = NOT_IN_INPUT  # the CUDA that this wheel was built for: 12
    nccl_system: Known[str] = NOT_IN_INPUT  # what ldconfig lists; "none"
    nccl_path: Known[str] = NOT_IN_INPUT  # on LD_LIBRARY_PATH; "none"
    nccl_preload: Known[str] = NOT_IN_INPUT  # by LD_PRELOAD; "none"
    nccl_loaded: Known[str] = NOT_IN_INPUT  # what a process would really load
    nccl_of_torch: Known[str] = NOT_IN_INPUT  # the same, of a host whose torch is known
    gpudirect: Known[str] = NOT_IN_INPUT  # peermem | dma-buf | none: what lends GPU memory to NICs
    imex: Known[str] = NOT_IN_INPUT  # the service's state, where a rack's GPUs need it
    deepspeed_torch: Known[str] = NOT_IN_INPUT  # what its wheel was compiled with
    deepspeed_cuda: Known[str] = NOT_IN_INPUT
    deepspeed_built: Known[bool] = NOT_IN_INPUT  # whether it brings compiled operations
    packages: Known[tuple[Package, ...]] = NOT_IN_INPUT  # one of each name
    twice: tuple[Twice, ...] = ()
    pins: tuple[Pin, ...] = ()
    python_named: bool = False  # the interpreter is the user's choice
    environment: tuple[EnvVar, ...] = ()
    told_by: dict[str, Source] = field(default_factory=dict)  # field -> where
    line: int = 1
    probe: str = ""
