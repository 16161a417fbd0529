"""NVML asked beside the tests, as `watch` does it: clocks, power, heat, counters that grew."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
import time

from ..lines import Lines
from ..parent import die_with_launcher
from ..ranks import Tell
from ..watch import Watch

#: Of a GPU at most: a day is watched every 24 s.
_MOST_SAMPLES = 3600
#: Longer than what the tests may take beyond their time; it is ended when they have ended.
_BEYOND_S = 3600.0
#: A GPU that answers no more is waited for by the watch itself for 10 s.
_ENDS_S = 15.0


class Beside:
    """A process that watches; its lines lie in a file without a name until they are told."""

    def __init__(self, seconds: float) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        self._pid = os.fork()
        if self._pid:
            return
        with contextlib.suppress(BaseException):
            os.setpgid(0, 0)
            die_with_launcher(signal.SIGKILL)
            interval_s = max(1.0, seconds / _MOST_SAMPLES)
            Watch(seconds + _BEYOND_S, interval_s, Lines(self._file.fileno())).run()
        os._exit(0)

    def end(self, tell: Tell) -> None:
        """Have it look a last time; tell what it saw."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGUSR1)
        until_s = time.monotonic() + _ENDS_S
        while not os.waitpid(self._pid, os.WNOHANG)[0]:
            if time.monotonic() > until_s:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._pid, signal.SIGKILL)
                break
            time.sleep(0.02)
        with self._file as file:
            file.seek(0)
            for line in file:
                with contextlib.suppress(ValueError):  # its last may be cut
                    tell(json.loads(line))
