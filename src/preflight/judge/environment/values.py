"""Values: of the wrong type, out of range, words that do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.env_table import Variable, table, variables
from preflight.facts.host import Cpu
from preflight.judge.environment.scene import Fault, Found, Scene, unseen
from preflight.model import NOT_IN_INPUT, Missing
from preflight.units import number

_ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
               "PYTORCH_NPU_ALLOC_CONF")  # fmt: skip
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
#: NCCL takes what strtoll of C takes with base 0.
_INTEGER = re.compile(r"[-+]?(0x[0-9a-f]+|\d+)", re.IGNORECASE)


def values(scene: Scene) -> Iterator[Fault]:
    """Values that a variable does not take."""
    for one in scene.variables:
        row = variables().get(one.name)
        wanted = _wanted(row, one.value) if row and one.value else ""
        if row and wanted:
            default = f"; the default is {row.default}" if row.default else ""
            does = f" ({row.does})" if row.does else ""
            yield Fault(one, f"it takes {wanted}{does}{default}", wanted)
        if one.name in _ALLOCATORS:
            wrong = "; ".join(_allocator(one.value))
            if wrong:
                yield Fault(one, f"{wrong}: torch stops at such a setting")


def _wanted(row: Variable, value: str) -> str:
    """What the variable takes, where the value is none of that."""
    if row.one_of and value.upper() not in row.one_of.upper().split():
        return " or ".join(row.one_of.split())
    if row.words:
        words = {word.strip().upper() for word in value.lstrip("^").split(",")}
        if not words <= set(row.words.upper().split()):
            return f"a list of {', '.join(row.words.split())}"
    if row.between and not _is_between(value, *row.between):
        return f"{number(row.between[0])} to {number(row.between[1])}"
    if row.like and not re.fullmatch(row.like, value, re.IGNORECASE):
        return row.told or row.like.replace("|", " or ")
    return ""


def _is_between(value: str, least: float, most: float) -> bool:
    match = _INTEGER.fullmatch(value.strip())
    return bool(match) and least <= int(value.strip(), 0 if "x" in value.lower() else 10) <= most


def _allocator(text: str) -> Iterator[str]:
    """What is wrong with key:value pairs, by commas; a comma within [] belongs to the value."""
    keys = table().allocator
    for pair in filter(None, re.split(r",(?![^\[]*\])", text.replace(" ", ""))):
        key, colon, value = pair.partition(":")
        if key not in keys:
            yield f"there is no key {key[:40]}{_near(key, keys)}"
        elif not colon or not re.fullmatch(keys[key], value, re.IGNORECASE):
            yield f"{key} does not take {value[:40] or 'nothing'}"


def _near(key: str, keys: dict[str, str]) -> str:
    import difflib  # for mistakes only

    near = difflib.get_close_matches(key, list(keys), 1)
    return f"; the nearest is {near[0]}" if near else ""


def threads(scene: Scene) -> Found:
    """More threads in one process than the host has CPUs."""
    cpu = scene.host.cpu
    cpus = cpu.cpus if isinstance(cpu, Cpu) else cpu
    for one in scene.variables:
        first = one.value.partition(",")[0].strip()
        if one.name not in _THREADS or not first.isdecimal() or int(first) < 2:
            continue
        if isinstance(cpus, Missing) or not scene.here:
            yield unseen(one, "CPUs", cpus if isinstance(cpus, Missing) else NOT_IN_INPUT)
        elif int(first) > cpus:
            yield Fault(one, f"the host has {cpus} CPUs", f"at most {cpus}")
