"""Which checks must see which injected fault of training, and on what runs it is tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from preflight.expect.drills import SEEN_BY

#: Learns its chain of tokens in 40 steps of some milliseconds.
SMALL = {"layers": 1, "width": 64, "heads": 2, "kv_heads": 1, "hidden": 128, "vocabulary": 32,
         "length": 32, "batch": 8, "steps": 40, "learning_rate": 1e-2, "warmup": 5}  # fmt: skip
#: The runs that a fault is tried on: two ranks, unless one is enough.
SHARDINGS = ("ddp", "fsdp", "single")


@dataclass(frozen=True)
class Fault:
    """One injected fault. `also`: checks that may say so beside those that must, as a consequence.
    One that is tried on no run says `why` not."""

    name: str
    also: tuple[str, ...] = ()
    argument: str = ""
    resume: bool = False  # it acts on the resume only
    shardings: tuple[str, ...] = SHARDINGS
    plan: dict[str, Any] = field(default_factory=dict)
    why: str = ""

    @property
    def seen(self) -> tuple[str, ...]:
        """The checks that must say so, by any of them."""
        return SEEN_BY[self.name] if self.shardings else ()

    def asked(self, sharding: str, seed: int, shape: dict[str, Any]) -> dict[str, Any]:
        """The plan of a run with it."""
        told = clean(sharding, seed, shape, resume=self.resume)
        return {**told, "inject": {self.name: self.argument}, **self.plan}


def clean(sharding: str, seed: int, shape: dict[str, Any], *, resume: bool) -> dict[str, Any]:
    """A plan without a fault."""
    ranks = 1 if sharding == "single" else 2
    preset = {"preset": "cpu-tiny", "device": "cpu", "changes": shape}
    return {**preset, "sharding": sharding, "ranks": ranks, "seed": seed, "resume": resume}


#: Timings that wander where ranks share their processors with others.
TIMES = frozenset({
    "training.jitter", "training.rest", "training.straggler", "training.data.wait",
    "training.data.loader", "training.data.longest", "training.checkpoint.stall",
})  # fmt: skip

FAULTS = (
    Fault("slow-rank", shardings=("ddp", "fsdp")),
    Fault("slow-loader"),
    Fault("pickle-heavy", argument="400000", shardings=("ddp", "single")),
    # Its steps are longer: as much beside them is still hidden.
    Fault("pickle-heavy", argument="1000000", shardings=("fsdp",)),
    Fault("stall"),
    Fault("kill"),
    Fault("stop", plan={"silent_s": 3.0}),
    # Refused with fsdp and alone: no other rank holds the same parameters.
    Fault("flip-weight", shardings=("ddp",)),
    Fault("flip-gradient", shardings=("ddp",)),
    Fault("nan", SEEN_BY["rate-x100"]),
    Fault("rate-x100", ("training.finite",)),
    Fault("bad-batch"),
    Fault("lost-optimizer", resume=True),
    Fault("repeated-data", SEEN_BY["lost-optimizer"], resume=True),
    Fault("corrupt-checkpoint", resume=True),
    Fault("half-checkpoint", resume=True),
    Fault("full-disk", ("training.resume",), resume=True),
    # Steps are of milliseconds: to look through fewer objects than the default is a share of them.
    Fault("gc-pauses", argument="200000"),
    # Refused on processors.
    Fault("pageable", shardings=(), why="a CPU copies nothing"),
    Fault("tiny-kernels", shardings=(), why="on a CPU an operation costs nothing to launch"),
    Fault("churn", shardings=(), why="a CPU has no allocator of torch's"),
)


@dataclass(frozen=True)
class Seen:
    """What a run's report says: ids of checks by how they ended, the worst of each."""

    failed: frozenset[str]
    warned: frozenset[str]

    def wrong(self, fault: Fault | None, *, steady: bool = True) -> str:
        """What should be otherwise; "" where the report is as it should be. Warnings about times
        are the machine's where a fault was injected, or where it is not a steady one."""
        times = frozenset() if steady else TIMES
        raised = (self.failed | self.warned) - times
        if fault is None:
            return f"raised {', '.join(sorted(raised))}" if raised else ""
        expected = {*fault.seen, *fault.also}
        if fault.seen and not (self.failed | self.warned) & set(fault.seen):
            return f"not seen by {' or '.join(fault.seen)}"
        stray = (self.failed - times | self.warned - TIMES) - expected
        return f"raised {', '.join(sorted(stray))}" if stray else ""
