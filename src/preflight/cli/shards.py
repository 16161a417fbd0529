"""What --shard asks: a file of the user's data decoded, and nothing written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from preflight.cli.options import PROJECT, STORE, Options
from preflight.errors import UsageError

_DEFAULTS = Options()
_SECONDS = 10.0
#: Of what writes and of this.
_BOTH = ("even_if_busy", "demand_mbps")
_MOST_MBPS = 1e9


def plan_of(options: Options) -> dict[str, Any] | None:
    """The plan; None where no file is named. Raises UsageError."""
    demand = options.demand_mbps
    if options.shard is None:
        return None
    _hold(options)
    if demand is not None and not (math.isfinite(demand) and 0 < demand <= _MOST_MBPS):
        raise UsageError(f"--demand-mbps {demand:g} is out of range",
                         f"above 0, to {_MOST_MBPS:g}")  # fmt: skip
    path = options.shard
    if not path.startswith(("/", "~")):
        path = str(Path(path).absolute())
    busy = {"even_if_busy": True} if options.even_if_busy else {}
    return {"path": path, "seconds": _SECONDS, "demand_mbps": demand, **busy}


def _hold(options: Options) -> None:
    if not options.shard or not options.shard.strip():
        raise UsageError("--shard '': expected a file", "is a variable empty?")
    if options.from_:
        raise UsageError("--from reads what was recorded, and --shard decodes a file here",
                         "leave one of them out")  # fmt: skip
    beside = next(
        (name for name in (*STORE, *PROJECT)
         if name not in _BOTH and getattr(options, name) != getattr(_DEFAULTS, name)), None,
    )  # fmt: skip
    if beside is not None:
        flag = {"model_ranks": "--ranks"}.get(beside, f"--{beside.replace('_', '-')}")
        raise UsageError(f"--shard writes nothing, and {flag} is of what writes",
                         "two runs: one with --shard, one without")  # fmt: skip
