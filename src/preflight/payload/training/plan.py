"""What a run of the harness is to do, as it was asked for; travels as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

#: Launches in their order: the whole run, one that is killed, one that resumes.
WHOLE, KILLED, RESUMED = "whole", "killed", "resumed"


@dataclass(frozen=True)
class Plan:
    """`changes`: fields of the preset; `inject`: faults by name, with their argument."""

    preset: str = ""  # by the device, where none is named
    device: str = ""  # cuda where there is one, else cpu
    ranks: int = 0  # on this host; 0: one for each GPU, two on a CPU
    sharding: str = "ddp"  # single | ddp | fsdp
    seed: int = 1
    folder: str = ""  # for shards and checkpoints; a temporary one of its own where none is named
    data: str = ""  # the user's shards
    workers: int = 1
    threads: int = 1  # of a rank on a CPU
    compiled: bool = False
    recompute: bool = False  # activation checkpointing
    resume: bool = True  # kill a run and resume it
    changes: dict[str, Any] = field(default_factory=dict)
    inject: dict[str, str] = field(default_factory=dict)
    silent_s: float = 20.0  # a rank that says nothing for so long is lost, once it has trained
    even_if_busy: bool = False  # beside somebody else's work on the GPUs
    job: str = ""  # of several hosts: what tells our own processes on one of them

    def text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


def read(text: str) -> Plan:
    """The plan that text() wrote. Raises TypeError or ValueError on anything else."""
    return Plan(**json.loads(text))
