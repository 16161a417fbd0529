"""What a bench of storage is to do; cli/storing.py makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """`dir` "": a directory of a local file system is looked for. `size_bytes`: of all files at
    once; `seconds`: of all jobs. `job_file`: the user's own, in place of ours. `hosts`: so many do
    this at the same time, and share the bytes where they share the file system. Without `measure`
    the directory is only tried (proof.py). `patterns`: fio, and of patterns.py. `job`: a word of
    this job alone, by which several hosts know each other's files (seen.py). `workers` of a
    loader, 0: as many as there are processors, up to 8; `window_bytes`: what they read at once.
    `demand_mbps`: so much each host must be able to read, in 1e6 bytes a second; 0: not stated.
    `writers` of a checkpoint on each host, 0: as many as there are GPUs. With `look` nothing is
    written: it is told whether directory and job file are taken."""

    dir: str = ""
    size_bytes: int = 4 << 30
    seconds: float = 60.0
    job_file: str = ""
    hosts: int = 1
    even_if_busy: bool = False
    measure: bool = True
    job: str = ""
    patterns: Sequence[str] = ("fio",)
    workers: int = 0
    window_bytes: int = 128 << 10
    demand_mbps: float = 0.0
    writers: int = 0
    look: bool = False
