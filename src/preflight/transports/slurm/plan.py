"""What one srun is to do."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from msgspec import Struct

from preflight.model import Command


class Plan(Struct, frozen=True):
    """What one srun is to do. `nodes` is empty where srun is to get them; `job` is the allocation
    that we are in; `heard` says that another srun of the same run has told of hosts already."""

    argv: Sequence[str]
    environ: dict[str, str]
    nodes: tuple[str, ...]
    commands: Sequence[Command]
    mark: str
    sudo: bool
    deadline_s: float
    job: str
    heard: bool
    interrupted: threading.Event
