"""The last steps of a run in a file of JSON lines, of which a kill leaves all but some seconds."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Optional

#: step, seconds since 1970, loss, gradient norm, loss scale, learning rate.
_Figure = Optional[float]  # noqa: UP045  (Python 3.9 evaluates it)
Row = tuple[int, float, _Figure, _Figure, _Figure, _Figure]
#: What the readers of `preflight diagnose-step-time` call them.
_NAMES = ("loss", "grad_norm", "loss_scale", "lr")


def line(row: Row | str) -> str:
    """A row as JSON; a note is that already. A figure that was not given is left out; one that is
    no number is NaN or Infinity, which Python's json and preflight read."""
    if isinstance(row, str):
        return row
    step, at, *figures = row
    text = f'{{"step": {step}, "wall_time": {at:.6f}'
    for name, value in zip(_NAMES, figures):
        if value is not None:
            number = f"{value:.9g}" if value - value == 0 else json.dumps(value)
            text += f', "{name}": {number}'
    return text + "}\n"


class Ring:
    """The last `last` rows. They go to the file every `flush_s` seconds, so that a kill -9 loses no
    more; the file holds at most twice as many. Nothing that the disk does stops the training."""

    def __init__(self, path: Path, last: int, flush_s: float, tell: Callable[[str], None]) -> None:
        self._path, self._last, self._flush_s, self._tell = path, last, flush_s, tell
        self._rows: deque[Row | str] = deque(maxlen=last)
        self._waiting: deque[Row | str] = deque(maxlen=last)
        self._file = _opened(path)
        self._lines = 0
        self._due = time.monotonic() + flush_s
        self._told = self._noted = False

    def add(self, row: Row) -> bool:
        """Take a row; whether the file was written just now."""
        self._rows.append(row)
        self._waiting.append(row)
        if time.monotonic() < self._due:
            return False
        self.flush()
        return True

    def flush(self, **notes: str) -> None:
        """Write what waits, and behind it a line of notes. A signal may come between any two of
        these lines and write too: a row may then be twice there, and none is lost."""
        self._due = time.monotonic() + self._flush_s
        if notes:
            self._noted = True
            self._rows.append(json.dumps(notes) + "\n")
            self._waiting.append(self._rows[-1])
        rows = list(self._waiting)
        try:
            if rows:
                _write(self._file, "".join(map(line, rows)))
            self._lines += len(rows)
            for _ in range(min(len(rows), len(self._waiting))):
                self._waiting.popleft()
            if self._lines > 2 * self._last:
                self._shorten()
        except OSError as error:
            if not self._told:
                self._told = True
                self._tell(f"cannot write the last steps to {self._path}: {error}")

    def _shorten(self) -> None:
        """Only the last rows, in a file that takes the place of the other at once."""
        other = self._path.with_name(self._path.name + ".new")
        rows = list(self._rows)
        file = _opened(other, os.O_TRUNC)
        _write(file, "".join(map(line, rows)))
        old, self._file, self._lines = self._file, file, len(rows)
        other.replace(self._path)
        os.close(old)

    def close(self, *, keep: bool) -> None:
        """The file is gone, unless it is to be kept, or has notes."""
        keep = keep or self._noted
        if keep:
            self.flush()
        os.close(self._file)
        if not keep:
            self._path.unlink(missing_ok=True)


def _opened(path: Path, also: int = 0) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | also, 0o644)


def _write(file: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(file, data) :]
