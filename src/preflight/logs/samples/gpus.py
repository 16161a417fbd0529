"""Tables of nvidia-smi dmon and dcgmi dmon, by the readers that watching has."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from preflight.errors import ParseError
from preflight.facts.samples import GpuSamples
from preflight.probes.dcgm.dmon import dcgm_dmon
from preflight.probes.nvidia_smi.dmon import nvidia_smi_dmon
from preflight.unpack import Unpacking

_NVIDIA = re.compile(rb"^#\s*(?:Date\s+Time\s+)?gpu\b.*\b(?:sm|pwr|pclk|gtemp)\b", re.MULTILINE)
_DCGM = re.compile(rb"^#\s*Entity\b", re.MULTILINE)
#: A table of a day, one row a second, eight GPUs: 60 MB.
_MOST_BYTES = 256 << 20


def sniff(head: bytes, name: str) -> bool:
    """By the header of its table, among the first lines."""
    first = head[:4096]
    return bool(_NVIDIA.search(first) or _DCGM.search(first))


def read(path: Path, tell: Callable[[str], None]) -> GpuSamples:
    """ParseError where a row does not fit its header."""
    with path.open("rb") as file:
        source = Unpacking(file, _MOST_BYTES)
        data = b"".join(iter(lambda: source.read(1 << 20), b""))
    text = data.decode("utf-8", "replace")
    parse = dcgm_dmon if _DCGM.search(data[:4096]) else nvidia_smi_dmon
    try:
        return GpuSamples(str(path), parse(text))
    except ParseError as error:
        raise ParseError(f"{error.what}; a table of dmon alone can be read") from None
