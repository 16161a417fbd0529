"""Launch lines for this machine: sbatch with one task for each GPU, and torchrun."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from preflight.model import Export, Seat, Snippet
from preflight.placement.advice import software

#: What a shell takes as it stands. A word that begins with = is a command's path to zsh.
_PLAIN = re.compile(r"[A-Za-z0-9_./:,@%+-][A-Za-z0-9_./:,@%+=-]*")
_COLUMNS = 96
#: The first torch whose torchrun binds by itself (docs.pytorch.org/docs/2.9/elastic/numa.html).
_TORCHRUN_BINDS = "2.9"


_NOT_PER_TASK = (
    "# Not --gpus-per-task: each rank must see the other GPUs to copy over NVLink or PCIe."
)


def shell_line(one: Export) -> str:
    """`export NAME=VALUE`, quoted where a shell would read more into the value."""
    if _PLAIN.fullmatch(one.value):
        return f"export {one.name}={one.value}"
    quoted = one.value.replace("'", "'\\''")
    return f"export {one.name}='{quoted}'"


def launchers(
    seats: Sequence[Seat], exports: Sequence[Export], cpus: int, torch: str
) -> tuple[Snippet, ...]:
    """sbatch and torchrun. `cpus`: how many all seats have together, 0 where it is not known."""
    return (
        Snippet("sbatch", _sbatch(seats, exports, cpus)),
        Snippet("torchrun", _torchrun(seats, exports, torch)),
    )


def _sbatch(seats: Sequence[Seat], exports: Sequence[Export], cpus: int) -> str:
    ranks = len(seats)
    each = cpus // ranks
    lines = [
        "#!/bin/bash",
        "#SBATCH --nodes=NODES",
        f"#SBATCH --ntasks-per-node={ranks}",
        *([_NOT_PER_TASK] if ranks > 1 else []),
        f"#SBATCH --gpus-per-node={ranks}",
        *(_cpus_per_task(each, cpus, ranks) if each else ()),
        "#SBATCH --exclusive",
        "",
        *_exports(exports),
        'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        "export MASTER_ADDR MASTER_PORT=29500",
        "# In each task: its place in torch's names, then its seat on this machine.",
        *_task(seats, exports, ("RANK=$SLURM_PROCID", "LOCAL_RANK=$SLURM_LOCALID",
                                "WORLD_SIZE=$SLURM_NTASKS")),
        f'srun {_srun(each)}sh -c "$TASK" task python3 TRAIN.py',
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _cpus_per_task(each: int, cpus: int, ranks: int) -> tuple[str, ...]:
    return (
        f"# {cpus} CPUs for {ranks}; half of it where Slurm counts cores, not threads.",
        f"#SBATCH --cpus-per-task={each}",
    )


def _srun(each: int) -> str:
    """srun takes the count of CPUs from no option of sbatch since Slurm 22.05 (its release notes).
    The seat binds, or nobody."""
    cpus = '--cpus-per-task="$SLURM_CPUS_PER_TASK" ' if each else ""
    return f"{cpus}--cpu-bind=none "


def _binds(seats: Sequence[Seat]) -> bool:
    return any(seat.bind for seat in seats)


def _torchrun(seats: Sequence[Seat], exports: Sequence[Export], torch: str) -> str:
    """To be pasted: zsh takes # at its prompt for a command, so that comments are plain words."""
    by_itself = software.reaches(torch, _TORCHRUN_BINDS)
    own = _binds(seats) and not by_itself
    program = "TRAIN.py"
    if own:
        program = '--no-python sh -c "$TASK" task python3 TRAIN.py'
    elif _binds(seats):
        program = "--numa-binding=node TRAIN.py"
    lines = [
        *([*map(shell_line, exports), ""] if exports else []),
        *(
            ("# In each process: its seat on this machine.", *_task(seats, exports, ()))
            if own
            else ()
        ),
        "# On each of NODES hosts, of which RENDEZVOUS_HOST is one.",
        f"torchrun --nnodes=NODES --nproc-per-node={len(seats)} \\",
        "  --rdzv-backend=c10d --rdzv-endpoint=RENDEZVOUS_HOST:29500 --rdzv-id=train \\",
        f"  {program}",
    ]
    return "\n".join(lines) + "\n"


def _exports(exports: Sequence[Export]) -> list[str]:
    """Each with its reason above it."""
    lines = []
    for one in exports:
        lines += [f"# {part}" for part in textwrap.wrap(one.why, _COLUMNS)]
        lines.append(shell_line(one))
    return [*lines, ""] if lines else []


def _task(seats: Sequence[Seat], exports: Sequence[Export], names: Sequence[str]) -> list[str]:
    """A program for `sh -c` as the variable TASK: names, order of the GPUs, binding by rank."""
    # Slurm sets CUDA_VISIBLE_DEVICES of each task anew, so it is set within.
    again = [shell_line(one) for one in exports if one.name == "CUDA_VISIBLE_DEVICES" and names]
    body = [*([f"export {' '.join(names)}"] if names else []), *again]
    if _binds(seats):
        body += ["case $LOCAL_RANK in", *_cases(seats), "esac"]
    body.append('exec "$@"')
    needs = any(seat.bind.startswith("numactl") for seat in seats)
    note = ["# It needs numactl, of the package of that name."] if needs else []
    return [*note, "TASK='" + "\n".join(body) + "'"]


def _cases(seats: Sequence[Seat]) -> list[str]:
    ranks: dict[str, list[str]] = {}
    for seat in seats:
        ranks.setdefault(seat.bind, []).append(str(seat.local_rank))
    return [f'  {"|".join(who)}) exec {bind} "$@" ;;' for bind, who in ranks.items() if bind]
