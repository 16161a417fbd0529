"""GPU state, from nvidia-smi's XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from xml.etree.ElementTree import Element

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.gpu import NvidiaSmi
from preflight.model import NOT_IN_INPUT
from preflight.printable import printable
from preflight.probes.nvidia_smi.block import Block, Head
from preflight.probes.nvidia_smi.fields import SOURCES
from preflight.probes.nvidia_smi.gpu import line_of, report
from preflight.probes.nvidia_smi.sentences import (
    driver_silence,
    sentence_line,
    sentences,
    silence_beside,
)
from preflight.probes.spec import probe
from preflight.probes.values import bus_id
from preflight.probes.xml_text import parsed

_DOCTYPE, _ROOT = "<!DOCTYPE nvidia_smi_log", "<nvidia_smi_log"
_ROOT_END, _GPU_END = "</nvidia_smi_log>", "</gpu>"
_CLOCKS, _CLOCKS_END = "<supported_clocks>", "</supported_clocks>"
#: Not among a GPU's fields: lists with rows of their own, and lists that no fact is read from
#: (accounting keeps up to 4000 processes per GPU).
_LISTS = frozenset({"processes", "mig_devices", "supported_clocks", "accounted_processes"})
#: No field lies deeper; more would only cost memory.
_DEPTH = 8
# nvidia-smi writes names of processes as they are: a bare "&" is its slip, not a cut.
_BARE_AMPERSAND = re.compile(r"&(?!(?:[A-Za-z_][\w.-]*|#[0-9]+|#x[0-9A-Fa-f]+);)")


def locate(text: str, record_line: int, field_path: str) -> int:
    """The line of `text` that shows a field of the GPU whose record begins at `record_line`."""
    line = _line_of_only_tag(text, record_line, field_path)
    if line is not None:
        return line
    block = _block_at(text, record_line)
    if block is None:
        return record_line
    said = sentence_line(text, block.bus_id, field_path)
    return said or line_of("xml", block, field_path) or record_line


def _line_of_only_tag(text: str, record_line: int, field_path: str) -> int | None:
    """Most facts have one tag, and most tags stand once in a GPU: no need to parse it again."""
    source, span = SOURCES["xml"].get(field_path), _span(text, record_line)
    if span is None or source is None or len(source.spellings) > 1 or len(source.spellings[0]) > 1:
        return None
    start, end = span
    tag = f"<{source.spellings[0][0].path.rpartition('/')[2]}>"
    at = text.find(tag, start, end)
    if at < 0 or text.find(tag, at + 1, end) >= 0:
        return None
    return record_line + text.count("\n", start, at)


@lru_cache(maxsize=16)
def _span(text: str, record_line: int) -> tuple[int, int] | None:
    start = text.find("<gpu", _offset(text, record_line))
    end = text.find(_GPU_END, start)
    if start < 0 or end < 0 or text.count("\n", 0, start) != record_line - 1:
        return None
    return start, end


# A GPU with one fault often has several: its block is read once for all of them.
@lru_cache(maxsize=16)
def _block_at(text: str, record_line: int) -> Block | None:
    span = _span(text, record_line)
    if span is None:
        return None
    start, end = span
    try:
        root, lines = _parse("\n" * (record_line - 1) + text[start : end + len(_GPU_END)])
    except ParseError:
        return None
    return _block(root, lines)


@probe(
    "nvidia-smi",
    ["nvidia-smi", "-q", "-x"],
    timeout_s=30,
    waits_for="driver",
    with_stderr=True,
    locate=locate,
)
def nvidia_smi_xml(text: str) -> NvidiaSmi:
    """One report. Of a text that was cut, the GPUs that are whole; raises ParseError."""
    said = sentences(text)
    start = min((at for at in map(text.find, (_DOCTYPE, _ROOT)) if at >= 0), default=-1)
    if start < 0:
        if said.line:
            return report("xml", "nvidia-smi", Head(), [], said)
        silence = driver_silence(text, "nvidia-smi")
        if silence is None:
            got = printable(text.strip()[:60])
            raise ParseError(f"expected nvidia-smi -q -x output, got '{got}'")
        return NvidiaSmi(silence, NOT_IN_INPUT, ())
    root, lines = _parse("\n" * text.count("\n", 0, start) + _whole(text, start))
    if root.tag != "nvidia_smi_log":
        raise ParseError(
            f"expected <nvidia_smi_log>, got <{printable(root.tag[:60])}>", lines[root]
        )
    blocks = [_block(gpu, lines) for gpu in root if gpu.tag == "gpu"]
    head = _head(root, lines)
    if not (blocks or said.line or head.line):
        last = text.rstrip().count("\n") + 1
        raise ParseError(f"the XML ends at line {last}, before its first GPU is whole", last)
    found = report("xml", "nvidia-smi", head, blocks, said)
    # A whole report may list fewer than it announces: then the others are lost, not unread.
    ends = text.find(_ROOT_END, start) >= 0
    cut = found.cut or not (ends or len(blocks) == found.attached)
    return replace(found, silence=silence_beside(text, "nvidia-smi"), cut=cut)


def _offset(text: str, line: int) -> int:
    """Where the line of that number begins; the end of the text where there is none."""
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _whole(text: str, start: int) -> str:
    """The document from `start`; of one that was cut, what stands before the cut and is whole."""
    end = text.find(_ROOT_END, start)
    if end >= 0:
        return text[start : end + len(_ROOT_END)]
    end = text.rfind(_GPU_END, start)
    if end >= 0:
        return text[start : end + len(_GPU_END)] + _ROOT_END
    head = text[start:].partition("<gpu")[0]
    last = head.rfind("</")
    while last >= 0 and ">" not in head[last:]:
        last = head.rfind("</", 0, last)
    if last >= 0:
        return head[: head.index(">", last) + 1] + _ROOT_END
    return f"{_ROOT}>{_ROOT_END}"


def _without_clocks(text: str) -> str:
    """Nine tenths of a report are lists of clocks; in their place as many empty lines, inside of
    the tag, where they cost the parser nothing and keep its line numbers right."""
    parts, at = [], 0
    while True:
        start = text.find(_CLOCKS, at)
        end = text.find(_CLOCKS_END, start) if start >= 0 else -1
        if end < 0:
            break
        parts += [text[at:start], "<supported_clocks", "\n" * text.count("\n", start, end), "/>"]
        at = end + len(_CLOCKS_END)
    return "".join([*parts, text[at:]])


def _parse(text: str) -> tuple[Element, dict[Element, int]]:
    trimmed = _without_clocks(text)
    return parsed(_BARE_AMPERSAND.sub("&amp;", trimmed) if "&" in trimmed else trimmed)


def _head(root: Element, lines: dict[Element, int]) -> Head:
    found = {child.tag: child for child in root}
    version, cuda, attached = (
        found.get(tag) for tag in ("driver_version", "cuda_version", "attached_gpus")
    )
    first = next((e for e in (version, cuda, attached) if e is not None), None)
    return Head(
        0 if first is None else lines[first],
        *(None if e is None else (e.text or "").strip() for e in (version, cuda, attached)),
    )


def _block(gpu: Element, lines: dict[Element, int]) -> Block:
    address = gpu.get("id") or gpu.findtext("pci/pci_bus_id") or ""
    block = Block(bus_id(address), lines[gpu])
    said = (gpu.text or "").strip()
    if said:  # "GPU is lost" in place of fields
        block.fields[""] = said
        block.lines[""] = block.line
    for path, element in _below(gpu, "", _DEPTH):
        text = (element.text or "").strip()
        block.lines.setdefault(path, lines[element])
        if text or not len(element):
            block.fields.setdefault(path, text)
    block.processes = [_row(one) for one in gpu.iterfind("processes/process_info")]
    block.instances = [_row(one) for one in gpu.iterfind("mig_devices/mig_device")]
    return block


def _below(element: Element, above: str, depth: int) -> Iterator[tuple[str, Element]]:
    """The path and the element of everything below, in the order of the document."""
    for child in element:
        path = above + child.tag
        yield path, child
        if depth and len(child) and child.tag not in _LISTS:
            yield from _below(child, path + "/", depth - 1)


def _row(element: Element) -> dict[str, str]:
    below = _below(element, "", _DEPTH)
    return {path: (one.text or "").strip() for path, one in below if not len(one)}
