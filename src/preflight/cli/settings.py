"""What `preflight sysctl` says and does in place of its report: --fix-script, --apply, --undo."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from preflight.cli.clock import now
from preflight.cli.exit import Exit
from preflight.cli.finishing import Told
from preflight.cli.options import Options
from preflight.cli.streams import Streams
from preflight.errors import UsageError
from preflight.model import Check, HostReport, Report
from preflight.printable import printable
from preflight.settings import apply, undo_file
from preflight.settings.apply import Outcome, Plan
from preflight.settings.restore import restore
from preflight.settings.script import scripts
from preflight.settings.wanted import Wanted, by_reason, wanted

_WIDTH = 36
_TUNED = Path("/run/tuned/tuned.pid")


def script(checks: Sequence[Check], report: Report, options: Options, streams: Streams) -> Told:
    """--fix-script: the script on standard output, the verdict on standard error."""
    hosts = [(host.host, _of(host, checks)) for host in report.hosts]
    count = report.counts
    streams.note(
        f"{report.verdict.value}: {count.fail} failed, {count.warn} warned; "
        f"to set: {sum(len(one.changes) for _, one in hosts)}, hosts: {len(hosts)}"
    )
    return Told(list(scripts(hosts)))


def _of(host: HostReport, checks: Sequence[Check]) -> Wanted:
    if host.results:
        return wanted(checks, host.results)
    why = host.missing[0].text if host.missing else "nothing was judged"
    return Wanted(unknown=why)


def applied(checks: Sequence[Check], report: Report, options: Options, streams: Streams) -> Told:
    """--apply: the undo file first, then the changes, then what the kernel says of them."""
    if not options.dry_run:
        _hold_root("--apply")
    found = _of(report.hosts[0], checks)
    if found.unknown:
        return Told([f"nothing is changed: {printable(found.unknown)}\n"], Exit.UNDETERMINED)
    made_at = now()
    planned = apply.plan(found.changes, made_at)
    left = [*_lines(planned.refused), *_skipped(found, planned)]
    if options.dry_run:
        return Told([*_would(planned), *left], Exit.OK)
    if not planned.undo.entries:
        said = [] if planned.refused or options.quiet else ["nothing to change\n"]
        return Told([*said, *_quiet(left, options)], _status(planned.refused, found))
    path = Path(options.undo_file or undo_file.default_path(Path("/"), made_at))
    undo_file.write(planned.undo, path)
    if not options.quiet:
        _note(planned, path, streams)
    outcomes = apply.carry_out(planned)
    lines = [*_lines(outcomes), *left, f"check: {_program()} sysctl\n"]
    return Told(_quiet(lines, options), _status([*outcomes, *planned.refused], found))


def _note(planned: Plan, path: Path, streams: Streams) -> None:
    """How it is undone, and what else counts."""
    streams.note(f"to undo: {_sudo()} sysctl --undo {shlex.quote(str(path.absolute()))}")
    for note in planned.notes:
        streams.note(f"note: {printable(note)}")
    if _TUNED.exists():
        streams.note("note: tuned runs; what its profile sets too, it sets again at the next boot")


def _would(planned: Plan) -> Iterator[str]:
    """--apply --dry-run: what would be done."""
    for step in planned.steps:
        one = step.change
        yield f"would set    {one.name:<{_WIDTH}}  {one.value}, it is {printable(one.current)}\n"
    yield from (f"would write  {file.path}\n" for file in planned.files)
    if not planned.undo.entries:
        yield "nothing to change\n"


def undone(options: Options, streams: Streams) -> int:
    """--undo FILE: everything as it was, whether --apply came to its end or not."""
    undo = undo_file.read(Path(options.undo or ""))
    if options.dry_run:
        streams.report(f"would put back {one.path}\n" for one in reversed(undo.entries))
        return Exit.OK
    if undo.host != socket.gethostname():
        was, here = printable(undo.host), printable(socket.gethostname())
        raise UsageError(
            f"{options.undo} was made on {was}, this is {here}",
            f"run it there; if this machine was called {was}: write {here} for it in that file",
        )
    _hold_root("--undo")
    outcomes = restore(undo)
    streams.report(_quiet(_lines(outcomes), options))
    return _status(outcomes)


def _program() -> str:
    """How this preflight is called: sudo looks elsewhere than PATH."""
    path = Path(sys.argv[0]).absolute()
    if path.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m preflight"
    return shlex.quote(str(path))


def _sudo() -> str:
    return f"sudo {_program()}" if shutil.which("sudo") else _program()


def _hold_root(flag: str) -> None:
    if os.geteuid() != 0:
        raise UsageError(
            f"{flag} changes the system, which takes root",
            f"sudo {_program()} {shlex.join(sys.argv[1:])}",
        )


def _status(outcomes: Sequence[Outcome], found: Wanted | None = None) -> Exit:
    if any(one.problem for one in outcomes):
        return Exit.FAILED
    return Exit.UNDETERMINED if found and found.undetermined else Exit.OK


def _lines(outcomes: Sequence[Outcome]) -> list[str]:
    return [
        f"{'FAIL' if one.problem else 'done'}  {one.name:<{_WIDTH}}  {one.problem or one.now}\n"
        for one in outcomes
    ]


def _quiet(lines: Sequence[str], options: Options) -> list[str]:
    """-q: only what is not as it should be."""
    return [line for line in lines if not options.quiet or line.startswith(("FAIL", "ERROR"))]


def _skipped(found: Wanted, planned: Plan) -> list[str]:
    """What was left alone, those of one reason together."""
    left = by_reason((*found.left_out, *planned.left_out))
    lines = [
        f"{'ERROR' if set(names) & set(found.undetermined) else 'SKIP'}  {printable(reason)}: "
        f"{', '.join(names)}\n"
        for reason, names in left.items()
    ]
    return [*lines, *(f"by hand  {one.check}: {one.step}\n" for one in found.by_hand)]
