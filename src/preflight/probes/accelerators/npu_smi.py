"""Ascend NPUs, from the table of `npu-smi info`.

Each chip has two rows: NPU and name, health, power, temperature; then chip, bus id, use. The layout
is that of the npu-smi command reference of Atlas servers (editions 23.0 to 25.0); columns behind
these differ by product.
"""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.accelerators import Accelerator, AcceleratorAnswer
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "npu-smi"
_VERSION = re.compile(r"\|\s*npu-smi\s+(\S+)\s+Version:\s*(\S+)")
#: | 0     910B3    | OK    | 89.4   42   0 / 0 |
_FIRST = re.compile(
    r"\|\s*(\d{1,4})\s+(\S[^|]{0,40}?)\s*\|\s*([A-Za-z]{2,12})\s*\|\s*(\S{1,12})\s+(\S{1,12})\b.*"
)
#: | 0        | 0000:C1:00.0 | 0    0 / 0   3404 / 65536 |, with a chip's number of its own or two
_SECOND = re.compile(
    r"\|\s*(\d{1,4})(?:\s+\S{1,6})?\s*\|\s*([\da-fA-F]{4,8}:[\da-fA-F]{2}:[\da-fA-F]{2}\.[0-7])\s*\|.*"
)
_NOT_TOLD = Missing("not-applicable", "npu-smi tells none of it")


@probe(_PROBE, ["npu-smi", "info"], timeout_s=15)
def npu_smi(text: str) -> AcceleratorAnswer:
    """The chips in the order of the table, without its list of processes."""
    found: list[Accelerator] = []
    first: tuple[int, re.Match[str]] | None = None
    version: Known[str] = Missing("unreadable", "npu-smi tells no version")
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if "Process id" in line:
            break
        if match := _VERSION.match(line):
            version = match[2]
        elif match := _FIRST.fullmatch(line):
            first = (number, match)
        elif (match := _SECOND.fullmatch(line)) and first:
            found.append(_chip(*first, match))
            first = None
    if first or not found:
        said = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise ParseError(
            f"expected two rows for each NPU, got {said[:120]!r}", first[0] if first else 1
        )
    return AcceleratorAnswer(tuple(found), version, probe=_PROBE)


def _chip(number: int, first: re.Match[str], second: re.Match[str]) -> Accelerator:
    chip = f".{second[1]}" if second[1] != "0" else ""
    return Accelerator(
        name=f"npu{first[1]}{chip}",
        vendor="Huawei Ascend",
        product=" ".join(first[2].split()),
        address=second[2].lower(),
        health=first[3],
        power_w=_number(first[4]),
        temperature_c=_number(first[5]),
        line=number,
        probe=_PROBE,
    )


def _number(word: str) -> Known[float]:
    """NA stands where a chip has no sensor of its own."""
    try:
        return float(word)
    except ValueError:
        return _NOT_TOLD
