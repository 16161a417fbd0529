"""A bench that no call holds up: it is a process of its own, and where that says nothing for longer
than what it does may take, it is told which directory does not answer, and left to the kernel."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any, NoReturn

from ..lines import Lines
from ..parent import die_with_launcher
from .mounts import mount_of

Tell = Callable[[dict[str, Any]], None]
#: Seconds that the process gets to remove what it wrote; after that its sweeper does (scratch.py).
_ENDS_S = 5.0
#: After a job that hung, the next call that hangs is waited for so long.
_HUNG_S = 5.0
#: What is killed is gone so soon, or hangs in the kernel.
_LEFT_S = 0.5
_BOTH = (signal.SIGTERM, signal.SIGKILL)
#: Where this process says how long it may be silent; -1 where nobody listens.
_listener = -1


def within(seconds: float, doing: str, path: str = "") -> None:
    """The next line, or word of this kind, comes within so many seconds; `path`: where it works
    from now on."""
    if _listener >= 0:
        Lines(_listener).write({"kind": "within", "seconds": seconds, "doing": doing, "path": path})


def watched(work: Callable[[Tell], None], tell: Tell, form: str) -> None:
    """What `work` tells, or which directory does not answer."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    told = _Told(tell, form)
    try:
        told.all_of(reading)
    finally:
        os.close(reading)
        status = _ended(pid, told.ending())
    if status < 0:
        tell(told.killed(-status))
    elif status:
        raise RuntimeError(f"the process of the bench ended with status {status}")


def _work(work: Callable[[Tell], None], writing: int) -> NoReturn:
    """In the process of its own; whoever ends it has what it wrote removed."""
    global _listener
    _listener, status = writing, 1
    try:
        die_with_launcher()
        work(Lines(writing).write)
        status = 0
    except (KeyboardInterrupt, BrokenPipeError):
        status = 0  # the other side tells of it
    except BaseException:  # noqa: BLE001  told as the interpreter would
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


class _Told:
    """The lines of the process, passed on as they come."""

    def __init__(self, tell: Tell, form: str) -> None:
        self.tell, self.form = tell, form
        self.seconds, self.doing, self.path = _HUNG_S, "it began", ""
        self.begun = self.hung = self.over = False

    def all_of(self, fd: int) -> None:
        """To their end, or until none comes in time."""
        rest, since = b"", time.monotonic()
        while True:
            left_s = self.seconds - (time.monotonic() - since)
            if not select.select([fd], [], [], max(0.0, left_s))[0]:
                if not self.hung:
                    self.tell(self._silence())
                self.hung = True
                return
            data = os.read(fd, 1 << 16)
            if not data:
                self.over = True
                return
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                self._pass_on(json.loads(line))
            since = time.monotonic()

    def _pass_on(self, line: dict[str, Any]) -> None:
        if line["kind"] != "within":
            self.begun = True
            self.hung = self.hung or line.get("hung") is True
            self.tell(line)
        else:
            self.seconds, self.doing = line["seconds"], line["doing"]
            self.path = line["path"] or self.path
        if self.hung:
            self.seconds = _HUNG_S

    def _silence(self) -> dict[str, Any]:
        mount = mount_of(self.path)
        text = (f"{self.path} does not answer: nothing for {self.seconds:.0f} s while {self.doing}."
                f" It is {mount.kind} on {mount.source}, mounted at {mount.place}. What was written"
                " is removed once it answers")  # fmt: skip
        return self._line("hung", text)

    def killed(self, number: int) -> dict[str, Any]:
        """What is told of a process that somebody else has killed."""
        memory = " (memory?)" if number == signal.SIGKILL else ""
        return self._line("killed", f"ended by signal {number}{memory} while {self.doing},")

    def _line(self, kind: str, text: str) -> dict[str, Any]:
        return {**({} if self.begun else {"preflight": self.form}), "kind": kind, "text": text}

    def ending(self) -> tuple[int, ...]:
        """The signals that end the process: none where it ended, one that it can answer where it
        may still remove what it wrote."""
        return () if self.over else (signal.SIGKILL,) if self.hung else _BOTH


def _ended(pid: int, numbers: tuple[int, ...]) -> int:
    """Its status, once it has ended: less than 0 where a signal did that which is none of ours. One
    that the kernel does not let go is not waited for."""
    for number in numbers or (0,):
        os.kill(pid, number)
        until = time.monotonic() + (_LEFT_S if number == signal.SIGKILL else _ENDS_S)
        while time.monotonic() < until:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                if os.WIFSIGNALED(status):
                    return 0 if numbers else -os.WTERMSIG(status)
                return os.WEXITSTATUS(status)
            time.sleep(0.01)
    return 0
