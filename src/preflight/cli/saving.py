"""Reports the user wants in files: opened before the work starts, whole or not there afterwards."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote

from msgspec import Struct, field

from preflight.cli.asking import CAPTURE_SUFFIX
from preflight.cli.options import Options
from preflight.errors import PreflightError, UsageError
from preflight.model import Report
from preflight.printable import printable
from preflight.reports import FILES_ONLY, SUFFIXES, render

#: What srun, mpirun and pdsh take as one name; with a user or a port, as ssh does.
_HOST = re.compile(r"[A-Za-z0-9_.@:%\[\]-]+")


class Target(Struct):
    """One file to write. `part` could be written beside it before the work, so that a place that
    cannot be is known; it is there while it is written, and nothing is left of a run that is
    killed."""

    path: Path
    format: str
    part: Path

    def pieces(self, report: Report, facts: bool) -> Iterable[str]:
        """What is to be written."""
        return render(report, self.format, verbose=1, facts=facts)

    def write(self, report: Report, *, facts: bool) -> None:
        """Write and put in place at once; PreflightError where the disk refuses, or nothing is
        there to be drawn."""
        if self.format in FILES_ONLY:
            self._hold_something(report)
        try:
            with self.part.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(self.pieces(report, facts))
                file.flush()
                os.fsync(file.fileno())
            self.part.replace(self.path)
        except OSError as error:
            raise PreflightError(
                f"{self.path} was not written: {error.strerror}",
                f"make room (df -h {self.path.parent}) or --save elsewhere; the report was printed",
            ) from None

    def _hold_something(self, report: Report) -> None:
        from preflight.reports.machine.sections import drawn
        from preflight.reports.machine.svg_heat import heats
        from preflight.reports.pictures.told import pictures

        if not drawn(report) and not heats(report) and not pictures(report):
            raise PreflightError(
                f"{self.path} was not written: there is nothing to draw in this report",
                "a machine: preflight topo, with `nvidia-smi topo -m` or `lspci -vvv` where it is "
                "recorded; every pair of hosts: preflight nccl-bench --pairwise --hosts HOSTS; a "
                "step: preflight diagnose-step-time, of a trace or a log that tells its length",
            )


class HostFile(Target):
    """Names of hosts, one a line; its format is the suffix: those that `pass`, or those that
    `fail`."""

    strict: bool = False

    def pieces(self, report: Report, facts: bool) -> Iterable[str]:
        """A name that no host can have, or that Slurm does not know, is a comment to all that read
        such files: srun refuses the whole list for it."""
        from preflight.reports.split import split_hosts

        passed, failed = split_hosts(report, strict=self.strict)
        unknown = {
            host.host
            for host in report.hosts
            if any(one.fault == "node-unknown" for one in host.missing)
        }
        for name in passed if self.format == "pass" else failed:
            known = _HOST.fullmatch(name) and name not in unknown
            yield f"{name}\n" if known else f"# no host: {printable(name)}\n"


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
def opened_targets(options: Options, *, drawn: bool) -> Iterator[Targets]:
    """A target for each file to be saved beside captures; UsageError for an unknown suffix, a
    closed place, or a picture of what was not `drawn`. What was not put in place is gone at the
    end."""
    targets = Targets()
    try:
        for name in options.save:
            if not name.endswith(CAPTURE_SUFFIX):
                targets.each.append(_open(Path(name), drawn))
        for path in host_paths(options):
            part = _part(path, "--save-hosts")
            targets.each.append(HostFile(path, path.suffix[1:], part, options.strict))
        yield targets
    finally:
        for target in targets.each:
            with suppress(OSError):
                target.part.unlink()


def hold_targets(options: Options, *, drawn: bool) -> None:
    """Refuse what opened_targets() and the captures would, and touch nothing."""
    for name in options.save:
        path = Path(name)
        if not name.endswith(CAPTURE_SUFFIX):
            _hold_suffix(path, drawn)
        _hold_place(path, "--save")
    for path in host_paths(options):
        _hold_place(path, "--save-hosts")


def _hold_place(path: Path, flag: str) -> None:
    hint = "make the directory first, or name another place"
    if path.is_dir():
        raise UsageError(f"{flag} {path}: is a directory", f"{flag} {path}/report{path.suffix}")
    if not path.parent.is_dir():
        raise UsageError(f"{flag} {path}: there is no directory {path.parent}", hint)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{flag} {path}: {path.parent} cannot be written", hint)


def capture_paths(names: Sequence[str]) -> list[Path]:
    """Those of `names` that are to be captures."""
    return [Path(name) for name in names if name.endswith(CAPTURE_SUFFIX)]


def host_paths(options: Options) -> list[Path]:
    """The two files of hosts' names where they are wanted."""
    if options.save_hosts is None:
        return []
    if options.redact:
        raise UsageError("--save-hosts writes the names that --redact is to hide",
                         "leave one of them out")  # fmt: skip
    if not Path(options.save_hosts).name or options.save_hosts.endswith("/"):
        raise UsageError(f"--save-hosts {options.save_hosts!r}: no name to put .pass and .fail to",
                         f"--save-hosts {options.save_hosts}hosts")  # fmt: skip
    return [Path(f"{options.save_hosts}.{end}") for end in ("pass", "fail")]


def _open(path: Path, drawn: bool) -> Target:
    _hold_suffix(path, drawn)
    return Target(path, SUFFIXES[path.suffix], _part(path, "--save"))


def _hold_suffix(path: Path, drawn: bool) -> None:
    if path.suffix not in SUFFIXES:
        known = " ".join([*SUFFIXES, CAPTURE_SUFFIX])
        raise UsageError(f"--save {path}: unknown suffix {path.suffix!r}", f"one of {known}")
    if SUFFIXES[path.suffix] in FILES_ONLY and not drawn:
        raise UsageError(f"--save {path}: there is nothing to draw in this report",
                         f"preflight topo --save {quote(str(path))}")  # fmt: skip


def _part(path: Path, flag: str) -> Path:
    """The file beside the one to be written, which was tried and is gone again."""
    if path.is_dir():
        raise UsageError(f"{flag} {path}: is a directory", f"{flag} {path}/report{path.suffix}")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.touch()
        part.unlink()
    except OSError as error:
        hint = "make the directory first, or name another place"
        raise UsageError(f"{flag} {path}: {error.strerror}", hint) from None
    return part
