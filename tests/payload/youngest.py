"""The process that was started last: numbers begin anew at the kernel's most."""

from __future__ import annotations

import psutil


def youngest_child() -> psutil.Process:
    """Of this process."""
    children = psutil.Process().children()
    return max(children, key=lambda one: (one.create_time(), one.pid))
