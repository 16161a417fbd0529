"""What preflight raises on purpose."""

from __future__ import annotations


class PreflightError(Exception):
    """Something a user can mend: printed as `error:` and `hint:`, never as a traceback."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


class ToldInterrupt(KeyboardInterrupt):
    """The user interrupted, and was told what became of the work."""


class UsageError(PreflightError):
    """preflight could not start: wrong arguments, configuration or input (exit status 2)."""


class UnrecognisedError(UsageError):
    """A text in which no tool is known."""


class ParseError(PreflightError):
    """A tool's answer could not be read; `line` counts from 1, 0 where no line is to blame."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {what}" if line else what)
        self.line = line
