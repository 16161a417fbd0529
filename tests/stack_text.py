"""Stacks as py-spy and faulthandler write them, of ranks that are made up."""

from __future__ import annotations

from collections.abc import Sequence

WAITS = (
    "all_reduce (torch/distributed/distributed_c10d.py:2501)",
    "wrapper (torch/distributed/c10d_logger.py:81)",
    "reduce_gradients (train.py:40)",
    "<module> (train.py:90)",
)
BARRIER = (
    "barrier (torch/distributed/distributed_c10d.py:4100)",
    "wrapper (torch/distributed/c10d_logger.py:81)",
    "evaluate (eval.py:12)",
    "<module> (train.py:93)",
)
LOADS = (
    "Condition.wait (threading.py:320)",
    "Queue.get (queue.py:171)",
    "_MultiProcessingDataLoaderIter._try_get_data (torch/utils/data/dataloader.py:1131)",
    "_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:630)",
    "train (train.py:33)",
    "<module> (train.py:90)",
)
SAVES = (
    "_save (torch/serialization.py:862)",
    "save (torch/serialization.py:619)",
    "save_checkpoint (checkpoint.py:55)",
    "<module> (train.py:90)",
)
COMPUTES = ("forward (model.py:77)", "train (train.py:36)", "<module> (train.py:90)")
BACKWARD = (
    "_engine_run_backward (torch/autograd/graph.py:823)",
    "backward (torch/autograd/__init__.py:347)",
    "train (train.py:38)",
    "<module> (train.py:90)",
)
OTHER = ("Thread.run (threading.py:975)", "Thread._bootstrap (threading.py:995)")


def spied(
    frames: Sequence[str], pid: int = 4711, command: str = "python train.py", state: str = "idle",
    second: str = "idle",
) -> str:  # fmt: skip
    """One process of py-spy: its first thread, and another."""
    return (
        f"Process {pid}: {command}\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
        f'Thread {pid} ({state}): "MainThread"\n'
        + "".join(f"    {one}\n" for one in frames)
        + f'Thread {pid + 9} ({second}): "heartbeat"\n'
        + "".join(f"    {one}\n" for one in OTHER)
    )


def faulted(frames: Sequence[str], ident: int = 0x7F00, current: bool = True) -> str:
    """The same by faulthandler."""

    def lines(stack: Sequence[str]) -> str:
        told = ""
        for frame in stack:
            name, _, place = frame.rpartition(" (")
            path, _, line = place.rstrip(")").rpartition(":")
            told += f'  File "/job/{path}", line {line} in {name.rpartition(".")[2]}\n'
        return told

    head = "Current thread" if current else "Thread"
    return (
        f"Thread {ident + 1:#018x} (most recent call first):\n{lines(OTHER)}\n"
        f"{head} {ident:#018x} (most recent call first):\n{lines(frames)}"
    )
