"""`preflight`, as a command and as `python -m preflight`."""

from __future__ import annotations

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command line. Ctrl-C while its parts are still being read ends it with one line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from preflight.cli.app import main as run  # the longest part of the start

    run()


def _end(_number: int, _frame: FrameType | None) -> None:
    """Nothing was begun that would have to be put away."""
    os.write(2, b"interrupted; there is no report\n")
    os._exit(130)


if __name__ == "__main__":
    main()
