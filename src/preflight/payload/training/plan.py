"""What a run of the harness is to do, as it was asked for; travels as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Launches in their order: the whole run, one that is killed, one that resumes.
WHOLE, KILLED, RESUMED = "whole", "killed", "resumed"
#: And one of a sweep: a few steps with one setting.
SWEPT = "swept"


class PlanError(Exception):
    """A plan that cannot be one here: why."""


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
    prefetch: int = 2  # batches that each worker has ready
    pin: bool | None = None  # batches in pinned memory; on a GPU, where it is left open
    threads: int = 1  # of a rank on a CPU
    mesh: str = ""  # replicas x pieces of fsdp, such as 2x4; pieces on all ranks where it is empty
    comm_hook: str = "none"  # of comm_hooks.py: what ddp makes of gradients on their way
    compiled: bool = False
    recompute: float = 0.0  # activation checkpointing: of so many of the blocks
    operators: bool = False  # of a sweep: those blocks compute only what is cheap again
    clip: str = "global:1"  # a policy of clipping.py
    resume: bool = True  # kill a run and resume it
    changes: dict[str, Any] = field(default_factory=dict)
    inject: dict[str, str] = field(default_factory=dict)
    silent_s: float = 20.0  # a rank that says nothing for so long is lost, once it has trained
    #: Axes of a sweep and their values; none: the axis' own.
    sweep: dict[str, list[Any]] = field(default_factory=dict)
    counts: bool = False  # of a sweep: count what a step launches, after the steps that are timed
    even_if_busy: bool = False  # beside somebody else's work on the GPUs
    job: str = ""  # of several hosts: what tells our own processes on one of them
    # One run over several hosts; all of them get the same plan.
    hosts: list[str] = field(default_factory=list)  # names in the order of their ranks
    master: str = ""  # address of the first of them
    port: int = 0  # the first of four that are free there: one for each launch, and meet.py's
    addresses: list[str] = field(default_factory=list)  # of each host, and the first of its ports
    ports: list[int] = field(default_factory=list)
    interface: str = ""  # through which they talk
    checkpoints: str = ""  # their folder; the harness decides it

    @property
    def world(self) -> int:
        """Ranks of all hosts."""
        return self.ranks * max(1, len(self.hosts))
