"""How many reports of nvidia-smi one text holds: two hosts, or two looks at one, are no answer."""

from __future__ import annotations

import re
from collections import Counter

from preflight.probes.values import bus_id

_END, _BEGIN, _DOCTYPE = "</nvidia_smi_log>", "<nvidia_smi_log", "<!DOCTYPE nvidia_smi_log"
#: A bus id with blotted digits tells no GPU from another.
_GPU = re.compile(
    r"^[ \t]*GPU[ \t]+([\da-fA-F]{4,8}:[\da-fA-F]{2}:[\da-fA-F]{2}\.\d|\d+:\d+:\d+)[ \t]*$", re.M
)
_HEAD = re.compile(r"^[ \t]*(Driver Version|Attached GPUs)[ \t]*:[ \t]*(\S+)", re.M)
_LABEL = re.compile(r"^([ \t]+)([^:\s][^:\n]*)", re.M)
_TABLE = re.compile(r"^[ \t]*\| {0,9}NVIDIA-SMI [\d.]+ ", re.M)
#: What every full report shows of a GPU, and no section of -d does.
_FULL = "Product Name"


def xml_reports(text: str) -> int:
    """Documents of `nvidia-smi -q -x`, whole or cut."""
    pieces = text.split(_END)
    return max(text.count(_DOCTYPE), sum(_BEGIN in piece for piece in pieces))


def text_reports(text: str) -> int:
    """Reports of `nvidia-smi -q`. Different sections (-d) of one host are one."""
    gpus: dict[str, list[frozenset[str]]] = {}
    found = list(_GPU.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends, strict=False):
        gpus.setdefault(bus_id(match[1]), []).append(_sections(text[match.end() : end]))
    heads = [(match[1], match[2]) for match in _HEAD.finditer(text)]
    looks = max(map(_looks, gpus.values()), default=1)
    counts = [int(value) for name, value in heads if name == "Attached GPUs" and _is_count(value)]
    hosts = max(Counter(name for name, _ in set(heads)).values(), default=1)
    if counts and len(gpus) > max(counts):
        hosts = max(hosts, 2)
    return max(looks, hosts)


def _is_count(text: str) -> bool:
    return re.fullmatch("[0-9]{1,4}", text) is not None


def tables(text: str) -> int:
    """Tables of bare `nvidia-smi`."""
    return len(_TABLE.findall(text))


def _sections(block: str) -> frozenset[str]:
    """The labels of the first level below a GPU's line."""
    labels = [(match[1].expandtabs(), match[2].rstrip()) for match in _LABEL.finditer(block)]
    return frozenset(label for indent, label in labels if indent == labels[0][0])


def _looks(blocks: list[frozenset[str]]) -> int:
    """How often the same of one GPU was printed."""
    same = Counter(block for block in blocks if block)
    full = sum(_FULL in block for block in blocks)
    return max([full, *same.values()], default=1)
