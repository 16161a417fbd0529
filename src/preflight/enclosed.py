"""The matrix of `nvidia-smi topo -m` that a report of the software holds: vllm's collect_env and
sglang's check_env print it below a heading of theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from preflight.model import Raw

_HOLDS = ("collect-env", "sglang-env")
_MATRIX = "nvidia-smi-topo"
#: With or without the matrix's own first tab, which vllm strips.
_HEADING = re.compile(
    r"^[ \t]*(?:GPU|NVIDIA) Topology[ \t]*:[ \t]*\n(?=[ \t]*GPU0[ \t])", re.MULTILINE
)
#: What is neither a row, nor of the legends, nor blank: rows begin with a device.
_BEHIND = re.compile(
    r"^(?![ \t]*(?:$|GPU\d|NIC\d|mlx\w*[ \t]|Legend:|NIC Legend:"
    r"|(?:X|SYS|NODE|PHB|PXB|PIX|NV#|SOC)[ \t]+=))",
    re.MULTILINE,
)


def with_matrix(raws: Sequence[Raw]) -> list[Raw]:
    """The answers, and the matrix in one of them where it was not given by itself."""
    if any(raw.probe == _MATRIX for raw in raws):
        return list(raws)
    found = [part for raw in raws if raw.probe in _HOLDS and (part := _matrix_in(raw))]
    return [*raws, *found[:1]]


def _matrix_in(report: Raw) -> Raw | None:
    text = str(report.stdout)
    heading = _HEADING.search(text)
    if heading is None:
        return None
    behind = _BEHIND.search(text, heading.end())
    end = behind.start() if behind else len(text)
    offset = report.line_offset + text.count("\n", 0, heading.end())
    return replace(report, probe=_MATRIX, stdout=text[heading.end() : end], line_offset=offset)
