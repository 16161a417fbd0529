"""A program of this machine that starts others on many hosts, run to its end and within its time.

It is asked to end before it is killed: mpirun and srun then end what they have started elsewhere,
which nobody else can.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping

from msgspec.structs import replace

from preflight.model import Command, Missing, Raw
from preflight.transports.conversation import text_of

#: Between SIGTERM and SIGKILL.
ENDS_WITHIN_S = 5.0
_LOOK_S = 0.2
#: What timeout(1) ends with; and a shell where there is no such program.
_TIMED_OUT, _NOT_THERE, _NOT_RUN = 124, 127, 126


def launched(
    command: Command, host: str, interrupted: threading.Event,
    environ: Mapping[str, str] | None = None,
) -> Raw:  # fmt: skip
    """Its answer, told as that of `host`. Where its time is over, or the user has interrupted all,
    what came so far."""
    began_s, started_at = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    raw = Raw(host, command.probe, command.argv, started_at=started_at, limit_s=command.timeout_s)
    try:
        process = subprocess.Popen(
            command.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, env=environ,
        )  # fmt: skip
    except OSError as error:
        rc = _NOT_THERE if isinstance(error, FileNotFoundError) else _NOT_RUN
        return replace(raw, rc=rc, stderr=f"{command.argv[0]}: {error.strerror}")
    kept = _Kept(command.max_bytes)
    try:
        why = _heard(process, kept, began_s + command.timeout_s, interrupted)
    finally:
        _end(process)
    out, err = (text_of(bytes(one)) for one in kept.streams)
    status = None if why == "interrupted" else _TIMED_OUT if why else _status(process)
    missing = Missing("timeout", "it was interrupted") if why == "interrupted" else None
    elapsed_s = round(time.monotonic() - began_s, 3)
    return replace(raw, rc=status, stdout=out, stderr=err, missing=missing, elapsed_s=elapsed_s,
                 truncated=kept.truncated)  # fmt: skip


class _Kept:
    """Both streams, as much as is kept of each."""

    def __init__(self, most: int) -> None:
        self.streams = (bytearray(), bytearray())
        self.truncated = False
        self._most = most

    def put(self, stream: int, data: bytes) -> None:
        """Add what came."""
        room = self._most - len(self.streams[stream])
        self.streams[stream].extend(data[: max(room, 0)])
        self.truncated |= len(data) > room


def _heard(
    process: subprocess.Popen[bytes], kept: _Kept, until_s: float, interrupted: threading.Event
) -> str:
    """Read to the end of both streams; else why not: late, interrupted."""
    with selectors.DefaultSelector() as selector:
        for number, pipe in enumerate((process.stdout, process.stderr)):
            assert pipe
            selector.register(pipe, selectors.EVENT_READ, number)
        why = ""
        while selector.get_map() and not why:
            if process.poll() is not None and not selector.select(0):
                return ""  # what it left behind may hold the streams open for ever
            _read(selector, kept)
            late = time.monotonic() >= until_s
            why = "interrupted" if interrupted.is_set() else "late" if late else ""
        if why:  # what it says when it ends is heard too
            _signal(process, signal.SIGTERM)
            over_s = time.monotonic() + ENDS_WITHIN_S
            while selector.get_map() and time.monotonic() < over_s:
                _read(selector, kept)
        return why


def _read(selector: selectors.BaseSelector, kept: _Kept) -> None:
    for key, _ in selector.select(_LOOK_S):
        data = os.read(key.fd, 1 << 16)
        kept.put(key.data, data)
        if not data:
            selector.unregister(key.fileobj)


def _status(process: subprocess.Popen[bytes]) -> int:
    status = process.returncode
    return status if status >= 0 else 128 - status


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _end(process: subprocess.Popen[bytes]) -> None:
    """All of its process group is gone afterwards."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_LOOK_S)
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=ENDS_WITHIN_S)
    _signal(process, signal.SIGKILL)
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
    process.wait()
