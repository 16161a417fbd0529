"""One GPU as a report of nvidia-smi shows it, and the lists in it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from preflight.facts.gpu import MigInstance, Process
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.nvidia_smi.fields import Form
from preflight.probes.values import bytes_of, count, missing_of, words

Rows = list[dict[str, str]]


class Block(Struct):
    """One GPU as a report shows it: path -> text, and path -> line where it stands. `index`: its
    number where the report itself gives one.

    A row of `processes` or `instances` has paths below its own section.
    """

    bus_id: str
    line: int
    fields: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    processes: Rows = field(default_factory=list)
    instances: Rows = field(default_factory=list)
    index: int | None = None


class Head(Struct):
    """What stands above the GPUs; `line` is that of the driver's version, else of the head."""

    line: int = 0
    version: str | None = None
    cuda: str | None = None
    attached: str | None = None


#: By form: the ends of the paths in the rows of a list.
_PROCESS: dict[Form, tuple[str, str, str, str]] = {
    "xml": ("pid", "type", "process_name", "used_memory"),
    "text": ("process id", "type", "name", "used gpu memory"),
}
_INSTANCE: dict[Form, tuple[str, str, str]] = {
    "xml": ("gpu_instance_id", "multiprocessor_count", "fb_memory_usage/total"),
    "text": ("gpu instance id", "multiprocessor count", "fb memory usage/total"),
}
MIG_SECTIONS: dict[Form, tuple[str, ...]] = {
    "xml": ("mig_devices",),
    "text": ("mig device", "mig devices"),
}


def _ending(row: dict[str, str], end: str) -> str | None:
    return next((text for path, text in row.items() if path.endswith(end)), None)


def processes(form: Form, block: Block) -> Known[tuple[Process, ...]]:
    said = block.fields.get("processes")
    if not block.processes:
        return NOT_IN_INPUT if said is None else _none(said)
    found = []
    for row in block.processes:
        pid, kind, name, memory = (_ending(row, end) for end in _PROCESS[form])
        number = NOT_IN_INPUT if pid is None else count(pid)
        if isinstance(number, Missing):
            return Missing("unreadable", f"a process without an id: {number.text}")
        used = NOT_IN_INPUT if memory is None else bytes_of(memory)
        found.append(
            Process(
                number, (kind or "").strip(), NOT_IN_INPUT if name is None else words(name), used
            )
        )
    return tuple(found)


def graphical(processes: Known[tuple[Process, ...]]) -> Known[bool]:
    if isinstance(processes, Missing):
        return processes
    return any("G" in process.kind for process in processes)


def _none(said: str) -> Known[tuple[Any, ...]]:
    """An empty list from "None" or from an empty element, else why there is no list."""
    if said in ("", "None"):
        return ()
    return missing_of(said) or Missing("unreadable", f"'{said[:60]}' is no list")


def instances(form: Form, block: Block, mode: Known[str]) -> Known[tuple[MigInstance, ...]]:
    said = next((block.fields[s] for s in MIG_SECTIONS[form] if s in block.fields), None)
    if not block.instances:
        if said is not None:
            return _none(said)
        # The text has no section at all where there is no instance.
        return mode if isinstance(mode, Missing) else () if mode == "Disabled" else NOT_IN_INPUT
    found = []
    for row in block.instances:
        which, processors, memory = (_ending(row, end) for end in _INSTANCE[form])
        number = NOT_IN_INPUT if which is None else count(which)
        if isinstance(number, Missing):
            return Missing("unreadable", f"a MIG device without a GPU instance: {number.text}")
        found.append(
            MigInstance(
                number,
                NOT_IN_INPUT if processors is None else count(processors),
                NOT_IN_INPUT if memory is None else bytes_of(memory),
            )
        )
    return tuple(found)
