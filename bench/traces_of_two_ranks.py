"""Records tests/samples/own/traces: torchrun --nproc-per-node 2 THIS FAULT FOLDER, then gzip -9."""

from __future__ import annotations

import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

FAULT, FOLDER = (*sys.argv[1:3], "", "")[:2]


class Numbers(torch.utils.data.Dataset):  # type: ignore[misc]
    """Random rows; with loader1 slow ones on rank 1."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, at: int) -> torch.Tensor:
        if FAULT == "loader1" and dist.get_rank() == 1:
            time.sleep(0.004)
        return torch.randn(256)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    layers = [torch.nn.Linear(256, 256) for _ in range(6)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.AdamW(model.parameters())
    batches = iter(torch.utils.data.DataLoader(Numbers(), batch_size=16))
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=3, warmup=1, active=8),
        on_trace_ready=tensorboard_trace_handler(FOLDER, f"rank{rank}"),
    ) as profiler:
        for step in range(12):
            batch = next(batches)
            if (FAULT == "slow1" and rank == 1) or (FAULT == "random" and (step + 1) % 2 == rank):
                time.sleep(0.05)
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
