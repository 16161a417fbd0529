"""The terminal: colour, progress, and a report that goes out whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO, Protocol

from msgspec import Struct

from preflight.errors import PreflightError

#: ANSI SGR codes of the styles that reports/text.py names.
_CODES = {
    "pass": "32", "warn": "33", "fail": "1;31", "error": "1;35", "skip": "2", "bold": "1",
    "dim": "2",
}  # fmt: skip


class StyledText(Protocol):
    """A piece of a line and how it looks."""

    @property
    def text(self) -> str: ...
    @property
    def style(self) -> str: ...


class Streams(Struct):
    """Standard output for the report, standard error for all else."""

    out: IO[str]
    err: IO[str]
    color: bool = False
    progress: bool = False
    busy: bool = False  # an unfinished progress line stands on the terminal

    @property
    def draws_boxes(self) -> bool:
        """Whether the characters that trees are drawn with can be written."""
        encoding = getattr(self.out, "encoding", None) or "ascii"
        return encoding.lower().replace("-", "") in ("utf8", "utf16", "utf32")

    def report(self, text: Iterable[str]) -> None:
        """Write the report. A reader that went away (`| head`) is no error."""
        try:
            for part in text:
                self.out.write(part)
            self.out.flush()
        except BrokenPipeError:
            # The interpreter would flush once more at exit, and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.out.fileno())
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.out.fileno())
            raise PreflightError(
                f"standard output cannot be written: {error.strerror}",
                "make room, or send it elsewhere; --save FILE writes it whole or not at all",
            ) from None

    def paint(self, line: Iterable[StyledText]) -> str:
        """A styled line with its newline, in colour where wanted."""
        if not self.color:
            return "".join(span.text for span in line).rstrip() + "\n"
        return "".join(_painted(span) for span in line) + "\n"

    def note(self, text: str) -> None:
        """A line on standard error."""
        self._clear()
        print(text, file=self.err, flush=True)

    def step(self, text: str) -> None:
        """Say what is going on: on a terminal only, one line that the next one replaces."""
        if self.progress:
            self._clear()
            print(text[:99], end="", file=self.err, flush=True)
            self.busy = True

    def phase(self, text: str) -> None:
        """Say what begins: a line where nobody watches it, else one that progress replaces."""
        if self.progress:
            self.step(text)
        else:
            self.note(text)

    def done(self) -> None:
        """Take the progress line away."""
        self._clear()

    def _clear(self) -> None:
        if self.busy:
            print("\r\x1b[K", end="", file=self.err, flush=True)
            self.busy = False


def _painted(span: StyledText) -> str:
    code = _CODES.get(span.style)
    return f"\x1b[{code}m{span.text}\x1b[0m" if code and span.text else span.text


def open_streams(color: str) -> Streams:
    """The process's own streams. --color beats NO_COLOR, which beats TERM and the terminal."""
    for stream in (sys.stdout, sys.stderr):
        # A locale without UTF-8 must not turn a report into a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    wanted = {"always": True, "never": False}.get(color)
    if wanted is None:
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        wanted = sys.stdout.isatty() and not plain
    progress = sys.stderr.isatty() and not os.environ.get("CI")
    return Streams(sys.stdout, sys.stderr, wanted, progress)
