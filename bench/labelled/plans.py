"""What is run, and what a right diagnosis of it begins with: one row for each fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

SEEDS = (1, 2, 3)
#: Ranks of a run; one is a run alone, four share their gradients (DDP over gloo).
RANKS = (1, 4)
#: Steps of some milliseconds of one core, besides what a device takes.
SHAPE = {"layers": 1, "width": 64, "heads": 2, "kv_heads": 1, "hidden": 128, "vocabulary": 64,
         "length": 64, "batch": 4, "steps": 100, "learning_rate": 3e-3, "warmup": 10}  # fmt: skip
#: Of a log or a look that has no signal for the cause: it cannot tell, and must say so.
UNTOLD = ("healthy", "step.unknown", "compute")
#: Faults that measure a few steps first: that it became slower is what such a log shows.
_SLOWER = (*UNTOLD, "drift")
HEALTHY = ("healthy", "compute", "step.unknown")
Answers = tuple[str, ...]


class Fault(Struct, frozen=True):
    """Answers are findings that are right when they stand first, with the subject where one is to
    be named; `traces` and `look` empty: not recorded so. `data`: of a log that tells the time for
    data, `ranks`: of one that tells times by rank, `log`: of all others."""

    name: str  # of --inject; "" is none
    report: Answers = HEALTHY
    log: Answers = UNTOLD
    data: Answers = ()
    by_rank: Answers = ()
    traces: Answers = ()
    look: Answers = ()
    argument: str = ""
    ranks: tuple[int, ...] = RANKS
    resume: bool = False  # it acts on the resume only


_WAITS = ("data-wait",)
_LAST = ("straggler rank 3",)
FAULTS = (
    # Ranks that share cores wait for them, and for each other in turn: nobody is to blame.
    Fault("", traces=(*HEALTHY, "imbalance"), look=(*HEALTHY, "host node1")),
    Fault("slow-rank", _LAST, _SLOWER, by_rank=_LAST, traces=_LAST, look=_LAST, ranks=(4,)),
    Fault("slow-loader", _WAITS, _SLOWER, data=_WAITS, traces=_WAITS, look=_WAITS),
    Fault("pickle-heavy", _WAITS, data=_WAITS, traces=_WAITS, look=_WAITS, argument="1000000"),
    Fault("stall", ("irregular", "data-wait"), ("irregular",), ("irregular", "data-wait")),
    Fault("kill", ("crash",), ("crash",)),
    Fault("stop", ("hang",), look=("hang", "stopped")),
    Fault("gc-pauses", ("python-gc",), look=("python-gc", "host"), argument="300000"),
    Fault("nan", ("not-training",), ("not-training",)),
    Fault("rate-x100"),
    Fault("bad-batch"),
    Fault("flip-weight", ranks=(4,)),
    Fault("flip-gradient", ranks=(4,)),
    Fault("lost-optimizer", resume=True),
    Fault("repeated-data", resume=True),
    Fault("corrupt-checkpoint", resume=True),
    Fault("half-checkpoint", resume=True),
    Fault("full-disk", resume=True),
)  # fmt: skip
BY_NAME = {one.name: one for one in FAULTS}


class Tried(Struct, frozen=True):
    """One run."""

    fault: Fault
    ranks: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.fault.name or 'none'}-x{self.ranks}-{self.seed}"

    def plan(self, **changes: Any) -> dict[str, Any]:
        """For the harness."""
        return {
            "preset": "cpu-tiny", "device": "cpu", "changes": SHAPE | changes, "ranks": self.ranks,
            "sharding": "ddp" if self.ranks > 1 else "single", "seed": self.seed,
            "resume": self.fault.resume, "silent_s": 8.0,
            "inject": {self.fault.name: self.fault.argument} if self.fault.name else {},
        }  # fmt: skip


def tried(only: str = "") -> Iterator[Tried]:
    """All runs, or those of one fault (`none` is without any)."""
    for fault in FAULTS:
        if only in ("", fault.name or "none"):
            for ranks in fault.ranks:
                for seed in SEEDS:
                    yield Tried(fault, ranks, seed)
