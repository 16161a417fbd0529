"""Records tests/samples/own/flight_recorder: THIS FOLDER CASE..., four ranks on gloo."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 4


def _stuck(case: str, rank: int, groups: Sequence[dist.ProcessGroup]) -> None:
    """The call in which all stand that come to it; rank 2 is the one that does otherwise."""
    odd, (first, second, third) = rank == 2, groups
    if case == "order" and rank in (1, 2):
        for group in (third, second) if odd else (second, third):
            dist.all_reduce(torch.ones(4), group=group)
    elif case == "type" and odd:
        dist.broadcast(torch.ones(8), 0)
    elif case == "cascade" and rank < 2:
        dist.all_reduce(torch.ones(4), group=(first, second)[rank])
    elif case == "size":
        dist.all_reduce(torch.ones(16 if odd else 8))
    elif case == "dtype":
        dist.all_reduce(torch.ones(8, dtype=torch.float64 if odd else torch.float32))
    elif case in ("never", "cascade", "type", "dead", "forms") and not (odd and case != "type"):
        dist.all_reduce(torch.ones(8))


def _rank(rank: int, case: str, folder: str) -> None:
    os.environ["TORCH_FR_BUFFER_SIZE"] = "200"
    store = f"file://{folder}/store"
    dist.init_process_group(
        "gloo", init_method=store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=60)
    )
    first = dist.new_group([0, 1], group_desc="pair_a")
    second = dist.new_group([1, 2], group_desc="pair_b")
    third = dist.new_group([1, 2], group_desc="pair_c")
    for _ in range(3):
        dist.all_reduce(torch.ones(8))
    threading.Thread(target=_stuck, args=(case, rank, (first, second, third)), daemon=True).start()
    time.sleep(2)
    if case == "dead" and rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    recorder = torch._C._distributed_c10d
    if case == "forms" and rank % 2:
        told = recorder._dump_fr_trace_json(True, False)
        Path(folder, f"trace_rank_{rank}.json").write_bytes(told)
    else:
        Path(folder, f"trace_rank_{rank}").write_bytes(recorder._dump_fr_trace(True, True, False))
    time.sleep(1)
    os._exit(0)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        out = Path(sys.argv[1], name)
        out.mkdir(parents=True, exist_ok=True)
        ranks = [mp.get_context("spawn").Process(target=_rank, args=(at, name, str(out)))
                 for at in range(RANKS)]  # fmt: skip
        for one in ranks:
            one.start()
        for one in ranks:
            one.join(90)
        (out / "store").unlink(missing_ok=True)
