"""The kinds of inputs, and what is concluded from which: two tables."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from msgspec import Struct


class Kind(Struct, frozen=True):
    """One kind of file. In its module, imported when a file is looked at:

    `sniff(head: bytes, name: str) -> bool`: whether a file that begins so (unpacked where it is
    gzip, at most HEAD_BYTES) and is called so is of this kind;
    `read(path: Path, tell: Callable[[str], None]) -> fact`: the whole of it, in bounded memory;
    InputError where it is none after all. `tell` is given news of long work.
    """

    name: str
    plural: str
    module: str

    def sniff(self, head: bytes, name: str) -> bool:
        return bool(import_module(self.module).sniff(head, name))

    @property
    def read(self) -> Callable[..., Any]:
        reader: Callable[..., Any] = import_module(self.module).read
        return reader


#: How much of a file is looked at.
HEAD_BYTES = 64 * 1024
#: The first that takes a file has it; a log is what is left of texts.
KINDS: tuple[Kind, ...] = (
    Kind("report", "reports of preflight", "preflight.cli.targets.report_file"),
    Kind("kept-looks", "captures of looks", "preflight.cli.targets.look_file"),
    Kind("gpu-samples", "tables of GPUs", "preflight.logs.samples.gpus"),
    Kind("iostat", "tables of disks", "preflight.logs.samples.iostat"),
    Kind("stacks", "files of stacks", "preflight.logs.hangs.stacks"),
    Kind("ras", "answers of NCCL's RAS service", "preflight.logs.hangs.ras"),
    Kind("flight-recorder", "flight-recorder dumps", "preflight.logs.hangs.flight_recorder"),
    Kind("timeline", "timelines", "preflight.traces.timeline"),
    Kind("trace", "traces", "preflight.traces.kineto"),
    Kind("log", "training logs", "preflight.logs.training.log"),
)


class Concluding(Struct, frozen=True):
    """Who concludes from which kinds: `reading(facts, asked) -> Reading | None`; `facts` is a dict
    of the kind's name -> what was read, in the order given; None where there is nothing to say."""

    module: str
    kinds: tuple[str, ...]

    @property
    def reading(self) -> Callable[..., Any]:
        made: Callable[..., Any] = import_module(self.module).reading
        return made


CONCLUDING: tuple[Concluding, ...] = (
    Concluding("preflight.diagnosis.hang.from_hang", ("flight-recorder", "stacks", "log")),
    Concluding("preflight.diagnosis.hang.from_ras", ("ras", "look", "kept-looks")),
    Concluding("preflight.diagnosis.step_time.from_log", ("log",)),
    Concluding("preflight.diagnosis.step_time.from_trace", ("trace",)),
    Concluding("preflight.diagnosis.step_time.from_timeline", ("timeline",)),
    Concluding("preflight.diagnosis.step_time.from_report", ("report",)),
    Concluding("preflight.diagnosis.step_time.from_samples", ("gpu-samples", "iostat")),
    Concluding("preflight.diagnosis.step_time.from_live", ("look", "kept-looks")),
)
