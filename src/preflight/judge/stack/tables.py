"""The tables of checks/data that say which versions fit, as records; read on first use."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from preflight import datafiles, strict_yaml
from preflight.judge.versions import is_of, release
from preflight.kept import kept

T = TypeVar("T")


class CudaRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """The driver that a CUDA first came with."""

    cuda: str
    driver: str


class MinorFrom(Struct, frozen=True, forbid_unknown_fields=True):
    """From which driver on every CUDA of one first number runs."""

    major: int
    driver: str


class Capability(Struct, frozen=True, forbid_unknown_fields=True):
    """A compute capability: the first CUDA that knows it, and the first that does not any more; the
    first driver, where it is a later one than that of the generation."""

    capability: str
    since: str
    dropped: str = ""
    driver: str = ""


class Generation(Struct, frozen=True, forbid_unknown_fields=True):
    """Which drivers have a generation of GPUs: from `first`, up to the branch `last`."""

    generation: str
    first: str = ""
    last: int = 0


class NotForward(Struct, frozen=True, forbid_unknown_fields=True):
    """A branch of drivers, and the first CUDA whose compatibility package leaves it out."""

    branch: int
    cuda: str


class CudaTable(Struct, frozen=True, forbid_unknown_fields=True):
    """checks/data/cuda_compat.yaml"""

    releases: tuple[CudaRelease, ...]
    minor_from: tuple[MinorFrom, ...]
    not_forward: tuple[NotForward, ...]
    capabilities: tuple[Capability, ...]
    generations: tuple[Generation, ...]


class TorchRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of checks/data/torch_releases.yaml: what belongs to a release of torch."""

    torch: str
    torchvision: str = ""
    torchaudio: str = ""
    torchtext: str = ""
    triton: str = ""
    archs: dict[str, str] = {}


@cache
def cuda_table() -> CudaTable:
    """Drivers, CUDA and GPUs."""
    table: CudaTable = _table("cuda_compat", CudaTable, lambda document: document)
    return table


@cache
def torch_releases() -> tuple[TorchRelease, ...]:
    """What belongs to which torch."""
    found: tuple[TorchRelease, ...] = _table(
        "torch_releases", tuple[TorchRelease, ...], lambda document: document["rows"]
    )
    return found


def torch_release(version: str) -> TorchRelease | None:
    """The row of a released torch; None for one that is built from a state between releases."""
    if is_between_releases(version):
        return None
    return next((row for row in torch_releases() if is_of(version, row.torch)), None)


def is_between_releases(version: str) -> bool:
    """Whether it is a nightly (2.6.0.dev20240914) or a state of the source (2.1.0a0+32f93b1)."""
    public = version.partition("+")[0]
    return bool(release(public)) and not all(part.isdigit() for part in public.split("."))


def _table(name: str, kind: Any, rows: Any) -> Any:
    path = datafiles.root() / "checks" / "data" / f"{name}.yaml"
    place = path.parent / "__pycache__" / f"{name}.msgpack"

    def read() -> Any:
        document = strict_yaml.load(path.read_text(encoding="utf-8"), f"checks/data/{path.name}")
        return msgspec.convert(_plain(rows(document)), kind)

    return kept(place, kind, [path, Path(__file__)], read)


def _plain(value: Any) -> Any:
    """Mappings that remember their lines as plain ones."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value
