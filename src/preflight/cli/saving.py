"""Files the user asked for: opened before the work starts, whole or not there afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from preflight.errors import PreflightError, UsageError
from preflight.model import Report
from preflight.reports import SUFFIXES, render

CAPTURE_SUFFIX = ".capture.gz"


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
            self.drop()
            raise PreflightError(
                f"{self.path} was not written: {error.strerror}",
                "free some space or --save elsewhere; the report above is whole",
            ) from None

    def drop(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError):
            self.part.unlink()


def captures(names: Sequence[str]) -> list[Path]:
    """Those of `names` that are to be captures."""
    return [Path(name) for name in names if name.endswith(CAPTURE_SUFFIX)]


def open_targets(names: Sequence[str]) -> list[Target]:
    """A target for each report to be saved; UsageError for an unknown suffix or a closed place."""
    targets: list[Target] = []
    try:
        targets.extend(_open(Path(name)) for name in names if not name.endswith(CAPTURE_SUFFIX))
    except UsageError:
        for target in targets:
            target.drop()
        raise
    return targets


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


def write_all(
    targets: Sequence[Target], report: Report, *, facts: bool, note: Callable[[str], None]
) -> list[PreflightError]:
    """Write every target; one that fails does not stop the others."""
    failed: list[PreflightError] = []
    for target in targets:
        try:
            target.write(report, facts=facts)
            note(f"saved {target.path}")
        except PreflightError as error:
            failed.append(error)
    return failed
