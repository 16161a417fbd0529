"""The versions that advice depends on."""

from __future__ import annotations

import re

from preflight.facts.host import Host


def nccl(host: Host) -> str:
    """The NCCL that a process would load: 2.21.5; "" where it is not known."""
    told = (host.stack.nccl_of_torch, host.stack.nccl_loaded, host.stack.nccl_bundled)
    return next((one for one in told if isinstance(one, str) and one[:1].isdigit()), "")


def torch(host: Host) -> str:
    """2.9.0+cu128; "" where it is not known."""
    return host.stack.torch if isinstance(host.stack.torch, str) else ""


def reaches(version: str, wanted: str) -> bool:
    """Whether a version is `wanted` or newer, part by part as numbers. An unknown one is not."""
    return bool(version) and _parts(version) >= _parts(wanted)


def _parts(version: str) -> tuple[int, ...]:
    match = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
