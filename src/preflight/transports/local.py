"""This machine, asked with the same script as any other."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO

from msgspec import Struct

from preflight.model import Command, Missing, Raw
from preflight.transports.conversation import ERR, OUT, Conversation


class Local(Struct, frozen=True):
    """The transport to this machine. `deadline_s` bounds the whole conversation."""

    host: str
    deadline_s: float = 60.0
    sudo: bool = False
    #: Told of the last line of an answer as it comes in.
    latest: Callable[[str], None] = lambda _: None

    def run(self, commands: Sequence[Command]) -> Iterator[Raw]:
        """Ask all commands in one `sh -s`; yield each answer as it ends, in order.

        What the deadline cut off comes with `missing` set. When the caller stops early (Ctrl-C)
        the processes are ended.
        """
        talk = Conversation(self.host, commands, sudo=self.sudo)
        process = subprocess.Popen(
            ["/bin/sh", "-s"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin and process.stdout and process.stderr
        deadline_s = time.monotonic() + self.deadline_s
        try:
            _send(process.stdin, talk.script)
            try:
                streams = (process.stdout, process.stderr)
                yield from _answers(talk, streams, deadline_s, self.latest)
            except KeyboardInterrupt:  # half of a long watch is worth keeping
                yield from talk.cut(Missing("timeout", "it was interrupted"), time.monotonic())
                raise
            yield from talk.cut(self._why(deadline_s), time.monotonic())
        finally:
            _end(process)

    def _why(self, deadline_s: float) -> Missing:
        if time.monotonic() >= deadline_s:
            return Missing("timeout", f"the host's limit of {self.deadline_s:g} s was reached")
        return Missing("exited", "the shell ended")


def _answers(
    talk: Conversation, streams: tuple[IO[bytes], IO[bytes]], deadline_s: float,
    latest: Callable[[str], None],
) -> Iterator[Raw]:  # fmt: skip
    """Answers as they end; stops at the last mark, at end of file, in time."""
    with selectors.DefaultSelector() as selector:
        for stream, pipe in zip((OUT, ERR), streams, strict=True):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, stream)
        while selector.get_map() and time.monotonic() < deadline_s:
            for key, _ in selector.select(max(deadline_s - time.monotonic(), 0)):
                data = os.read(key.fd, 1 << 16)
                yield from talk.feed(key.data, data, time.monotonic())
                latest(talk.latest)
                if not data or talk.stream_done(key.data):
                    selector.unregister(key.fileobj)


def _send(stdin: IO[bytes], script: bytes) -> None:
    # The shell may be gone already (no fork left, say): its answers are then missing, that is all.
    with contextlib.suppress(BrokenPipeError):
        stdin.write(script)
    with contextlib.suppress(BrokenPipeError):
        stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the shell and all that it started. A process in uninterruptible sleep is left behind:
    nobody can end it, and waiting for it would hang us too."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.2)
    if process.returncode is None:
        _kill_tree(process.pid)
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1)


def _kill_tree(pid: int) -> None:
    # timeout(1) gives each command a process group of its own, so one killpg would not reach them.
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        shell = psutil.Process(pid)
        for process in [shell, *shell.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
