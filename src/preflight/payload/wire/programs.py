"""The programs of perftest: which there are, and one end of a test."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from ..parent import die_with_launcher

BANDWIDTH, LATENCY = "ib_write_bw", "ib_write_lat"
#: Where they are beside PATH: MLNX_OFED and DOCA put them into the first.
_PLACES = "/usr/bin:/usr/sbin:/usr/local/bin:/opt/perftest/bin"
#: A server that does not listen within this time does not come.
_LISTENS_S, _LOOK_S = 8.0, 0.02
_VERSION = re.compile(r"Version:\s*(\S+)")
#: Bytes of what it prints that are kept.
_MOST = 16_000


def path_of(tool: str) -> str:
    """Where the program is; "" where it is not there."""
    return shutil.which(tool, path=f"{os.environ.get('PATH', '')}:{_PLACES}") or ""


def version() -> str:
    """That of perftest; "" where there is none. Its programs end with 1 after telling it."""
    found = _VERSION.search(_said(BANDWIDTH, "--version"))
    return found[1] if found else "unknown" if path_of(BANDWIDTH) else ""


def knows_cuda() -> bool:
    """Whether this build sends from a GPU's memory."""
    return "--use_cuda=" in _said(BANDWIDTH, "--help")


def _said(tool: str, word: str) -> str:
    path = path_of(tool)
    if not path:
        return ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run([path, word], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=10, check=False)  # fmt: skip
        return done.stdout.decode(errors="replace")
    return ""


class Program:
    """One that runs, with a group of its own, and what it printed. Raises OSError."""

    def __init__(self, words: Sequence[str], cpus: Sequence[int]) -> None:
        self.words = list(words)

        def begin() -> None:
            die_with_launcher(signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, set(cpus) or os.sched_getaffinity(0))

        self._out: IO[bytes] = TemporaryFile()  # noqa: SIM115 - closed by close()
        self.process = subprocess.Popen(
            [path_of(words[0]) or words[0], *words[1:]], stdin=subprocess.DEVNULL,
            stdout=self._out, stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=begin,
            env={**os.environ, "LC_ALL": "C", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        )  # fmt: skip

    def listens(self, port: int) -> bool:
        """Wait until it listens there; False where it ended or did not come to that."""
        until_s = time.monotonic() + _LISTENS_S
        while time.monotonic() < until_s and self.process.poll() is None:
            if _is_open(port):
                return True
            time.sleep(_LOOK_S)
        return False

    def waited(self, until_s: float) -> bool:
        """Wait until it has ended; False where it had to be ended, with all that it started."""
        try:
            self.process.wait(max(0.0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.end()
            return False
        return True

    def end(self) -> None:
        """At once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def printed(self) -> str:
        """What it printed, both streams."""
        self._out.seek(0)
        return self._out.read(_MOST).decode(errors="replace")

    def close(self) -> None:
        """End it, and forget what it printed."""
        self.end()
        self._out.close()


def _is_open(port: int) -> bool:
    """Whether somebody listens at this port (proc_net_tcp: state 0A); a call would be taken for
    that of the other end."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            text = Path("/proc/self/net", name).read_text(encoding="ascii")
            if re.search(rf"^\s*\d+: [0-9A-F]+:{port:04X} [0-9A-F:]+ 0A ", text, re.MULTILINE):
                return True
    return False
