"""Reports the user wants in files: opened before the work starts, whole or not there afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct, field

from preflight.cli.asking import CAPTURE_SUFFIX
from preflight.errors import PreflightError, UsageError
from preflight.model import Report
from preflight.reports import SUFFIXES, render


class Target(Struct):
    """One file to write. `part` is open beside it already, so that a place that cannot be written
    is known before the work."""

    path: Path
    format: str
    part: Path

    def write(self, report: Report, *, facts: bool) -> None:
        """Write and put in place at once; PreflightError where the disk refuses."""
        try:
            with self.part.open("w", encoding="utf-8", newline="\n") as file:
                for text in render(report, self.format, verbose=1, facts=facts):
                    file.write(text)
                file.flush()
                os.fsync(file.fileno())
            self.part.replace(self.path)
        except OSError as error:
            raise PreflightError(
                f"{self.path} was not written: {error.strerror}",
                f"make room (df -h {self.path.parent}) or --save elsewhere; the report was printed",
            ) from None


class Targets(Struct):
    """All of them; `written` are in place."""

    each: list[Target] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)

    def write(self, report: Report, *, facts: bool) -> list[PreflightError]:
        """Write every file; one that fails does not stop the others."""
        failed: list[PreflightError] = []
        for target in self.each:
            try:
                target.write(report, facts=facts)
                self.written.append(target.path)
            except PreflightError as error:
                failed.append(error)
        return failed


@contextmanager
def opened_targets(names: Sequence[str]) -> Iterator[Targets]:
    """A target for each report to be saved; UsageError for an unknown suffix or a closed place.
    What was not put in place is gone at the end."""
    targets = Targets()
    try:
        for name in names:
            if not name.endswith(CAPTURE_SUFFIX):
                targets.each.append(_open(Path(name)))
        yield targets
    finally:
        for target in targets.each:
            with suppress(OSError):
                target.part.unlink()


def capture_paths(names: Sequence[str]) -> list[Path]:
    """Those of `names` that are to be captures."""
    return [Path(name) for name in names if name.endswith(CAPTURE_SUFFIX)]


def _open(path: Path) -> Target:
    if path.suffix not in SUFFIXES:
        known = " ".join([*SUFFIXES, CAPTURE_SUFFIX])
        raise UsageError(f"--save {path}: unknown suffix {path.suffix!r}", f"one of {known}")
    if path.is_dir():
        raise UsageError(f"--save {path}: is a directory", f"--save {path}/report{path.suffix}")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.touch()
    except OSError as error:
        hint = "make the directory first, or name another place"
        raise UsageError(f"--save {path}: {error.strerror}", hint) from None
    return Target(path, SUFFIXES[path.suffix], part)
