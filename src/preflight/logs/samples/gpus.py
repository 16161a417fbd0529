"""Tables of nvidia-smi dmon and dcgmi dmon, by the readers that watching has."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from preflight.errors import ParseError
from preflight.facts.samples import GpuSamples
from preflight.pasted import MAX_BYTES, text_of
from preflight.probes.dcgm.dmon import dcgm_dmon
from preflight.probes.nvidia_smi.dmon import nvidia_smi_dmon
from preflight.unpack import unpacked

_NVIDIA = re.compile(rb"^#\s*(?:Date\s+Time\s+)?gpu\b.*\b(?:sm|pwr|pclk|gtemp)\b", re.MULTILINE)
_DCGM = re.compile(rb"^#\s*Entity\b", re.MULTILINE)


def sniff(head: bytes, name: str) -> bool:
    """By the header of its table, among the first lines."""
    first = head[:4096]
    return bool(_NVIDIA.search(first) or _DCGM.search(first))


def read(path: Path, tell: Callable[[str], None]) -> GpuSamples:
    """ParseError where a row does not fit its header."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if data.startswith(b"\x1f\x8b"):
        data, _ = unpacked(data, MAX_BYTES + 1)
    text = text_of(data, str(path))
    parse = dcgm_dmon if _DCGM.search(data[:4096]) else nvidia_smi_dmon
    try:
        return GpuSamples(str(path), parse(text))
    except ParseError as error:
        raise ParseError(f"{error.what}; a table of dmon alone can be read") from None
