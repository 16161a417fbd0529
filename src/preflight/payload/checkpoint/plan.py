"""What is to be scanned, and how closely."""

from __future__ import annotations

from typing import NamedTuple


class Plan(NamedTuple):
    """`values`: whether numbers are looked at (NaN, Inf, runs of zeros), or checksums alone;
    `sample_bytes`: of the bytes of tensors at most so many are read, spread evenly; None is all."""

    paths: tuple[str, ...]
    values: bool = True
    sample_bytes: int | None = None
    workers: int = 0  # files at once; 0: as many as there are cores, 16 at most
