"""Whether a driver runs a CUDA, and whether a build has code for a GPU: pure, by the tables.

Sources: NVIDIA, CUDA Compatibility (minor version compatibility, forward compatibility); CUDA C++
Programming Guide, "Binary compatibility" and "PTX compatibility".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from preflight.judge.stack.tables import Capability, cuda_table
from preflight.judge.versions import at_least, release
from preflight.model import Missing

#: own: the driver's own CUDA is not older; minor: by minor version compatibility; forward: by a
#: package that is there; too-old: not at all; unfit: the package does not serve this GPU or driver;
#: newer: driver and CUDA are both newer than the table, so that nobody knows.
DriverState = Literal["own", "minor", "forward", "unfit", "too-old", "newer"]
#: code: as it is; ptx: compiled for the GPU when it is loaded; none: "no kernel image".
CodeState = Literal["code", "ptx", "none"]
#: Forms of GPUs that forward compatibility is for.
DATA_CENTRE = ("sxm", "pcie", "superchip")


class DriverFit(Struct, frozen=True):
    """How a driver stands to a CUDA; `text` says it with the numbers."""

    state: DriverState
    text: str


def cuda_of_driver(driver: str, told: str = "") -> str:
    """The CUDA of a driver's own libcuda: by its branch; what nvidia-smi told where the branch is
    newer than the table. Empty where neither is known."""
    rows = [row for row in cuda_table().releases if _branch(row.driver) <= _branch(driver)]
    if not rows:
        return told
    return told if told and _is_newer(driver) else rows[-1].cuda


def _branch(driver: str) -> tuple[int, ...]:
    return release(driver)[:1]


def _is_newer(driver: str) -> bool:
    """Whether its branch is newer than the table."""
    return _branch(driver) > _branch(cuda_table().releases[-1].driver)


def driver_fit(
    driver: str, cuda: str, *, told: str = "", package: str = "", offered: str = "",
    data_centre: bool = True,
) -> DriverFit:  # fmt: skip
    """Whether `driver` runs what was built with `cuda`. `told`: the CUDA that nvidia-smi names;
    `package`: the driver version of a libcuda that the loader takes before the driver's own;
    `offered`: of one that an image's start script puts there where it is needed."""
    cuda, own = ".".join(map(str, short(cuda))), cuda_of_driver(driver, told)
    if package and (fault := package_fault(driver, package, data_centre=data_centre)):
        return DriverFit("unfit", fault)
    if own and at_least(own, cuda):
        return DriverFit("own", f"driver {driver} is of CUDA {own}")
    package = package or offered
    if package and at_least(cuda_of_driver(package), cuda):
        fault = package_fault(driver, package, data_centre=data_centre)
        text = fault or f"driver {driver} with the libcuda of {package}"
        return DriverFit("unfit" if fault else "forward", text)
    if _is_newer(driver) and not told:
        return DriverFit("newer", f"driver {driver} is newer than checks/data/cuda_compat.yaml")
    if told and at_least(told, cuda):
        return DriverFit("forward", f"driver {driver} is of CUDA {own}, nvidia-smi names {told}: "
                                    "it was given the libcuda of a package")  # fmt: skip
    least = next(
        (row.driver for row in cuda_table().minor_from if row.major == release(cuda)[0]), ""
    )
    if least and at_least(driver, least):
        return DriverFit("minor", f"driver {driver} is of CUDA {own}; from {least} on any CUDA "
                                  f"{release(cuda)[0]} runs with limits")  # fmt: skip
    return DriverFit("too-old", f"driver {driver} is of CUDA {own or 'unknown'}, {needs(cuda)}")


def package_fault(driver: str, package: str, *, data_centre: bool) -> str:
    """Why CUDA does not start with a libcuda that is not the driver's own; empty where it does."""
    if not at_least(package, driver):
        return f"the libcuda of {package} is older than the loaded driver {driver} (error 803)"
    if at_least(driver, package):
        return ""
    if not data_centre:
        return f"the libcuda of {package} serves data-centre GPUs only (error 804)"
    row = next((row for row in cuda_table().not_forward if (row.branch,) == _branch(driver)), None)
    if row is None or not at_least(cuda_of_driver(package), row.cuda):
        return ""
    return f"drivers of branch {row.branch} do not work with the libcuda of {package} (error 803)"


def needs(cuda: str) -> str:
    """Which driver a CUDA needs, in words."""
    table = cuda_table()
    least = next((row.driver for row in table.minor_from if row.major == release(cuda)[0]), "")
    first = next((row.driver for row in table.releases if release(row.cuda) == short(cuda)), "")
    if least or first:
        return f"CUDA {cuda} needs {least or first}"
    return f"CUDA {cuda} is newer than checks/data/cuda_compat.yaml"


def short(cuda: str) -> tuple[int, ...]:
    """12.4.131 -> (12, 4)."""
    return release(cuda)[:2]


def code_fit(archs: Iterable[str], capability: str) -> CodeState:
    """Whether a build with code for `archs` ("8.0", "9.0+PTX", "sm_90a", "compute_120") runs on a
    GPU. Binary code runs on the same first number with an equal or higher second; PTX is compiled
    for anything newer. Code with an a behind (9.0a) is for that one only."""
    state: CodeState = "none"
    gpu = short(capability)
    for arch in archs:
        found = _arch(arch)
        if found is None:
            continue
        at, binary, text, exact = found
        if binary and at[0] == gpu[0] and (at == gpu if exact else at <= gpu):
            return "code"
        if text and not exact and at <= gpu:
            state = "ptx"
    return state


def _arch(word: str) -> tuple[tuple[int, ...], bool, bool, bool] | None:
    """The capability, whether there is binary code, PTX, and whether it is for that one only."""
    name = word.strip().lower()
    ptx = name.endswith("+ptx")
    name = name.removesuffix("+ptx")
    virtual = name.startswith("compute_")
    number = name.removeprefix("compute_").removeprefix("sm_")
    exact = number.endswith("a")
    number = number.rstrip("af")
    if "." not in number and number.isdigit() and len(number) > 1:
        number = f"{number[:-1]}.{number[-1]}"
    at = release(number)
    return (at, not virtual, ptx or virtual, exact) if len(at) == 2 else None


def cuda_knows(cuda: str, capability: str) -> str | Missing:
    """Why no build with this CUDA can have code for the GPU; empty where one can."""
    gpu = short(capability)
    rows = [row for row in cuda_table().capabilities if release(row.capability)[:1] == gpu[:1]]
    rows = [row for row in rows if release(row.capability) <= gpu]
    if not rows:
        return Missing("not-applicable", f"{capability} has no row in checks/data/cuda_compat.yaml")
    since = min((row.since for row in rows), key=release)
    if not at_least(cuda, since):
        return f"CUDA {cuda} is older than the GPU, which needs {since}"
    own = _row(capability)
    if own and own.dropped and at_least(cuda, own.dropped):
        return f"CUDA {own.dropped} has dropped compute capability {capability}"
    return ""


def _row(capability: str) -> Capability | None:
    return next((row for row in cuda_table().capabilities if row.capability == capability), None)


def driver_knows(driver: str, generation: str, capability: str = "") -> str:
    """Why a driver has no such GPUs; empty where it has, or where that is not known."""
    own = _row(capability)
    if own and own.driver and not at_least(driver, own.driver):
        return f"driver {driver} is older than GPUs of {capability}, which begin with {own.driver}"
    row = next((row for row in cuda_table().generations if row.generation == generation), None)
    if row and row.first and not at_least(driver, row.first):
        return f"driver {driver} is older than {generation}, which begins with {row.first}"
    if row and row.last and release(driver)[:1] > (row.last,):
        return f"the last driver branch for {generation} is {row.last}, this is {driver}"
    return ""
