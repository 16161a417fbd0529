"""Driver, CUDA of the build, toolkit and GPU against each other."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.facts.host import Host
from preflight.facts.stack_pieces import Stack, StackGpu
from preflight.judge.results import result, undetermined
from preflight.judge.stack.answer import NONE, shown, skip, text, undetermined_for, unknown
from preflight.judge.stack.archs import archs_of, built_elsewhere
from preflight.judge.stack.compat import (
    DATA_CENTRE,
    DriverFit,
    code_fit,
    cuda_knows,
    driver_fit,
    driver_knows,
    short,
)
from preflight.model import NOT_IN_INPUT, Check, Evidence, Missing, Result, Status

_NO_CUDA = "torch is built without CUDA: see versions.torch.cuda"


def fit_of(stack: Stack) -> DriverFit | Missing:
    """How the driver stands to the CUDA that torch was built with."""
    missing = unknown(stack, "driver", "torch_cuda")
    if missing is not None:
        return missing
    if not text(stack, "torch_cuda"):
        return Missing("not-applicable", _NO_CUDA)
    gpus = () if isinstance(stack.gpus, Missing) else stack.gpus
    desktop = [gpu for gpu in gpus if isinstance(gpu.form, str) and gpu.form not in DATA_CENTRE]
    fit = driver_fit(
        text(stack, "driver"), text(stack, "torch_cuda"), told=text(stack, "driver_cuda"),
        package=text(stack, "compat_driver"), offered=text(stack, "compat_offered"),
        data_centre=not desktop,
    )  # fmt: skip
    if isinstance(stack.compat_driver, Missing) and "compat_driver" in stack.told_by:
        runs = fit.state in ("own", "minor")  # unless that libcuda is none for this driver
        text_of = f"which libcuda LD_LIBRARY_PATH brings is unknown: {stack.compat_driver.text}"
        return Missing("not-applicable" if runs else "unreadable", text_of)
    if fit.state == "newer":
        return Missing("not-applicable", f"{fit.text}; add a row")
    return _as_found(stack, fit)


def _as_found(stack: Stack, fit: DriverFit) -> DriverFit:
    """A torch that has found a GPU runs, by a libcuda that the report does not name: that of a
    forward-compatibility package, which every container of NVIDIA's brings."""
    if stack.cuda_found is not True or fit.state not in ("too-old", "unfit"):
        return fit
    return DriverFit("forward", f"torch has found a GPU, although {fit.text}")


def runs(host: Host, check: Check) -> Iterator[Result]:
    """The driver runs the build's CUDA in one way or another."""
    fit = fit_of(host.stack)
    if isinstance(fit, Missing):
        yield undetermined_for(host, check, fit)
        return
    cuda = text(host.stack, "torch_cuda")
    status = Status.FAIL if fit.state in ("too-old", "unfit") else Status.PASS
    yield result(
        check, host.name, status, text(host.stack, "driver"), f"a driver that runs CUDA {cuda}",
        reason=fit.text, evidence=shown(host.stack, "driver", "torch_cuda"),
    )  # fmt: skip


def by_compatibility(host: Host, check: Check) -> Iterator[Result]:
    """It needs no compatibility mode for it."""
    fit = fit_of(host.stack)
    if isinstance(fit, Missing):
        yield undetermined_for(host, check, fit)
    elif fit.state in ("too-old", "unfit"):
        yield skip(host, check, "it does not run at all: see versions.cuda.driver")
    else:
        cuda = text(host.stack, "torch_cuda")
        status = Status.PASS if fit.state == "own" else Status.WARN
        yield result(
            check, host.name, status, text(host.stack, "driver"), f"CUDA {cuda} or newer",
            reason=f"{'minor version' if fit.state == 'minor' else 'forward'} compatibility: "
            f"{fit.text}",
            evidence=shown(host.stack, "driver", "torch_cuda"),
        )  # fmt: skip


def built_with_cuda(host: Host, check: Check) -> Iterator[Result]:
    """Where there are NVIDIA GPUs, torch is built for them."""
    stack = host.stack
    missing = unknown(stack, "torch", "torch_cuda", "gpus")
    if missing is not None and stack.python_named and _without_torch(stack):
        missing = Missing("unreadable", f"GPUs are here: {missing.text}")
    if missing is not None:
        yield undetermined_for(host, check, missing)
        return
    if not stack.gpus:
        yield skip(host, check, "no NVIDIA GPU here")
        return
    cuda, hip = text(stack, "torch_cuda"), text(stack, "torch_hip")
    yield result(
        check, host.name, Status.PASS if cuda else Status.FAIL,
        f"{text(stack, 'torch')}, CUDA {cuda or 'none'}", "built with CUDA",
        reason=f"it is built for ROCm {hip}" if hip else _not_for_cuda(text(stack, "torch")),
        evidence=shown(stack, "torch", "torch_cuda"),
    )  # fmt: skip


def _without_torch(stack: Stack) -> bool:
    """Whether a host with GPUs has an interpreter that has no torch at all."""
    torch, gpus = stack.torch, stack.gpus
    none = isinstance(torch, Missing) and torch.kind == "not-applicable"
    return none and not isinstance(gpus, Missing) and bool(gpus)


def _not_for_cuda(torch: str) -> str:
    other = "Intel's GPUs" if "+xpu" in torch else "the CPU only"
    return f"it is built for {other}"


def finds_gpu(host: Host, check: Check) -> Iterator[Result]:
    """torch itself found a GPU, as a report tells."""
    stack = host.stack
    if stack.torch_cuda == NONE:
        yield skip(host, check, _NO_CUDA)
    elif isinstance(stack.cuda_found, Missing):
        yield undetermined_for(host, check, stack.cuda_found)
    else:
        neither = _tells_no_driver(stack) and (isinstance(stack.gpus, Missing) or not stack.gpus)
        absent = Status.WARN if neither else Status.FAIL
        reason = "torch says that CUDA is not available"
        if neither:
            reason += "; no GPU and no driver is told: a login node?"
        yield result(
            check, host.name, Status.PASS if stack.cuda_found else absent, stack.cuda_found, "yes",
            reason="" if stack.cuda_found else reason, evidence=shown(stack, "cuda_found"),
        )  # fmt: skip


def _tells_no_driver(stack: Stack) -> bool:
    """Whether the driver was looked for and none was found."""
    return isinstance(stack.driver, Missing) and stack.driver != NOT_IN_INPUT


def has_code(host: Host, check: Check) -> Iterator[Result]:
    """torch has code for each GPU."""
    stack = host.stack
    missing = unknown(stack, "torch", "torch_cuda", "gpus")
    if missing is not None:
        yield undetermined_for(host, check, missing)
    elif not text(stack, "torch_cuda"):
        yield skip(host, check, _NO_CUDA)
    elif not isinstance(stack.gpus, Missing):
        for gpu in stack.gpus:
            yield _code_for(stack, gpu, check)


def _code_for(stack: Stack, gpu: StackGpu, check: Check) -> Result:
    if isinstance(gpu.capability, Missing):
        return undetermined(check, gpu.name, gpu.capability)
    torch, cuda = text(stack, "torch"), text(stack, "torch_cuda")
    archs, expected = archs_of(stack), f"code for {gpu.capability}"
    impossible = cuda_knows(cuda, gpu.capability)
    if impossible and not isinstance(impossible, Missing):
        return result(check, gpu.name, Status.FAIL, f"CUDA {cuda}", expected, reason=impossible,
                      evidence=_both(stack, gpu))  # fmt: skip
    if isinstance(archs, Missing):
        return undetermined(check, gpu.name, archs, expected=expected)
    state = code_fit(archs, gpu.capability)
    if state == "none" and (elsewhere := built_elsewhere(stack)) is not None:
        return undetermined(check, gpu.name, elsewhere, expected=expected)
    fit = fit_of(stack)
    older = isinstance(fit, DriverFit) and fit.state == "minor"
    status = {"code": Status.PASS, "ptx": Status.FAIL if older else Status.WARN}.get(
        state, Status.FAIL
    )
    reason = "no kernel image for this GPU"
    if state == "ptx":
        reason = "only PTX, which is compiled at start for this GPU"
        reason += f"; a driver older than CUDA {cuda} cannot do that" if older else ""
    return result(check, gpu.name, status, f"torch {torch}: {' '.join(archs)}", expected,
                  reason=reason, evidence=_both(stack, gpu))  # fmt: skip


def _both(stack: Stack, gpu: StackGpu) -> tuple[Evidence, ...]:
    told = (Evidence(gpu.probe, line=gpu.line),) if gpu.probe else ()
    return (*shown(stack, "torch"), *told)


def driver_has_gpu(host: Host, check: Check) -> Iterator[Result]:
    """The driver's branch is one that has such GPUs."""
    stack = host.stack
    missing = unknown(stack, "driver", "gpus")
    if missing is not None:
        yield undetermined_for(host, check, missing)
        return
    for gpu in stack.gpus if not isinstance(stack.gpus, Missing) else ():
        if isinstance(gpu.generation, Missing):
            yield undetermined(check, gpu.name, gpu.generation)
            continue
        capability = gpu.capability if isinstance(gpu.capability, str) else ""
        reason = driver_knows(text(stack, "driver"), gpu.generation, capability)
        status = Status.FAIL if reason else Status.PASS
        yield result(check, gpu.name, status, text(stack, "driver"), f"one for {gpu.generation}",
                     reason=reason, evidence=shown(stack, "driver"))  # fmt: skip


def toolkit_fits_torch(host: Host, check: Check) -> Iterator[Result]:
    """The compiler of extensions is of torch's CUDA: of the same first number, and not older."""
    stack = host.stack
    if (excluded := _no_toolkit(host, check)) is not None:
        yield excluded
        return
    toolkit, cuda = short(text(stack, "toolkit")), short(text(stack, "torch_cuda"))
    status = Status.PASS if toolkit[:1] == cuda[:1] and toolkit >= cuda else Status.WARN
    told = text(stack, "torch_cuda")
    reason = "another first number: torch refuses to build extensions with it"
    if toolkit[:1] == cuda[:1]:
        reason = f"older than torch's CUDA {told}: extensions build, without what is new in {told}"
    yield result(
        check, host.name, status, text(stack, "toolkit"), f"CUDA {cuda[0]}, {told} or newer",
        reason=reason, evidence=shown(stack, "toolkit", "torch_cuda"),
    )  # fmt: skip


def toolkit_knows_gpu(host: Host, check: Check) -> Iterator[Result]:
    """The compiler of extensions knows the GPUs."""
    stack = host.stack
    missing = unknown(stack, "toolkit", "gpus")
    if missing is not None:
        yield undetermined_for(host, check, missing)
    elif not text(stack, "toolkit"):
        yield skip(host, check, _NO_TOOLKIT)
    elif not isinstance(stack.gpus, Missing):
        for gpu in stack.gpus:
            yield _known_to(stack, gpu, check)


def _known_to(stack: Stack, gpu: StackGpu, check: Check) -> Result:
    toolkit, capability = text(stack, "toolkit"), gpu.capability
    reason = capability if isinstance(capability, Missing) else cuda_knows(toolkit, capability)
    if isinstance(reason, Missing):
        return undetermined(check, gpu.name, reason)
    status = Status.WARN if reason else Status.PASS
    return result(check, gpu.name, status, toolkit, f"knows {capability}", reason=reason,
                  evidence=shown(stack, "toolkit"))  # fmt: skip


_NO_TOOLKIT = "no CUDA toolkit here: only what compiles extensions needs one"


def _no_toolkit(host: Host, check: Check) -> Result | None:
    stack = host.stack
    missing = unknown(stack, "toolkit", "torch_cuda")
    if missing is not None:
        return undetermined_for(host, check, missing)
    if not text(stack, "toolkit"):
        return skip(host, check, _NO_TOOLKIT)
    return None if text(stack, "torch_cuda") else skip(host, check, _NO_CUDA)
