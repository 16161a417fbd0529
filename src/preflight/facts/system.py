"""What the host lets a training process have: limits, cgroups, shared memory, disks, time."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known

#: The word of the kernel's tools, `max` and `infinity` included: more than any number.
Unlimited = Literal["unlimited"]
UNLIMITED: Unlimited = "unlimited"
Amount = int | Unlimited


class Limit(Struct, frozen=True):
    """A resource limit (getrlimit(2)) of somebody; memlock and stack in bytes, the others count."""

    name: str  # nofile (shell)
    resource: str  # nofile | memlock | nproc | stack
    of: str  # shell | pid 4711 | slurmd.service | systemd's default | report
    soft: Known[Amount] = NOT_IN_INPUT
    hard: Known[Amount] = NOT_IN_INPUT
    in_use: Known[int] = NOT_IN_INPUT  # open files of a process
    in_use_percent: Known[float] = NOT_IN_INPUT  # of its soft limit
    configured_soft: Known[Amount] = NOT_IN_INPUT  # what limits.conf gives the shell's user
    configured_hard: Known[Amount] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""
