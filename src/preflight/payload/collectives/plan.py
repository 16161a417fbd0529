"""What a bench is to do, as it was asked for; travels as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field


class PlanError(Exception):
    """A plan that cannot be one here: why."""


@dataclass(frozen=True)
class Plan:
    """Sizes are those of nccl-tests: of the buffer that a rank has when the collective is done, or,
    where that is only a piece, before it."""

    device: str = ""  # cuda where there is one, else cpu
    least_gpus: int = 0  # fewer, and nothing is done: active.py looks before torch is loaded
    ranks: int = 0  # on this host; 0: one for each GPU, two on a CPU
    collectives: list[str] = field(default_factory=list)  # none: all of operations.py
    begin_bytes: int = 0  # 0: by the device
    end_bytes: int = 0
    factor: int = 0
    dtype: str = "float32"
    size_s: float = 0.0  # most seconds that one size is repeated; 0: by the device
    silent_s: float = 60.0  # a rank that says nothing for so long is lost
    threads: int = 1  # of a rank on a CPU
    seed: int = 1
    interface: str = ""  # through which ranks talk
    even_if_busy: bool = False
    job: str = ""  # of several hosts: what tells our own processes on one of them
    # Over several hosts; all of them get the same plan.
    hosts: list[str] = field(default_factory=list)  # names, in the order of the ring
    master: str = ""  # address of the first of them, which leads
    port: int = 0  # the first of some in a row that are free there
    addresses: list[str] = field(default_factory=list)  # of each host, and the first of its ports
    ports: list[int] = field(default_factory=list)
    locate: bool = True  # look for the host or link that is slow
    pairwise: bool = False  # try each pair of hosts
    locate_bytes: int = 0  # of the collective that is compared; 0: by the device
    repeats: int = 7  # of each test, of which the median counts
    behind_percent: float = 8.0  # what is so far below the others is slow
    # What more is done (parts.py).
    nics: str = ""  # NCCL_IB_HCA of all ranks
    #: A variable and its values, held against each other: "" first, where it is not set.
    sweep: list[list[str]] = field(default_factory=list)
    lasting_s: float = 0.0  # one collective again and again for so long
    wire: str = ""  # rdma, tcp, or auto: the links by themselves, without collectives
    inside: bool = True  # GPUs, fabrics and rails of what is slow
