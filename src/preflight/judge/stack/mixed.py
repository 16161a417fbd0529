"""Pieces of several installations in one: NCCL, cuDNN, an image under another torch, DeepSpeed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.facts.host import Host
from preflight.facts.stack_pieces import Stack
from preflight.judge.results import result
from preflight.judge.stack.answer import shown, skip, text, undetermined_for, unknown
from preflight.judge.versions import release
from preflight.model import Check, Evidence, Missing, Result, Status

#: Libraries whose packages for several CUDA put their file in one place (nvidia/nccl/lib, ...).
_ONE_PLACE = re.compile(r"nvidia-(nccl|cudnn|nvshmem|cusparselt)-cu(\d+)")


def nccl_loaded(host: Host, check: Check) -> Iterator[Result]:
    """The NCCL that is loaded is the one that torch brings."""
    stack = host.stack
    if (missing := unknown(stack, "nccl_bundled", "nccl_loaded")) is not None:
        yield undetermined_for(host, check, missing)
        return
    own, loaded = text(stack, "nccl_bundled"), text(stack, "nccl_loaded")
    absent = stack.nccl_preload if isinstance(stack.nccl_preload, Missing) else None
    if absent is not None and absent.kind == "not-applicable":
        yield result(
            check, host.name, Status.WARN, loaded, "the file is there", reason=absent.text,
            evidence=shown(stack, "nccl_preload"),
        )  # fmt: skip
        return
    if not own:
        yield skip(host, check, "torch brings no NCCL as a package", loaded)
        return
    reason = _not_its_own(stack, own, loaded)
    built, cuda = text(stack, "nccl_cuda"), text(stack, "torch_cuda") or text(stack, "nccl_cuda")
    yield result(
        check, host.name, Status.WARN if reason else Status.PASS, loaded,
        f"{own}, for CUDA {cuda.partition('.')[0]}" if built else own, reason=reason,
        evidence=shown(stack, "nccl_preload", "nccl_path", "nccl_bundled"),
    )  # fmt: skip


def _not_its_own(stack: Stack, own: str, loaded: str) -> str:
    """Why what is loaded is not what this torch wants; empty where it is."""
    if release(own) != release(loaded):
        preload = text(stack, "nccl_preload")
        where = "LD_PRELOAD" if preload else "LD_LIBRARY_PATH or ldconfig"
        return f"{where} brings {loaded} in place of it"
    built, cuda = text(stack, "nccl_cuda"), text(stack, "torch_cuda")
    if built and cuda and release(built) != release(cuda)[:1]:
        return f"it was built for CUDA {built}, torch for {cuda}"
    return ""


def cudnn_path(host: Host, check: Check) -> Iterator[Result]:
    """No other cuDNN stands on LD_LIBRARY_PATH."""
    stack = host.stack
    if (missing := unknown(stack, "cudnn_bundled", "cudnn_path")) is not None:
        yield undetermined_for(host, check, missing)
        return
    own, other = text(stack, "cudnn_bundled"), text(stack, "cudnn_path")
    if not own or not other:
        none = f"LD_LIBRARY_PATH has no cuDNN {own.partition('.')[0]}"
        reason = none if own else "torch brings no cuDNN as a package"
        yield skip(host, check, reason, own or None)
        return
    same = release(own)[:2] == release(other)[:2]
    yield result(
        check, host.name, Status.PASS if same else Status.WARN, other, own,
        reason=f"torch brings {own}, LD_LIBRARY_PATH has {other}",
        evidence=shown(stack, "cudnn_path", "cudnn_bundled"),
    )  # fmt: skip


def one_place(host: Host, check: Check) -> Iterator[Result]:
    """No library is installed for two CUDA in one place."""
    packages = host.stack.packages
    if isinstance(packages, Missing):
        yield undetermined_for(host, check, packages)
        return
    found: dict[tuple[str, str], list[str]] = {}
    for one in packages:
        if match := _ONE_PLACE.fullmatch(one.name):
            found.setdefault((one.place, match[1]), []).append(one.name)
    if not found:
        yield skip(host, check, "no such package of NVIDIA's is installed")
        return
    twice = [name for names in found.values() if len(names) > 1 for name in names]
    status = Status.WARN if twice else Status.PASS
    lines = tuple(Evidence(one.probe, line=one.line) for one in packages if one.name in twice)
    yield result(
        check, host.name, status, ", ".join(twice) or "one of each", "one of each",
        reason="they overwrite each other's file", evidence=lines,
    )  # fmt: skip


def image(host: Host, check: Check) -> Iterator[Result]:
    """What the image's variables say is what is installed."""
    stack = host.stack
    said = {one.name: one for one in stack.environment}
    built = said.get("PYTORCH_VERSION")
    if built is None:
        yield skip(host, check, "no image of its own torch: PYTORCH_VERSION is not set")
        return
    if (missing := unknown(stack, "torch")) is not None:
        yield undetermined_for(host, check, missing)
        return
    unlike = list(_unlike(stack, {name: one.value for name, one in said.items()}))
    own = release(built.value)[:2] == release(text(stack, "torch"))[:2]
    yield result(
        check, host.name, Status.PASS if own else Status.WARN,
        ", ".join(unlike) or f"torch {text(stack, 'torch')}", f"torch {built.value}",
        reason="mixed: another torch was installed over the image's own",
        evidence=(Evidence(built.probe, line=built.line), *shown(stack, "torch")),
    )  # fmt: skip


def _unlike(stack: Stack, said: dict[str, str]) -> Iterator[str]:
    """Each piece that is not of the version that the image's variable tells."""
    pieces = (
        ("PYTORCH_VERSION", "torch", "torch", 2),
        ("CUDA_VERSION", "torch_cuda", "its CUDA", 2),
        ("NCCL_VERSION", "nccl_loaded", "NCCL", 3),
        ("CUDNN_VERSION", "cudnn_bundled", "cuDNN", 2),
    )
    for variable, name, words, parts in pieces:
        mine, theirs = text(stack, name), said.get(variable, "")
        if mine and theirs and release(mine)[:parts] != release(theirs)[:parts]:
            yield f"{words} {mine} ({variable}={theirs})"


def deepspeed(host: Host, check: Check) -> Iterator[Result]:
    """DeepSpeed's wheel was compiled for this torch."""
    stack = host.stack
    names = ("deepspeed_torch", "deepspeed_cuda", "torch", "torch_cuda")
    if (missing := unknown(stack, *names)) is not None:
        yield undetermined_for(host, check, missing)
        return
    for_torch, for_cuda, torch, cuda = (text(stack, name) for name in names)
    same = release(for_torch)[:2] == release(torch)[:2] and _same_cuda(for_cuda, cuda)
    bad = Status.FAIL if stack.deepspeed_built is True else Status.WARN
    reason = (
        "its compiled operations do not load"
        if bad is Status.FAIL
        else ("it brings no compiled operations; what is built on first use fits this torch")
    )
    yield result(
        check, host.name, Status.PASS if same else bad, f"torch {for_torch}, CUDA {for_cuda}",
        f"torch {torch}, CUDA {cuda or 'none'}", reason=reason,
        evidence=shown(stack, "deepspeed_torch", "torch"),
    )  # fmt: skip


def _same_cuda(one: str, other: str) -> bool:
    return release(one)[:2] == release(other)[:2]


def whole(host: Host, check: Check) -> Iterator[Result]:
    """The folder of torch holds what a torch cannot be without."""
    stack = host.stack
    if isinstance(stack.torch_whole, Missing):
        yield undetermined_for(host, check, stack.torch_whole)
        return
    yield result(
        check, host.name, Status.PASS if stack.torch_whole else Status.FAIL,
        "whole" if stack.torch_whole else "no version.py in its folder", "whole",
        reason="broken: an installation or removal did not come to its end",
        evidence=shown(stack, "torch_whole"),
    )  # fmt: skip


def twice(host: Host, check: Check) -> Iterator[Result]:
    """The module path holds one torch."""
    stack = host.stack
    if isinstance(stack.packages, Missing):
        yield undetermined_for(host, check, stack.packages)
        return
    if (missing := unknown(stack, "torch")) is not None:
        yield undetermined_for(host, check, missing)
        return
    hidden = [one for one in stack.twice if one.name == "torch"]
    told = ", ".join(f"{one.version} in {one.place}" for one in hidden)
    yield result(
        check, host.name, Status.WARN if hidden else Status.PASS,
        f"{text(stack, 'torch')}; also {told}" if hidden else text(stack, "torch"), "one torch",
        reason="the first on the module path hides the others; metadata of another version in the "
        "same place is of an upgrade that was interrupted",
        evidence=tuple(Evidence(one.probe, line=one.line) for one in hidden),
    )  # fmt: skip
