"""Whether what a run writes fits into its folder, before the start.

By what the file system says is free: a quota may be less, and is told by the write that fails.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from .fits import size
from .model import parameters
from .plan import Plan
from .presets import Preset

#: Of a parameter in fp32: itself and both moments of AdamW.
_SAVED = 12
#: Checkpoints that are there at once: two of the whole run, and the one that is killed.
_KEPT, _KILLED = 2, 1
#: Of an id in a shard that we write.
_ID = 2


def needed(plan: Plan, shape: Preset) -> int:
    """Bytes in the folder at least."""
    saves = len(plan.hosts) < 2 or bool(plan.folder)
    count = (_KEPT + _KILLED * plan.resume) * saves
    tokens = 0 if plan.data else shape.tokens_per_step(plan.world) * shape.steps
    return count * _SAVED * parameters(shape) + _ID * tokens


def reason(plan: Plan, shape: Preset, gpus: list[dict[str, Any]]) -> str:
    """Why it does not fit, and what to type; "" where it may."""
    folder = plan.folder or tempfile.gettempdir()
    there = os.statvfs(folder)
    free, bytes_needed = there.f_bavail * there.f_frsize, needed(plan, shape)
    if bytes_needed <= free:
        return ""
    return (f"checkpoints and shards take {size(bytes_needed)}, and {folder} has {size(free)} "
            "free: --folder DIR on another file system")  # fmt: skip
