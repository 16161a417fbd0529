"""nccl-tests: its binaries, their options, and the environment that they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Of --collective, and what measures it.
BINARIES = {
    "all_reduce": "all_reduce_perf", "all_gather": "all_gather_perf",
    "reduce_scatter": "reduce_scatter_perf", "all_to_all": "alltoall_perf",
    "broadcast": "broadcast_perf", "reduce": "reduce_perf", "sendrecv": "sendrecv_perf",
}  # fmt: skip
#: Of --dtype, as nccl-tests calls it (-d).
TYPES = {"float32": "float", "float16": "half", "bfloat16": "bfloat16"}
#: From latency to the plateau, judged from 1 GB on; three buffers of 4 GiB fit into any GPU that
#: trains.
_BEGIN_BYTES, _END_BYTES, _FACTOR = 8, 1 << 32, 2
#: NCCL tells its ways in the same text, and they are judged with the numbers.
_TOLD = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,GRAPH"}
#: What the options name.
_ASKED = {"NCCL_SOCKET_IFNAME": "interface", "NCCL_IB_HCA": "nics"}
#: Would lead what NCCL tells away from that text.
_ELSEWHERE = "NCCL_DEBUG_FILE"
#: Where Debian and Ubuntu have Open MPI.
_MPI_HOME = "/usr/lib/x86_64-linux-gnu/openmpi"
#: Stands for the number of GPUs where no host has told it yet.
GPUS = "GPUS"


def collectives_of(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """Those that were asked for; all where none was named."""
    return tuple(plan.get("collectives") or BINARIES)


def probe_of(number: int) -> str:
    """What the answer of the collective at `number`, from 0, is called."""
    return "nccl-tests" if not number else f"nccl-tests#{number + 1}"


def arguments(binary: str, plan: Mapping[str, Any], gpus: int | str) -> tuple[str, ...]:
    """The command line of a binary; `gpus`: of one process."""
    begin, end = plan.get("begin_bytes", _BEGIN_BYTES), plan.get("end_bytes", _END_BYTES)
    words = {
        "-b": min(begin, end), "-e": max(begin, end), "-f": plan.get("factor", _FACTOR),
        "-d": TYPES[plan.get("dtype", "float32")], "-c": 1, "-g": gpus,
    }  # fmt: skip
    return (binary, *(str(word) for pair in words.items() for word in pair))


def environment(of: Mapping[str, str], plan: Mapping[str, Any]) -> dict[str, str]:
    """The variables of NCCL that are in force, of those in `of` and of the plan's interface and
    adapters: named one by one, so that they stand in the record."""
    mine = {name: text for name, text in of.items() if name.startswith("NCCL_")}
    mine.pop(_ELSEWHERE, None)
    mine |= {name: plan[key] for name, key in _ASKED.items() if plan.get(key)}
    return mine if "NCCL_DEBUG" in mine else {**mine, **_TOLD}


def with_environment(variables: Mapping[str, str], argv: Sequence[str]) -> tuple[str, ...]:
    """The command, given these variables."""
    return ("env", *(f"{name}={text}" for name, text in sorted(variables.items())), *argv)


def without_mpi(paths: Sequence[str], hosts: Sequence[str]) -> tuple[str, str]:
    """That binaries cannot work together over several hosts, and what to type."""
    where = f"{paths[0]} ({hosts[0]})" if hosts else paths[0]
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    folder = paths[0].rpartition("/")[0].removesuffix("/build")
    what = f"{where}{more}: built without MPI, each process would be rank 0 of 1 and measure itself"
    return (
        what,
        f"cd {folder} && make clean && make MPI=1 MPI_HOME={_MPI_HOME}",
    )
