"""From the fields of a report of nvidia-smi to the facts: read, derived, and found again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from preflight.facts.gpu import (
    Clocks,
    Driver,
    Ecc,
    Fabric,
    Gpu,
    Memory,
    Mig,
    NvidiaSmi,
    Pcie,
    Power,
    Remap,
    Retired,
    Temperature,
    Throttle,
)
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.nvidia_smi.block import (
    MIG_SECTIONS,
    Block,
    Head,
    graphical,
    instances,
    processes,
)
from preflight.probes.nvidia_smi.derived import DERIVED, SHOWN_BY, Facts, leave_to_host, name_guest
from preflight.probes.nvidia_smi.fields import LABELS, SOURCES, Addend, Convert, Form, Source
from preflight.probes.nvidia_smi.numbers import name_of, numbers
from preflight.probes.nvidia_smi.sentences import LostGpu, Sentences
from preflight.probes.values import count, is_error, is_lost, missing_of, needs_reset, words

_GROUPS: dict[str, type[Struct]] = {
    "pcie": Pcie, "ecc": Ecc, "retired": Retired, "remap": Remap, "throttle": Throttle,
    "temperature": Temperature, "power": Power, "clocks": Clocks, "mig": Mig, "memory": Memory,
    "fabric": Fabric,
}  # fmt: skip


def report(form: Form, probe: str, head: Head, blocks: list[Block], said: Sentences) -> NvidiaSmi:
    """The facts of one report. A GPU that has only a sentence takes its place by bus id."""
    attached = NOT_IN_INPUT if head.attached is None else count(head.attached)
    entries = _entries(blocks, said)
    gpus = []
    for at, (entry, index) in enumerate(zip(entries, numbers(entries, attached), strict=True)):
        name = name_of(index, entry.bus_id, at)
        lost = entry if isinstance(entry, LostGpu) else _sentence_of(entry, said)
        if isinstance(entry, Block) and (entry.fields or not lost):
            gpu = _gpu(form, entry, lost)
        elif lost:
            gpu = _silent(lost)
        gpus.append(structs.replace(gpu, index=index, name=name, probe=probe))
    line = head.line or said.line
    driver = Driver("answers", "", _known(head.version), _known(head.cuda), line, probe)
    whole = isinstance(attached, int) and len(gpus) >= attached
    return NvidiaSmi(driver, attached, tuple(_warned(gpu, said, whole) for gpu in gpus))


def _entries(blocks: list[Block], said: Sentences) -> list[Block | LostGpu]:
    """Every GPU that is listed or told of, in nvidia-smi's order."""
    entries: list[Block | LostGpu] = list(blocks)
    for one in said.lost:
        if not any(_is_about(one, block) for block in blocks):
            entries.insert(_place(one.bus_id, one.index, entries), one)
    for address, line in said.corrupt.items():
        if not any(entry.bus_id == address for entry in entries):
            entries.insert(_place(address, None, entries), Block(address, line))
    return entries


def _is_about(lost: LostGpu, block: Block) -> bool:
    if lost.bus_id:
        return lost.bus_id == block.bus_id
    return lost.index is not None and lost.index == block.index


def _sentence_of(block: Block, said: Sentences) -> LostGpu | None:
    return next((one for one in said.lost if _is_about(one, block)), None)


def _warned(gpu: Gpu, said: Sentences, whole: bool) -> Gpu:
    """With the warning of its infoROM. That there is none is known only of a whole report: it
    stands behind the GPUs."""
    if gpu.bus_id in said.corrupt:
        return structs.replace(gpu, inforom_corrupted=True)
    if whole and gpu.inforom_corrupted == NOT_IN_INPUT and gpu.answers != NOT_IN_INPUT:
        return structs.replace(gpu, inforom_corrupted=False)
    return gpu


def _known(text: str | None) -> Known[str]:
    return NOT_IN_INPUT if text is None else words(text)


def _place(address: str, index: int | None, entries: Sequence[Block | LostGpu]) -> int:
    """nvidia-smi counts GPUs in the order of their bus ids."""
    if not address:
        return len(entries) if index is None else min(index, len(entries))
    later = (i for i, entry in enumerate(entries) if entry.bus_id > address)
    return next(later, len(entries))


def _silent(lost: LostGpu) -> Gpu:
    """A GPU of which nothing could be read but a sentence."""
    why = lost.missing
    own = ("index", "name", "bus_id", "line", "probe", "answers", "reset_required", *_GROUPS)
    facts: dict[str, Any] = {f.name: why for f in structs.fields(Gpu) if f.name not in own}
    for name, group in _GROUPS.items():
        facts[name] = group(**{f.name: why for f in structs.fields(group)})
    facts["reset_required"] = True if lost.to_reset else why
    return Gpu(0, "", lost.bus_id, lost.line, answers=_answers_to(lost), **facts)


def _answers_to(lost: LostGpu) -> Known[bool]:
    """A refusal tells who may ask, not how the GPU is; one that waits for its reset is not lost."""
    return lost.missing if lost.missing.kind == "denied" or lost.to_reset else False


def _gpu(form: Form, block: Block, lost: LostGpu | None) -> Gpu:
    facts: Facts = {
        fact: supplied(source, block.fields)[0] for fact, source in SOURCES[form].items()
    }
    if any(map(needs_reset, block.fields.values())) or (lost and lost.to_reset):
        facts["reset_required"] = True
    name_guest(facts)
    leave_to_host(facts)
    for fact, derive in DERIVED.items():
        facts[fact] = derive(facts)
    facts["answers"] = _answers_to(lost) if lost else _answers(block)
    facts["unreadable"] = _errors(form, block)
    facts["processes"] = processes(form, block)
    facts["graphical"] = graphical(facts["processes"])
    facts["mig.instances"] = instances(form, block, facts["mig.mode"])
    top: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {name: {} for name in _GROUPS}
    for fact, value in facts.items():
        group, dot, name = fact.rpartition(".")
        (groups[group] if dot else top)[name] = value
    for name, values in groups.items():
        top[name] = _GROUPS[name](**values)
    return Gpu(0, "", block.bus_id, block.line, **top)


def supplied(source: Source, fields: Mapping[str, str]) -> tuple[Known[Any], str]:
    """The value of a fact and the path that it comes from, "" where none does.

    `fields`: path -> text. A section that is itself a word ("Remapped Rows : N/A") stands for
    all of its fields.
    """
    first: tuple[Known[Any], str] | None = None
    for spelling in source.spellings:
        found = _total(spelling, source.convert, fields)
        if found is None:
            continue
        if not isinstance(found[0], Missing):
            return found
        first = first or found
    return first or _of_section(source, fields)


def _total(
    spelling: tuple[Addend, ...], convert: Convert, fields: Mapping[str, str]
) -> tuple[Known[Any], str] | None:
    """The sum and the path of its largest addend; None where an addend is absent. Those that the
    device does not have add nothing; one that cannot be read leaves the sum unknown."""
    values: list[tuple[Known[Any], str]] = []
    for path, optional in spelling:
        text = fields.get(path)
        if text is not None:
            values.append((convert(text), path))
        elif not optional:
            return None
    known = [(value, path) for value, path in values if not isinstance(value, Missing)]
    for value, path in values:
        if isinstance(value, Missing) and (value.kind != "not-applicable" or not known):
            return value, path
    return (sum(value for value, _ in known), max(known)[1]) if len(known) > 1 else known[0]


def _of_section(source: Source, fields: Mapping[str, str]) -> tuple[Known[Any], str]:
    for spelling in source.spellings:
        section = spelling[0].path.rpartition("/")[0]
        while section:
            gone = missing_of(fields.get(section, "-"))
            if gone is not None:
                return gone, section
            section = section.rpartition("/")[0]
    return NOT_IN_INPUT, ""


def _answers(block: Block) -> Known[bool]:
    if not block.fields:
        return NOT_IN_INPUT
    if any(is_lost(text) for text in block.fields.values()):
        return False
    waits = next((text for text in block.fields.values() if needs_reset(text)), None)
    return True if waits is None else Missing("unreadable", waits.strip("[]"))


def _errors(form: Form, block: Block) -> Known[tuple[str, ...]]:
    if not block.fields:
        return NOT_IN_INPUT
    known = LABELS[form]
    return tuple(
        f"{known.get(path) or _label(path)}: {text}"
        for fields in (block.fields, *block.instances)
        for path, text in fields.items()
        if is_error(text)
    )


def _label(path: str) -> str:
    """A label for a field that the table does not know: the last tag or label in words."""
    return path.rpartition("/")[2].replace("_", " ").title() or "GPU"


def line_of(form: Form, block: Block, fact: str) -> int | None:
    """The line of the report that shows `fact` of this GPU; None where none does."""
    waits = [path for path, text in block.fields.items() if needs_reset(text)]
    if fact == "reset_required" and waits:
        paths = waits
    elif fact in ("answers", "unreadable"):
        wanted = is_lost if fact == "answers" else is_error
        paths = [path for path, text in block.fields.items() if wanted(text)]
    elif fact == "processes":
        paths = ["processes"]
    elif fact == "mig.instances":
        paths = list(MIG_SECTIONS[form])
    else:
        found = [
            supplied(SOURCES[form][name], block.fields)
            for name in SHOWN_BY.get(fact, (fact,))
            if name in SOURCES[form]
        ]
        found.sort(key=lambda value_and_path: isinstance(value_and_path[0], Missing))
        paths = [path for _, path in found]
    return next((block.lines[path] for path in paths if path in block.lines), None)
