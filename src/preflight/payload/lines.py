"""JSON lines on a descriptor of their own: what a library prints does not get between them."""

from __future__ import annotations

import json
import os
from typing import Any


class Lines:
    """Writes to a descriptor; without one to what standard output was, which from now on leads to
    standard error."""

    def __init__(self, fd: int = -1) -> None:
        self.fd = fd
        if fd < 0:
            self.fd = os.dup(1)
            os.set_inheritable(self.fd, False)
            os.dup2(2, 1)

    def write(self, line: dict[str, Any]) -> None:
        """One line, whole; BrokenPipeError where nobody reads any more."""
        self.pass_on(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def pass_on(self, data: bytes) -> None:
        """Lines that are written already."""
        while data:
            data = data[os.write(self.fd, data) :]
