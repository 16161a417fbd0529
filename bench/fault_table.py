"""Which checks must see which injected fault of training, and on what runs it is tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Learns its chain of tokens in 40 steps of some milliseconds.
SMALL = {"layers": 1, "width": 64, "heads": 2, "kv_heads": 1, "hidden": 128, "vocabulary": 32,
         "length": 32, "batch": 8, "steps": 40, "learning_rate": 1e-2, "warmup": 5}  # fmt: skip
#: The runs that a fault is tried on: two ranks, unless one is enough.
SHARDINGS = ("ddp", "fsdp", "single")


@dataclass(frozen=True)
class Fault:
    """One injected fault. `seen`: the checks that must say so, by any of them; `also`: others that
    may, as a consequence. Where nothing can be seen, `why` says why not."""

    name: str
    seen: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    argument: str = ""
    resume: bool = False  # it acts on the resume only
    shardings: tuple[str, ...] = SHARDINGS
    plan: dict[str, Any] = field(default_factory=dict)
    why: str = ""

    def asked(self, sharding: str, seed: int, shape: dict[str, Any]) -> dict[str, Any]:
        """The plan of a run with it."""
        told = clean(sharding, seed, shape, resume=self.resume)
        return {**told, "inject": {self.name: self.argument}, **self.plan}


def clean(sharding: str, seed: int, shape: dict[str, Any], *, resume: bool) -> dict[str, Any]:
    """A plan without a fault."""
    ranks = 1 if sharding == "single" else 2
    preset = {"preset": "cpu-tiny", "device": "cpu", "changes": shape}
    return {**preset, "sharding": sharding, "ranks": ranks, "seed": seed, "resume": resume}
