"""What `preflight sysctl` says and does in place of its report: --fix-script, --apply, --undo."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Sequence
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
from preflight.settings.apply import Outcome
from preflight.settings.script import scripts
from preflight.settings.wanted import LeftOut, Wanted, by_reason, wanted

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
    _hold_root("--apply")
    found = _of(report.hosts[0], checks)
    made_at = now()
    planned = apply.plan(found.changes, made_at)
    left = _skipped([*found.left_out, *planned.left_out])
    if not planned.undo.entries:
        return Told(["nothing to change\n", *left], Exit.OK)
    path = Path(options.undo_file or undo_file.default_path(Path("/"), made_at))
    undo_file.write(planned.undo, path)
    streams.note(f"to undo: preflight sysctl --undo {shlex.quote(str(path))}")
    outcomes = apply.carry_out(planned)
    if _TUNED.exists():
        streams.note("note: tuned runs; what its profile sets too, it sets again at the next boot")
    return Told([*_lines(outcomes), *left, "check: preflight sysctl\n"], _status(outcomes))


def undone(options: Options, streams: Streams) -> int:
    """--undo FILE: everything as it was, whether --apply came to its end or not."""
    undo = undo_file.read(Path(options.undo or ""))
    if options.dry_run:
        streams.report(f"would put back {one.path}\n" for one in reversed(undo.entries))
        return Exit.OK
    if undo.host != socket.gethostname():
        raise UsageError(
            f"{options.undo} was made on {printable(undo.host)}, this is {socket.gethostname()}",
            "run it there",
        )
    _hold_root("--undo")
    outcomes = apply.restore(undo)
    streams.report(_lines(outcomes))
    return _status(outcomes)


def _hold_root(flag: str) -> None:
    if os.geteuid() != 0:
        raise UsageError(
            f"{flag} changes the system, which takes root", f"sudo preflight sysctl {flag}"
        )


def _status(outcomes: Sequence[Outcome]) -> Exit:
    return Exit.FAILED if any(one.problem for one in outcomes) else Exit.OK


def _lines(outcomes: Sequence[Outcome]) -> list[str]:
    return [
        f"{'FAIL' if one.problem else 'done'}  {one.name:<{_WIDTH}}  {one.problem or one.now}\n"
        for one in outcomes
    ]


def _skipped(left: Sequence[LeftOut]) -> list[str]:
    return [
        f"SKIP  {printable(reason)}: {', '.join(names)}\n"
        for reason, names in by_reason(left).items()
    ]
