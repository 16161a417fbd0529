"""Answers of NCCL's RAS service in the forms of its user guide (2.24 to 2.31); values made up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

HEAD = (
    "NCCL version 2.28.9 compiled with CUDA 12.9\n"
    "CUDA runtime version 12090, driver version 13000\n"
)
TABLE = (
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n"
)
MISSING = (
    "INCOMPLETE\n  Missing communicator data from 1 job process\n"
    "  Process 7105 on node 10.0.0.12 managing GPU 1\n\n"
    "#0-0 (5d1c0ffee0ddba11) INCOMPLETE\n  Missing communicator data from 1 rank\n"
    "  Rank 5 -- GPU 1 managed by process 7105 on node 10.0.0.12\n"
)
DEAD = (
    "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
    "  Process 7105 on node 10.0.0.12 managing GPU 1\n\n"
    "#0-0 (5d1c0ffee0ddba11) INCOMPLETE\n  Missing communicator data from 1 rank\n"
    "  The missing rank: 5\n"
)
TIMED_OUT = "TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n"
FAILED = (
    "#0-0 (5d1c0ffee0ddba11) ERROR\n  Asynchronous errors on 8 ranks\n"
    "  7 ranks reported Remote process error\n"
    "  Rank 6 reported Unhandled CUDA error -- GPU 2 managed by process 7106 on node 10.0.0.12\n"
)


def mismatch(behind: int = 640, ahead: int = 644) -> str:
    return (
        "#0-0 (5d1c0ffee0ddba11) MISMATCH\n"
        "  Communicator ranks have different AllReduce operation counts\n"
        f"  7 ranks have launched up to operation {ahead}\n"
        f"  Rank 3 has launched up to operation {behind} -- GPU 3 (NVML 7) managed by process 6203 "
        "on node 10.0.0.11\n"
    )


def answer(errors: str = "OK", wrong: str = "", warnings: str = "", status: str = "RUNNING") -> str:
    """Two nodes of four GPUs, one communicator of all."""
    return (
        f"{HEAD}\nJob summary\n===========\n\n"
        "  Nodes  Processes         GPUs  Processes     GPUs\n"
        "(total)   per node  per process    (total)  (total)\n"
        "      2          4            1          8        8\n\n"
        f"Communicators... (0.01s)\n=============\n\n{TABLE}"
        f"    0         1         2         4         8         8  {status:>8}  {errors:>6}\n\n"
        f"Errors\n======\n\n{wrong}\nWarnings\n========\n\n{warnings}"
    )


def as_json(
    counts: Mapping[int, int], *, size: int = 8, missing: Mapping[int, bool] | None = None,
    errors: Mapping[int, int] | None = None, at: str = "2026-01-02 03:04:05",
) -> str:  # fmt: skip
    """`counts`: AllReduce by rank; `missing`: rank -> whether it is considered dead."""

    def place(rank: int) -> dict[str, Any]:
        return {"rank": rank, "host": f"10.0.0.{11 + rank // 4}", "pid": 6200 + rank,
                "cuda_dev": rank % 4, "nvml_dev": rank % 4}  # fmt: skip

    ranks = [
        {**place(rank), "status": {
            "init_state": 0, "async_error": (errors or {}).get(rank, 0), "finalize_called": False,
            "destroy_flag": False, "abort_flag": False},
         "collective_counts": {"Broadcast": 2, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0,
                               "AllReduce": count}} for rank, count in counts.items()
    ]  # fmt: skip
    gone = [{**place(rank), "status": {"unresponsive": True, "considered_dead": dead}}
            for rank, dead in (missing or {}).items()]  # fmt: skip
    comm = {"hash": "0x5d1c0ffee0ddba11", "secondary_hash": "0x1:0x2", "size": size,
            "ranks_count": len(ranks), "missing_ranks_count": len(gone), "ranks": ranks,
            "missing_ranks": gone}  # fmt: skip
    return json.dumps({
        "nccl_version": "2.29.1", "cuda_runtime_version": 13000, "cuda_driver_version": 13000,
        "timestamp": at, "communicators_count": 1, "communicators": [comm],
        "ras": {"collection_time_sec": 0.0, "timeouts_count": 0},
    }, indent=2)  # fmt: skip
