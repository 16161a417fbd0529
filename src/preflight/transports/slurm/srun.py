"""The process srun: what goes to all of its tasks, what comes of them, and its end."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from preflight.transports.conversation import ERR, OUT

#: For srun to end its tasks: KillWait of slurm.conf, and 2 s of its own.
_KILL_S = 8.0
_CHUNK_BYTES = 1 << 18


class Srun:
    """srun with a script for its tasks' standard input.

    The input stays open behind the script: a task that waits for more has not ended, and what a
    task said can be told apart exactly only as long as it has not; see labelled.py.
    """

    def __init__(self, argv: Sequence[str], environ: dict[str, str], script: bytes) -> None:
        # A session of its own: Ctrl-C is for us, and we end it when what came is safe.
        self._process = subprocess.Popen(
            argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, cwd=_folder(),
        )  # fmt: skip
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin, self._script = self._process.stdin, script
        self._streams = {OUT: self._process.stdout, ERR: self._process.stderr}
        self._selector = selectors.DefaultSelector()
        for stream, pipe in self._streams.items():
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, stream)
        # It reads nothing before it has its nodes: writing must not wait for that.
        os.set_blocking(self._stdin.fileno(), False)
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        self.speaks = True

    def read(self, limit_s: float) -> Iterator[tuple[int, bytes]]:
        """What is there of either stream, waiting at most so long; the script is sent meanwhile."""
        for key, _ in self._selector.select(limit_s):
            if key.fileobj is self._stdin:
                self._send()
                continue
            data = os.read(key.fd, _CHUNK_BYTES)
            if not data:
                self._selector.unregister(key.fileobj)
                left = {each.fileobj for each in self._selector.get_map().values()}
                self.speaks = not left.isdisjoint(self._streams.values())
            yield key.data, data

    def _send(self) -> None:
        try:
            self._script = self._script[os.write(self._stdin.fileno(), self._script) :]
        except BrokenPipeError:
            self._script = b""
        if not self._script:
            self._selector.unregister(self._stdin)

    def end(self, leave_s: float) -> bool:
        """Give the tasks so long to end, then have srun end them; false where it had to be killed,
        so that they may be running still."""
        self._selector.close()
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        asked = self._ends(leave_s)
        if not asked:
            self._process.terminate()
            asked = self._ends(_KILL_S)
        if not asked:
            self._process.kill()
        for pipe in self._streams.values():
            pipe.close()
        self._process.wait()
        return asked

    def _ends(self, limit_s: float) -> bool:
        """Whether it ends in time. What it still says is read, or it might wait for us."""
        until_s = time.monotonic() + limit_s
        while self._process.poll() is None and time.monotonic() < until_s:
            for pipe in self._streams.values():
                with contextlib.suppress(BlockingIOError):
                    os.read(pipe.fileno(), _CHUNK_BYTES)
            time.sleep(0.02)
        return self._process.poll() is not None


def _folder() -> str | None:
    """Where srun starts: here, for what its arguments name; not in a folder that was deleted."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return "/"
    return None
