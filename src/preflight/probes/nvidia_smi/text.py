"""GPU state, from the text of `nvidia-smi -q`, whole, by sections, or an excerpt of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.gpu import NvidiaSmi
from preflight.model import NOT_IN_INPUT
from preflight.printable import printable
from preflight.probes.nvidia_smi.block import Block, Head, Rows
from preflight.probes.nvidia_smi.fields import LABELS
from preflight.probes.nvidia_smi.gpu import line_of, report
from preflight.probes.nvidia_smi.sentences import (
    driver_silence,
    is_sentence,
    sentence_line,
    sentences,
    silence_beside,
)
from preflight.probes.spec import probe
from preflight.probes.values import bus_id, count, is_lost, needs_reset

#: The bus id in full (digits may be blotted out with X), or as very old drivers wrote it: 0:5:0.
_GPU = re.compile(
    r"\s*GPU\s+(\w{4,8}:\w{2}:\w{2}\.\w|[0-9]{1,3}:[0-9]{1,3}:[0-9]{1,3})\s*", re.ASCII
)
_TITLE = re.compile(r"\s*=+\s?NVSMI LOG\s?=+\s*")
#: Where an author left something out of what is shown: "[...]", "...".
_GAP = re.compile(r"[\[(<]*\s*(?:\.{2,}|…|snip(?:ped)?)\s*[\])>]*", re.IGNORECASE)
_HEAD = {"driver version": "version", "cuda version": "cuda", "attached gpus": "attached"}
_ABOVE = ("timestamp", *_HEAD)
#: Lists, by the first label of the path: their rows repeat the same labels.
_PROCESSES = ("processes",)
_INSTANCES = ("mig device", "mig devices")


def _below(paths: Iterable[str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for path in (*paths, "processes/process id"):
        section = ""
        for label in path.split("/"):
            found.setdefault(section, set()).add(label)
            section = label
    return {section: frozenset(labels) for section, labels in found.items()}


#: Section -> the labels directly below it; "" -> those below a GPU's own line.
_BELOW = _below(LABELS["text"])
_KNOWN = frozenset().union(_ABOVE, *_BELOW.values())
_TOP = frozenset({path.partition("/")[0] for path in LABELS["text"]} | {*_PROCESSES, *_INSTANCES})
_LOST_LAYOUT = (
    "the indentation is lost, and with it what belongs to which section: paste it as it was "
    "printed, or use nvidia-smi -q -x"
)


class _Line(NamedTuple):
    """One line of the text; `value` is None where it has a label only, `label` None for a gap."""

    number: int
    indent: int
    label: str | None
    value: str | None


class _Part(NamedTuple):
    """The lines of one GPU; `line` is its own, or the first of them where the text has none."""

    bus_id: str
    line: int
    indent: int
    lines: list[_Line]


def locate(text: str, record_line: int, field_path: str) -> int:
    """The line of `text` that shows a field of the GPU whose record begins at `record_line`."""
    parts = _parts_of(text)
    at = next((at for at, part in enumerate(parts) if part.line == record_line), None)
    if at is None:
        return record_line
    parts = parts[at:]
    address = parts[0].bus_id
    said = sentence_line(text, address, field_path)
    if said:
        return said
    same = [part for part in parts if part is parts[0] or (address and part.bus_id == address)]
    # Of two sections with the same field the later was believed.
    for part in reversed(same):
        line = line_of("text", _block(part), field_path)
        if line is not None:
            return line
    return record_line


# One text is looked into once for all that did not pass.
@lru_cache(maxsize=2)
def _parts_of(text: str) -> tuple[_Part, ...]:
    return tuple(_parts(text.split("\n"), 1, Head()))


@probe("nvidia-smi-q", ["nvidia-smi", "-q"], timeout_s=30, locate=locate)
def nvidia_smi_text(text: str) -> NvidiaSmi:
    """One report, or the sections of several; raises ParseError where `text` is none."""
    head = Head()
    parts = list(_parts(text.split("\n"), 1, head))
    if _is_cut(text, head, parts):
        parts[-1].lines.pop()  # what was "16x" may end as "1"
    blocks: list[Block] = []
    for block in map(_block, parts):
        before = next((b for b in blocks if b.bus_id and b.bus_id == block.bus_id), None)
        if before is not None:
            _merge(before, block)
        elif block.bus_id or _is_excerpt(block):
            blocks.append(block)
    begun = _lacks_its_begin(blocks)
    said = sentences(text)
    if head.line or said.line or any(b.fields or b.processes or b.instances for b in blocks):
        found = report("text", "nvidia-smi-q", head, blocks, said)
        cut = begun or any(map(_lacks_its_end, blocks))
        return replace(found, cut=cut, silence=silence_beside(text, "nvidia-smi-q"))
    silence = driver_silence(text, "nvidia-smi-q")
    if silence is None:
        got = printable(text.strip()[:60])
        raise ParseError(f"expected nvidia-smi -q output, got '{got}'")
    return NvidiaSmi(silence, NOT_IN_INPUT, ())


def _is_cut(text: str, head: Head, parts: list[_Part]) -> bool:
    """Whether the last line may lack its end: unfinished, and fewer GPUs than were announced."""
    if text.endswith("\n") or not (parts and parts[-1].lines):
        return False
    announced = NOT_IN_INPUT if head.attached is None else count(head.attached)
    return isinstance(announced, int) and announced > len({part.bus_id for part in parts} - {""})


def _lacks_its_end(block: Block) -> bool:
    """A whole report names the product near its head and ends each GPU with its processes; a GPU's
    line with nothing below it is the last of a text that was cut."""
    if block.bus_id and not (block.fields or block.processes or block.instances):
        return True
    whole = "product name" in block.fields
    return whole and not block.processes and "processes" not in block.fields


def _lacks_its_begin(blocks: list[Block]) -> bool:
    """Whether a GPU without its line stands above whole ones: the text begins in the middle of it.
    What it says of its address then names it."""
    if not blocks or blocks[0].bus_id or not any("product name" in b.fields for b in blocks[1:]):
        return False
    address = bus_id(blocks[0].fields.get("pci/bus id", ""))
    if address not in {block.bus_id for block in blocks}:
        blocks[0].bus_id = address
    return True


def _is_excerpt(block: Block) -> bool:
    """Whether lines without a GPU's own line are some of a GPU's. A label that stands alone, such
    as Product Name, proves nothing: other tools print it too."""
    if block.processes or "processes" in block.fields:
        return True
    return any("/" in path and path in LABELS["text"] for path in block.fields)


def _parts(lines: list[str], first: int, head: Head) -> Iterator[_Part]:
    """The lines of each GPU in turn; what stands above the first one goes into `head`."""
    part = _Part("", 0, -1, [])
    above: _Line | None = None
    for number, text in enumerate(lines, first):
        if not text or text.isspace() or is_sentence(text):
            continue
        gpu = _GPU.fullmatch(text)
        if gpu:
            if part.line:
                yield _without_strangers(part)
            part = _Part(bus_id(gpu[1]), number, _indent(text), [])
            above = _Line(number, part.indent, "", None)
            continue
        line = _line(text.expandtabs() if "\t" in text else text, number)
        if above and _is_flat(above, line):
            raise ParseError(_LOST_LAYOUT, number)
        if line.value is None:
            above = line
        elif above and line.indent > above.indent:
            above = None
        if _is_above(line, text, part, head) or line.indent <= part.indent:
            continue
        if not part.line:
            part = part._replace(line=number)
        part.lines.append(line)
    if part.line:
        yield _without_strangers(part)


def _is_flat(above: _Line, line: _Line) -> bool:
    """Whether a line that belongs into the section above it does not stand deeper."""
    if above.label is None or line.indent > above.indent:
        return False
    return (line.label or "").lower() in _BELOW.get(above.label.lower(), ())


def _without_strangers(part: _Part) -> _Part:
    """Of lines without a GPU's own line those that may be of its sections: prompts and notes around
    an excerpt stand further left than its first section."""
    if part.bus_id:
        return part
    top = min((i.indent for i in part.lines if (i.label or "").lower() in _TOP), default=0)
    kept = [line for line in part.lines if line.indent >= top]
    return part._replace(line=kept[0].number if kept else part.line, lines=kept)


def _indent(text: str) -> int:
    text = text.expandtabs()
    return len(text) - len(text.lstrip())


def _line(text: str, number: int) -> _Line:
    stripped = text.strip()
    indent = len(text) - len(text.lstrip())
    if _GAP.fullmatch(stripped):
        return _Line(number, indent, None, None)
    label, colon, value = stripped.partition(" :")
    if not colon:  # the blanks before it may be lost
        short, colon, rest = stripped.partition(":")
        label, colon, value = (short, colon, rest) if short.lower() in _KNOWN else (label, "", "")
    return _Line(number, indent, " ".join(label.split()), value.strip() if colon else None)


def _is_above(line: _Line, text: str, part: _Part, head: Head) -> bool:
    """Whether a line belongs to the head of a report, and not to a GPU. The first one counts."""
    if _TITLE.fullmatch(text):
        return True
    name = (line.label or "").lower()
    if name not in _ABOVE or line.value is None or (part.bus_id and line.indent > part.indent):
        return False
    attribute = _HEAD.get(name)
    if attribute and getattr(head, attribute) is None:
        setattr(head, attribute, line.value)
        if attribute == "version" or not head.line:
            head.line = line.number
    return True


def _block(part: _Part) -> Block:
    """The tree of a GPU's lines, by their indentation, as paths."""
    block = Block(part.bus_id, part.line)
    top = min((line.indent for line in part.lines if line.label is not None), default=0)
    above: list[tuple[int, str]] = []
    for number, indent, label, value in part.lines:
        while above and above[-1][0] >= indent:
            above.pop()
        if label is None:
            above.clear()
            continue
        # Deeper than the first level with nothing above: the section's own line was left out.
        section = above[-1][1] if above else "" if indent == top else "?/"
        path = section + label.lower()
        above.append((indent, path + "/"))
        _take(block, path, label, value, number)
    return block


def _take(block: Block, path: str, label: str, value: str | None, number: int) -> None:
    section, _, rest = path.partition("/")
    if rest and section in _PROCESSES and value is not None:
        _into_row(block.processes, rest, value)
    elif rest and section in _INSTANCES and value is not None:
        _into_row(block.instances, rest, value)
    elif value is not None:
        block.fields.setdefault(path, value)
    elif is_lost(label) or needs_reset(label):
        path = ""  # said of the GPU as a whole
        block.fields.setdefault(path, label)
    block.lines.setdefault(path, number)


def _into_row(rows: Rows, path: str, value: str) -> None:
    """A label that the row has already begins the next row."""
    if not rows or path in rows[-1]:
        rows.append({})
    rows[-1][path] = value


def _merge(block: Block, later: Block) -> None:
    """The same GPU again, in another section or another report: what comes later counts."""
    block.fields.update(later.fields)
    if later.processes or "processes" in later.fields:
        block.processes = later.processes
    if later.instances or "mig mode/current" in later.fields:
        block.instances = later.instances
