"""Answers that stand in others: the matrix of `nvidia-smi topo -m` in a report of the software,
below a heading of vllm's collect_env and of sglang's check_env; what NCCL wrote while a bench was
timed, in its lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from preflight.model import Raw
from preflight.nccl_text import PROBE, taken_out

_BENCH = "nccl-bench"
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


def with_log(raws: Sequence[Raw]) -> list[Raw]:
    """The answers, and what NCCL wrote while the bench among them was timed as one of its own,
    beside the logs that were given."""
    logs = sum(raw.probe.partition("#")[0] == PROBE for raw in raws)
    name = f"{PROBE}#{logs + 1}" if logs else PROBE
    found = [replace(raw, probe=name, stdout=mine[0].stdout, stderr="", rc=0, missing=None)
             for raw in raws if raw.probe == _BENCH
             and (mine := taken_out(_text(raw), raw.source)[0])]  # fmt: skip
    return [*raws, *found]


def _text(raw: Raw) -> str:
    return raw.stdout if isinstance(raw.stdout, str) else raw.stdout.decode(errors="replace")


def _matrix_in(report: Raw) -> Raw | None:
    text = str(report.stdout)
    heading = _HEADING.search(text)
    if heading is None:
        return None
    behind = _BEHIND.search(text, heading.end())
    end = behind.start() if behind else len(text)
    offset = report.line_offset + text.count("\n", 0, heading.end())
    return replace(report, probe=_MATRIX, stdout=text[heading.end() : end], line_offset=offset)
