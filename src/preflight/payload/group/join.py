"""A process becomes a rank: it finds the others, and has said a first word to all of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

#: A rank that says nothing for so long is lost: in a run of a minute nothing takes longer. Who
#: launched it is to say so first (ranks.py): the library knows no more than that it waited.
SILENT_S, _LATER_S = 60, 30
#: Until all ranks of one host, or of several that do not start together, are there.
_MEET_S, _MEET_HOSTS_S = 15, 60
#: The first rank says who is missing before the others say that they waited.
_LAST_WORD = timedelta(seconds=10)


@dataclass(frozen=True)
class Place:
    """This process among all: as torchrun's variables tell it."""

    rank: int
    ranks: int
    local_rank: int
    device: torch.device

    @property
    def gpu(self) -> bool:
        return bool(self.device.type == "cuda")


class JoinError(Exception):
    """The ranks do not find each other, or cannot talk: why."""


def join(device: str, came: Callable[[], None] = lambda: None) -> Place:
    """Become a rank. Alone there is no process group. Raises JoinError."""
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    at = torch.device(device, local) if device == "cuda" else torch.device("cpu")
    if device == "cuda":
        torch.cuda.set_device(at)
    if ranks > 1:
        _meet(rank, ranks, "nccl" if device == "cuda" else "gloo", at, came)
    return Place(rank, ranks, local, at)


def _meet(rank: int, ranks: int, backend: str, at: torch.device, came: Callable[[], None]) -> None:
    """Rendezvous at the first rank, and a first word to all: what cannot work fails here."""
    master, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    alone = ranks == int(os.environ.get("LOCAL_WORLD_SIZE", ranks))
    limit = timedelta(seconds=_MEET_S if alone else _MEET_HOSTS_S)
    where = f"rank {rank} of {ranks}: the rendezvous at {master} port {port}"
    try:
        store = dist.TCPStore(
            master, port, ranks, is_master=rank == 0, timeout=limit, wait_for_workers=False
        )
        _all_there(store, rank, ranks, limit)
    except JoinError as error:
        raise JoinError(f"{where}: {error}") from error
    except Exception as error:
        in_use = "EADDRINUSE" in str(error) or "in use" in str(error)
        reason = "the port is in use" if in_use else _first_line(error)
        raise JoinError(f"{where}: {reason}") from error
    came()
    try:
        dist.init_process_group(
            backend,
            store=store,
            rank=rank,
            world_size=ranks,
            timeout=timedelta(seconds=SILENT_S + _LATER_S),
        )
        dist.all_reduce(torch.zeros((), device=at))
        if at.type == "cuda":
            torch.cuda.synchronize(at)
    except Exception as error:
        raise JoinError(f"rank {rank} of {ranks}: {backend} cannot start: {_first_line(error)}"
                        ) from error  # fmt: skip


def _all_there(store: dist.TCPStore, rank: int, ranks: int, limit: timedelta) -> None:
    """Wait until each rank has come to the rendezvous. The first knows who has not, and the others
    wait for its word. Raises JoinError with the ranks that did not come."""
    store.set(f"came/{rank}", "")
    words = [f"came/{other}" for other in range(ranks)] if rank == 0 else ["all"]
    try:
        store.wait(words, limit if rank == 0 else limit + _LAST_WORD)
    except Exception as error:
        if rank:
            raise
        absent = [other for other in range(ranks) if not store.check([f"came/{other}"])]
        told = ", ".join(map(str, absent[:8])) + (" ..." if len(absent) > 8 else "")
        text = f"{len(absent)} of {ranks} did not come within {limit.seconds} s: rank {told}"
        raise JoinError(f"{text}{_on_hosts(absent)}") from error
    if rank == 0:
        store.set("all", "")


def _on_hosts(ranks: list[int]) -> str:
    """The hosts of these ranks, where the launcher tells them: " (h2, h3)"."""
    hosts = os.environ.get("PREFLIGHT_HOSTS", "").split(",")
    each = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    names = dict.fromkeys(hosts[rank // each] for rank in ranks if rank // each < len(hosts))
    told = ", ".join(list(names)[:8])
    return f" ({told})" if told else ""


def _first_line(error: Exception) -> str:
    """Of what a library says; a trace of C++ calls may follow it."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
