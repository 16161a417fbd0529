"""Packages that are built for one torch: by the table of releases, and by their own versions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.facts.host import Host
from preflight.facts.setup import Package
from preflight.facts.stack_pieces import Pin, Stack
from preflight.judge.results import result, undetermined
from preflight.judge.stack.answer import shown, skip, text, undetermined_for, unknown
from preflight.judge.stack.tables import TorchRelease, is_between_releases, torch_release
from preflight.judge.versions import is_of, release
from preflight.model import Check, Evidence, Missing, Result, Status

_BY_TABLE = ("torchvision", "torchaudio", "torchtext", "triton")
#: flash_attn-2.6.3+cu123torch2.4cxx11abiFALSE, torch-scatter 2.1.2+pt24cu121, xformers +cu124
_FOR_TORCH = re.compile(r"(?:torch|pt)(\d)\.?(\d{1,2})")
_FOR_CUDA = re.compile(r"cu(\d{2,3})(?!\d)")


def built_for_torch(host: Host, check: Check) -> Iterator[Result]:
    """Each package that is built for one torch is built for this one."""
    stack = host.stack
    if (missing := unknown(stack, "torch", "packages")) is not None:
        yield undetermined_for(host, check, missing)
        return
    row, found = torch_release(text(stack, "torch")), []
    for one in stack.packages if not isinstance(stack.packages, Missing) else ():
        judged = _judge(stack, check, one, row)
        found += [judged] if judged else []
    yield from found or [skip(host, check, "no package here tells which torch it is built for")]


def _judge(stack: Stack, check: Check, one: Package, row: TorchRelease | None) -> Result | None:
    """The result of one package; None where it is not built for a torch or does not tell."""
    wanted = getattr(row, one.name, "") if row and one.name in _BY_TABLE else ""
    if asked := [pin for pin in stack.pins if (pin.name, pin.of) == (one.name, "torch")]:
        return _by_pin(stack, check, one, asked)
    if any((pin.name, pin.of) == ("torch", one.name) for pin in stack.pins):
        return None  # versions.packages.pins tells it
    if isinstance(one.version, Missing):
        return undetermined(check, one.name, one.version) if wanted else None
    tags = one.version.partition("+")[2] if one.name != "torch" else ""
    if wanted and is_between_releases(one.version):
        wanted = ""
    if not (wanted or _FOR_TORCH.search(tags) or (one.name in _BY_TABLE and tags)):
        return None
    reason = _by_table(one, wanted) or _by_tags(stack, tags)
    expected = (
        f"{wanted}, for torch {text(stack, 'torch')}"
        if wanted
        else (f"built for torch {text(stack, 'torch')}")
    )
    return result(
        check, one.name, Status.WARN if reason else Status.PASS, one.version, expected,
        reason=reason, evidence=(Evidence(one.probe, line=one.line), *shown(stack, "torch")),
    )  # fmt: skip


def _by_pin(stack: Stack, check: Check, one: Package, asked: list[Pin]) -> Result:
    """By what its own metadata asks for."""
    torch, exact = text(stack, "torch"), " or ".join(pin.version for pin in asked)
    tags = "" if isinstance(one.version, Missing) else one.version.partition("+")[2]
    meets = any(meets_pin(torch, pin.version) for pin in asked)
    reason = _by_tags(stack, tags) if meets else f"its metadata asks for torch {exact}"
    version = one.version if isinstance(one.version, str) else "of unknown version"
    return result(
        check, one.name, Status.WARN if reason else Status.PASS, f"{version}, torch {torch}",
        f"torch {exact}", reason=reason, evidence=(Evidence(one.probe, line=asked[0].line),),
    )  # fmt: skip


def meets_pin(version: str, exact: str) -> bool:
    """Whether a version is the one that is asked for (PEP 440, version matching): without a local
    part in what is asked, that of the version does not count."""
    if exact.endswith(".*"):
        return is_of(version, exact.removesuffix(".*"))
    mine = version if "+" in exact else version.partition("+")[0]
    return mine == exact or (bool(release(exact)) and _plain(mine) == _plain(exact))


def _plain(version: str) -> tuple[object, ...]:
    """1.2 and 1.2.0 are one version; what stands behind the numbers counts."""
    numbers = release(version)
    rest = version.strip().removeprefix(".".join(map(str, numbers)))
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return (*numbers, rest)


def pinned(host: Host, check: Check) -> Iterator[Result]:
    """What torch and others ask for to the last digit is what is installed."""
    stack = host.stack
    if isinstance(stack.packages, Missing):
        yield undetermined_for(host, check, stack.packages)
        return
    installed = {one.name: one for one in stack.packages}
    found: dict[tuple[str, str], list[Pin]] = {}
    for pin in stack.pins:
        if pin.of != "torch" and pin.of in installed:
            found.setdefault((pin.name, pin.of), []).append(pin)
    if not found:
        yield skip(host, check, "no package here asks for an exact version of another")
    for (name, of), asked in found.items():
        yield _pinned(check, name, installed[of], asked)


def _pinned(check: Check, name: str, one: Package, asked: list[Pin]) -> Result:
    if isinstance(one.version, Missing):
        return undetermined(check, one.name, one.version)
    exact = " or ".join(pin.version for pin in asked)
    meets = any(meets_pin(one.version, pin.version) for pin in asked)
    return result(
        check, one.name, Status.PASS if meets else Status.WARN, one.version, exact,
        reason=f"{name} asks for {exact}",
        evidence=(Evidence(one.probe, line=one.line), Evidence(one.probe, line=asked[0].line)),
    )  # fmt: skip


def _by_table(one: Package, wanted: str) -> str:
    if not wanted or (isinstance(one.version, str) and is_of(one.version, wanted)):
        return ""
    return f"{one.name} {one.version} belongs to another release of torch"


def _by_tags(stack: Stack, tags: str) -> str:
    """Why the local part of its version (PEP 440) does not fit; empty where it does."""
    torch, cuda = release(text(stack, "torch"))[:2], release(text(stack, "torch_cuda"))[:1]
    if (match := _FOR_TORCH.search(tags)) and (int(match[1]), int(match[2])) != torch:
        return f"built for torch {match[1]}.{match[2]}: its library does not load with this one"
    if tags == "cpu" and cuda:
        return "built for the CPU only, beside a torch with CUDA: its GPU operations are missing"
    match = _FOR_CUDA.search(tags)
    if match and cuda and _major(match[1]) != cuda[0]:
        return f"built with CUDA {_major(match[1])}, torch with CUDA {cuda[0]}"
    return ""


def _major(digits: str) -> int:
    """cu124 and cu12 -> 12, cu92 -> 9."""
    return int(digits) if len(digits) == 2 and digits.startswith("1") else int(digits[:-1])


def flash_attention(host: Host, check: Check) -> Iterator[Result]:
    """flash-attn runs on each GPU: version 2 begins with compute capability 8.0 (README of
    Dao-AILab/flash-attention)."""
    stack = host.stack
    if (missing := unknown(stack, "packages", "gpus")) is not None:
        yield undetermined_for(host, check, missing)
        return
    one = _flash_attn_2(stack)
    if isinstance(one, Missing):
        yield undetermined_for(host, check, one)
        return
    for gpu in stack.gpus if not isinstance(stack.gpus, Missing) else ():
        if isinstance(gpu.capability, Missing):
            yield undetermined(check, gpu.name, gpu.capability)
            continue
        fits = release(gpu.capability) >= (8, 0)
        yield result(
            check, gpu.name, Status.PASS if fits else Status.WARN,
            f"flash-attn {one.version} on {gpu.capability}", "compute capability 8.0 or later",
            reason="it has no code for this GPU: a model that asks for it fails",
            evidence=(Evidence(one.probe, line=one.line),),
        )  # fmt: skip


def _flash_attn_2(stack: Stack) -> Package | Missing:
    packages = () if isinstance(stack.packages, Missing) else stack.packages
    one = next((one for one in packages if one.name == "flash-attn"), None)
    if one is not None and isinstance(one.version, Missing):
        return one.version
    if one is None or release(str(one.version))[:1] < (2,):
        return Missing("not-applicable", "flash-attn 2 is not installed")
    return one
