"""This machine, asked with the same script as any other."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import IO

from msgspec import Struct

from preflight.model import Command, Missing, MissingKind, Raw
from preflight.transports.script import NOT_ASKED, Frame, FrameReader, render

#: Bytes of all answers of one host that are kept.
HOST_CAP_BYTES = 256 * 1024 * 1024
_INTERRUPTED = "it was interrupted"


class Local(Struct, frozen=True):
    """The transport to this machine. `deadline_s` bounds the whole conversation."""

    host: str
    deadline_s: float = 60.0
    sudo: bool = False

    def run(self, commands: Sequence[Command]) -> Iterator[Raw]:
        """Ask all commands in one `sh -s`; yield each answer as it ends, in order.

        What the deadline cut off comes with `missing` set. When the caller stops early (Ctrl-C)
        the processes are ended.
        """
        mark = "preflight-" + secrets.token_hex(16)
        process = subprocess.Popen(
            ["/bin/sh", "-s"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin and process.stdout and process.stderr
        caps = [command.max_bytes for command in commands]
        readers = {
            process.stdout.fileno(): FrameReader(mark, caps, HOST_CAP_BYTES),
            process.stderr.fileno(): FrameReader(mark, caps, HOST_CAP_BYTES),
        }
        try:
            _send(process.stdin, render(commands, mark, sudo=self.sudo).encode())
            yield from self._answers(commands, process.stdout, readers)
        finally:
            _end(process)

    def _answers(
        self, commands: Sequence[Command], stdout: IO[bytes], readers: dict[int, FrameReader]
    ) -> Iterator[Raw]:
        waiting: dict[int, Frame] = {}
        told: list[Raw] = []
        deadline_s = time.monotonic() + self.deadline_s
        try:
            for fd, frame in _frames(readers, deadline_s):
                other = waiting.pop(frame.number, None)
                if other is None:
                    waiting[frame.number] = frame
                    continue
                out, err = (frame, other) if fd == stdout.fileno() else (other, frame)
                command = commands[frame.number]
                told.append(_raw(self.host, command, out, err, _not_asked(command, out, told)))
                yield told[-1]
        except KeyboardInterrupt:  # half of a long watch is worth keeping
            yield from self._unfinished(commands, readers, told, _INTERRUPTED)
            raise
        yield from self._unfinished(commands, readers, told, self._cut(deadline_s))

    def _unfinished(
        self, commands: Sequence[Command], readers: dict[int, FrameReader], told: Sequence[Raw],
        why: str,
    ) -> Iterator[Raw]:  # fmt: skip
        """What did not come to its end, with what arrived of the first of them; the others were
        never asked."""
        before = _those_that_hung(told)
        for number, command in enumerate(commands[len(told) :], len(told)):
            found = [reader.unfinished(time.monotonic()) for reader in readers.values()]
            out, err = (frame or Frame(number, b"") for frame in found)
            begun = next((frame for frame in found if frame), None)
            after_s = begun.ended_s - begun.began_s if begun else 0
            text = f"{why} {after_s:.0f} s after it was asked" if begun else f"not asked: {why}"
            kind: MissingKind = "exited" if why == _ENDED else "timeout"
            missing = Missing(kind, text + before)
            yield _raw(self.host, command, out, err, missing)
            if begun:
                before = before or f"; {_tool(command.argv)} was waited for until then"

    def _cut(self, deadline_s: float) -> str:
        if time.monotonic() >= deadline_s:
            return f"the host's limit of {self.deadline_s:g} s was reached"
        return _ENDED


_ENDED = "the shell ended"


def _not_asked(command: Command, out: Frame, told: Sequence[Raw]) -> Missing | None:
    if out.rc != NOT_ASKED:
        return None
    return Missing("timeout", f"not asked ({' '.join(command.argv[:4])}){_those_that_hung(told)}")


def _those_that_hung(told: Sequence[Raw]) -> str:
    """What to say of commands that took their whole limit, 124 and 137 by timeout(1)."""
    hung = [raw for raw in told if raw.rc in (124, 137)]
    each = (f"{_tool(raw.argv)} hung for {raw.elapsed_s:.0f} s" for raw in hung)
    return f"; before it {', '.join(each)}" if hung else ""


def _tool(argv: Sequence[str]) -> str:
    """The name of a command; a script that reads files has none."""
    return "a script" if argv[0] == "sh" else argv[0]


def _frames(readers: dict[int, FrameReader], deadline_s: float) -> Iterator[tuple[int, Frame]]:
    """(file descriptor, frame) as frames end; stops at the last mark, at end of file, in time."""
    with selectors.DefaultSelector() as selector:
        for fd in readers:
            os.set_blocking(fd, False)
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() < deadline_s:
            for key, _ in selector.select(max(deadline_s - time.monotonic(), 0)):
                data = os.read(key.fd, 1 << 16)
                now_s = time.monotonic()
                for frame in readers[key.fd].feed(data, now_s):
                    yield key.fd, frame
                if not data or readers[key.fd].done:
                    selector.unregister(key.fd)


def _raw(
    host: str, command: Command, out: Frame, err: Frame, missing: Missing | None = None
) -> Raw:
    elapsed_s = max(out.ended_s - out.began_s, 0.0)
    started = datetime.now(timezone.utc).timestamp() - (time.monotonic() - out.began_s)
    return Raw(
        host=host,
        probe=command.probe,
        argv=command.argv,
        rc=None if out.rc == NOT_ASKED else out.rc,
        stdout=_text(out.data),
        stderr=_text(err.data),
        started_at=f"{datetime.fromtimestamp(started, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
        if out.began_s
        else "",
        elapsed_s=round(elapsed_s, 3),
        truncated=out.truncated or err.truncated,
        missing=missing,
    )


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


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
