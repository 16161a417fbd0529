"""What --sweep asks for, and what is told of it meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from preflight.cli.options import Options
from preflight.errors import UsageError

#: Those of payload/training/sweeps.py: seconds that each takes about, and one value of it.
AXES = {
    "loader": (60, "0,2,4"), "length": (60, "512,1024"), "batch": (90, "8,16,32"),
    "scaling": (60, "1,2,4"), "recompute": (60, "0,0.5,1"), "clip": (90, "none,global:1"),
    "kv-heads": (60, "1,4"), "comm-hook": (90, "none,topk"),
}  # fmt: skip
_VALUES = re.compile(r"[\w.:/-]{1,32}(,[\w.:/-]{1,32}){0,63}")


def sweeps_of(options: Options) -> dict[str, list[str]]:
    """Axes and the values that the user names; an empty list leaves them open. Raises
    UsageError."""
    found: dict[str, list[str]] = {}
    for one in options.sweep:
        axis, equals, values = one.partition("=")
        if axis not in AXES:
            raise UsageError(f"--sweep {axis!r} is no axis", f"one of {', '.join(AXES)}")
        if axis in found:
            raise UsageError(f"--sweep {axis} is there twice", "all values of it behind one `=`")
        if equals and not _VALUES.fullmatch(values):
            raise UsageError(f"--sweep {one}: {values!r} are no values",
                             f"--sweep {axis}={AXES[axis][1]}, or --sweep {axis}")  # fmt: skip
        found[axis] = values.split(",") if equals else []
    return found


def seconds(sweep: dict[str, list[str]]) -> int:
    """What it takes, about."""
    return sum(AXES[axis][0] for axis in sweep)


def _setting(told: dict[str, Any]) -> str:
    where = f"{told['axis']}, {told['setting']}"
    if "tokens_per_s" in told:
        return f"{where}: {float(told['tokens_per_s']):,.0f} tokens/s"
    return f"{where}: {told.get('limit') or told['failed']}"


NEWS: dict[str, Callable[[dict[str, Any]], str]] = {
    "sweep": lambda told: f"{told['axis']}: {len(told['settings'])} settings, three times each",
    "setting": _setting,
}
