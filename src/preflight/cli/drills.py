"""--inject: which faults there are, and which cannot take effect in the run that is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from preflight.cli.options import Options, are_many
from preflight.errors import UsageError

#: Those of payload/training/inject.py, as the tables below; a test holds them together.
FAULTS = (
    "slow-rank", "slow-loader", "pickle-heavy", "stall", "kill", "stop", "flip-weight",
    "flip-gradient", "nan", "rate-x100", "bad-batch", "lost-optimizer", "repeated-data",
    "corrupt-checkpoint", "half-checkpoint", "full-disk", "pageable", "tiny-kernels", "churn",
    "gc-pauses",
)  # fmt: skip
#: What the number behind the colon is of; the others take none.
NUMBER_OF = {
    **dict.fromkeys(("slow-rank", "kill", "stop", "flip-weight", "flip-gradient"), "rank"),
    **dict.fromkeys(("stall", "nan", "bad-batch"), "step"),
    "slow-loader": "milliseconds of a sample", "pickle-heavy": "objects of a batch",
    "rate-x100": "times of the learning rate", "tiny-kernels": "operations of a step",
}  # fmt: skip
OF_RESUME = ("lost-optimizer", "repeated-data", "corrupt-checkpoint", "half-checkpoint")
OF_SEVERAL = ("slow-rank", "flip-weight", "flip-gradient")
OF_REPLICAS = ("flip-weight", "flip-gradient")
ON_GPUS = ("pageable", "tiny-kernels", "churn")
#: The loss of a step is held against so many before it.
BEFORE_JUMP = 10
#: Where a machine has a GPU, of whatever maker, one of these is there.
_GPU_SIGNS = ("dev/nvidia[0-9]*", "dev/nvidiactl", "dev/kfd", "dev/dxg", "proc/driver/nvidia")


def has_no_gpu(options: Options) -> bool:
    """Whether this machine trains, and has none for certain."""
    if are_many(options):
        return False
    return not any(next(Path("/").glob(sign), None) for sign in _GPU_SIGNS)


def world(options: Options) -> int | None:
    """Ranks, where that is known before anything is asked."""
    if are_many(options):
        return None
    if options.ranks is not None:
        return options.ranks
    if options.sharding == "single":
        return 1
    return min(2, len(os.sched_getaffinity(0))) if has_no_gpu(options) else None


def faults(options: Options, steps: int | None) -> Iterator[tuple[str, str]]:
    """Each fault with its number; `steps` of the run, where they are known. Raises UsageError."""
    for one in options.inject:
        name, _, argument = one.partition(":")
        _hold_written(one, name, argument)
        counts = {"rank": world(options), "step": steps}
        count = counts.get(NUMBER_OF.get(name, ""))
        if argument and count is not None and int(argument) >= count:
            number = NUMBER_OF[name]
            raise UsageError(f"--inject {one}: there is no {number} {argument}",
                             f"the last is {name}:{count - 1}")  # fmt: skip
        _hold_effect(options, one, steps)
        yield name, argument


def _hold_written(one: str, name: str, argument: str) -> None:
    if name not in FAULTS:
        raise UsageError(f"--inject {name!r} is no fault", f"one of {', '.join(FAULTS)}")
    number = NUMBER_OF.get(name, "")
    if ":" in one and not number:
        raise UsageError(f"--inject {one}: {name} takes no number", f"--inject {name}")
    if ":" in one and not re.fullmatch(r"\d{1,9}", argument):
        raise UsageError(f"--inject {one}: {argument!r} is no number", f"{name}:1, the {number}")


def _hold_effect(options: Options, one: str, steps: int | None) -> None:
    """Refuse a fault that does nothing in this run, or nothing that a check could see."""
    name = one.partition(":")[0]
    for names, idle, why, hint in (
        (OF_RESUME, options.no_resume, "nothing is resumed with --no-resume",
         "leave out --no-resume"),
        ((*OF_RESUME, "full-disk"), are_many(options) and not options.folder,
         "several hosts resume from a folder that all of them share", "--folder /scratch/me"),
        (OF_SEVERAL, world(options) == 1, "one rank has no other to be held against",
         f"--ranks 2 --inject {one}"),
        (OF_REPLICAS, _without_replicas(options),
         "with fsdp no other rank holds the same parameters",
         f"--sharding ddp --inject {one}; or --mesh with two replicas"),
        (ON_GPUS, has_no_gpu(options), "it shows only on GPUs, and this machine has none",
         "--hosts names machines that have some"),
        (("nan",), options.precision == "fp16", "the scaler of fp16 leaves such a step out",
         f"--precision bf16 --inject {one}"),
        (("bad-batch",), _too_early(one, steps),
         f"a loss is held against those of the {BEFORE_JUMP} steps before it",
         f"--inject bad-batch:{BEFORE_JUMP} or later, --steps {3 * BEFORE_JUMP} or more"),
    ):  # fmt: skip
        if idle and name in names:
            raise UsageError(f"--inject {one} would not be seen: {why}", hint)


def _without_replicas(options: Options) -> bool:
    replicas = options.mesh.partition("x")[0] if options.mesh else "1"
    return options.sharding == "fsdp" and replicas == "1"


def _too_early(one: str, steps: int | None) -> bool:
    """Whether the step, a third of the run where none is named, has too few before it."""
    argument = one.partition(":")[2]
    at = int(argument) if argument else None if steps is None else steps // 3
    return at is not None and at < BEFORE_JUMP
