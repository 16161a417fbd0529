"""Scripts that train under a guard, as processes of their own that are sent signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_LIMIT_S = 40
_HEAD = """
import os, signal, sys, time
from preflight import guard

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # whole, of several ranks too

"""
#: A loop whose step prints when it begins and when it ends; between, it takes a tenth of a second.
LOOP = """
def loop(watch, steps=100, step_s=0.1):
    for step in range(steps):
        say("begin", step)
        until = time.monotonic() + step_s
        while time.monotonic() < until:
            time.sleep(0.005)
        say("end", step)
        if watch.step(step, loss=2.0, grad_norm=1.0):
            say("left", step)
            return
"""


class Training:
    """A running script: what it says on standard output, line by line."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, errors: Path) -> None:
        self.process, self.folder, self._errors = process, folder, errors
        self.lines: list[str] = []

    def until(self, words: str) -> str:
        """The next line that begins with these words; the test fails where there is none."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if self.lines[-1].startswith(words):
                return self.lines[-1]
        raise AssertionError(f"no line {words!r}: {self.lines[-5:]}\n{self.errors}")

    def rest(self) -> list[str]:
        """All lines, once it has ended."""
        assert self.process.stdout is not None
        self.lines += self.process.stdout.read().splitlines()
        self.process.wait(_LIMIT_S)
        return self.lines

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)

    @property
    def errors(self) -> str:
        return self._errors.read_text(encoding="utf-8")

    def left(self, pattern: str) -> list[Path]:
        """Files that the guard left, by rank."""
        return sorted(self.folder.joinpath("preflight-guard").glob(pattern))


@contextmanager
def training(script: str, folder: Path, **env: str) -> Iterator[Training]:
    """Start it in `folder`; it is ended with the block, whatever it does."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
    errors = folder / "stderr"
    with errors.open("w") as file, subprocess.Popen(
        [sys.executable, "-c", _HEAD + script], cwd=folder, env={**kept, **env}, text=True,
        stdout=subprocess.PIPE, stderr=file, start_new_session=True,
    ) as process:  # fmt: skip
        timer = threading.Timer(_LIMIT_S, _end, [process])
        timer.start()
        try:
            yield Training(process, folder, errors)
        finally:
            timer.cancel()
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """It and what it has forked: nobody waits for the pipe that they hold."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def rows(file: Path) -> list[dict[str, Any]]:
    """The steps in a file of the guard's, without its notes."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [one for one in lines if "step" in one]


def notes(file: Path) -> dict[str, str]:
    """All notes in it, as one."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {key: value for one in lines if "step" not in one for key, value in one.items()}
