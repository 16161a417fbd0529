"""preflight checkpoint verify: which of these checkpoints can a run go on from?"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from preflight import __version__
from preflight.checkpoints.lines import scans
from preflight.cli.asking import Captures, ask_here, shown_commands
from preflight.cli.clock import now
from preflight.cli.exit import Exit
from preflight.cli.finishing import finish, shown
from preflight.cli.many import many_hosts
from preflight.cli.options import Options
from preflight.cli.saving import capture_paths, hold_targets, opened_targets
from preflight.cli.streams import Streams
from preflight.diagnosis.checkpoint.gathered import gathered
from preflight.diagnosis.checkpoint.whole import verdict
from preflight.errors import UsageError
from preflight.facts.checkpoints import Scan
from preflight.model import Command, Finding, HostReport, MissingProbe, Raw, Report, Status
from preflight.reports import RENDERERS
from preflight.reports.checkpoints import checkpoint_tables
from preflight.ship import CHECKPOINTS, checkpoint_command
from preflight.units import format_bytes, parse_bytes
from preflight.verdict import count, verdict_of

_HINT = "preflight checkpoint verify RUN/checkpoint-100, or the folder of a whole run"


def run(options: Options, streams: Streams) -> int:
    """Scan, conclude, print and save; 2 where there is no such path."""
    if options.format not in RENDERERS:
        raise UsageError(
            f"--format {options.format!r} is no choice", f"one of {', '.join(RENDERERS)}"
        )
    began, started_at = time.monotonic(), now()
    commands = [_command(options)]
    if options.dry_run:
        return _dry_run(commands, options, streams)
    captures = Captures(capture_paths(options.save), options.redact)
    with opened_targets(options, drawn=False) as targets:
        raws = list(_raws(commands, options, streams, captures))
        streams.done()
        report = _report(raws, options)
        report.started_at, report.elapsed_s = started_at, round(time.monotonic() - began, 2)
        return finish(shown(report, options, captures), options, streams, targets, captures)


def told_of(told: dict[str, Any]) -> str:
    """A line of the payload in words for a terminal; "" for one that is no news."""
    done, total = told.get("done"), told.get("total")
    if told.get("kind") != "news" or not isinstance(done, int) or not isinstance(total, int):
        return ""
    return f"{format_bytes(done)} of {format_bytes(total)}"


def _command(options: Options) -> Command:
    """The one question. UsageError for what cannot be asked."""
    paths = [_absolute(one) for one in options.paths]
    if options.from_ and (paths or options.compare):
        raise UsageError("--from reads what was recorded, and a PATH is read here",
                         "leave one of them out")  # fmt: skip
    if not paths and not options.from_:
        raise UsageError("no checkpoint is named", _HINT)
    if options.compare is not None:
        paths.append(_absolute(options.compare))
    plan: dict[str, Any] = {"paths": paths}
    if options.checksums_only:
        plan["values"] = False
    if options.sample is not None:
        plan["sample_bytes"] = _sample(options.sample)
    return checkpoint_command(plan, tuple(shlex.split(options.python)))


def _absolute(path: str) -> str:
    if not path.strip():
        raise UsageError("a PATH is empty", "is a variable empty?")
    return path if path.startswith(("/", "~")) else str(Path(path).absolute())


def _sample(text: str) -> int:
    size = parse_bytes(text)
    if size < 1:
        raise UsageError(f"--sample {text}: expected a size above 0", "--sample 200G")
    return size


def _dry_run(commands: list[Command], options: Options, streams: Streams) -> int:
    hold_targets(options, drawn=False)
    if options.from_:
        streams.report([f"would read {', '.join(options.from_)}; nothing would be run\n"])
        return Exit.OK
    many = many_hosts(options, lambda: commands, streams)
    streams.report(shown_commands(commands, options, many.told() if many else ""))
    return Exit.OK


def _raws(
    commands: list[Command], options: Options, streams: Streams, captures: Captures
) -> Iterator[Raw]:
    """The answers of all hosts, or those that were recorded."""
    if options.from_:
        yield from _recorded(options.from_)
        return
    many = many_hosts(options, lambda: commands, streams)
    if many is None:
        yield from ask_here(commands, options, streams, captures)
        return
    for _, raws in many.answers(commands, options, streams, captures):
        yield from raws


def _recorded(names: Iterable[str]) -> Iterator[Raw]:
    from preflight.capture import is_capture, read

    for name in names:
        path = Path(name.rpartition("=")[2])
        if not path.exists():
            raise UsageError(f"there is no {path}", _HINT)
        if not is_capture(path):
            raise UsageError(f"{path} is no capture", "the file of an earlier --save x.capture.gz")
        yield from (raw for raw in read(path).raws if raw.probe == CHECKPOINTS)


def _report(raws: list[Raw], options: Options) -> Report:
    """Of all hosts together."""
    found: list[Scan] = []
    hosts: list[HostReport] = []
    failed: list[Finding] = []
    several = len(raws) > 1
    for raw in raws:
        why = _why_not(raw)
        told = [] if why else list(scans(_text(raw), raw.host if several else ""))
        found += told
        hosts.append(_host(raw, why))
        if why:
            failed.append(Finding("checkpoint.unread", Status.ERROR, raw.host,
                                  text=f"INCOMPLETE: {why}", fix=_fix(why)))  # fmt: skip
    if not raws:
        raise UsageError("nothing of checkpoints is in what was recorded", _HINT)
    _hold_there(found, failed)
    found = list(gathered(found)) if several else found
    against = found.pop() if options.compare is not None and found else None
    whole = verdict(found, against)
    findings = (*whole.findings, *failed)
    return Report(
        command="checkpoint verify", argv=_arguments(), level="", started_at="", elapsed_s=0.0,
        verdict=verdict_of(one.status for one in findings), counts=count(findings),
        hosts=tuple(hosts) if several else (),
        findings=findings, measurements=tuple(checkpoint_tables(whole.judged)),
        hints=whole.hints, preflight=__version__,
    )  # fmt: skip


def _arguments() -> tuple[str, ...]:
    from preflight.redact.secrets import in_arguments

    return tuple(in_arguments(sys.argv[1:]))


def _host(raw: Raw, why: str) -> HostReport:
    missing = (MissingProbe(raw.probe, "exited", why),) if why else ()
    return HostReport(raw.host, Status.ERROR if why else Status.PASS, missing=missing)


def _text(raw: Raw) -> str:
    return raw.stdout if isinstance(raw.stdout, str) else raw.stdout.decode("utf-8", "replace")


def _why_not(raw: Raw) -> str:
    """Why there is nothing to read; "" where there is."""
    if _text(raw).strip():
        return ""
    said = raw.stderr if isinstance(raw.stderr, str) else raw.stderr.decode("utf-8", "replace")
    if raw.missing is not None:
        return raw.missing.text
    last = said.strip().splitlines()[-1:] or [f"it ended with {raw.rc} and said nothing"]
    return f"{' '.join(raw.argv[:1])}: {last[0]}"


def _fix(why: str) -> tuple[str, ...]:
    return (
        ("name a Python of 3.9 or later: --python /usr/bin/python3.11",) if "ython" in why else ()
    )


def _hold_there(found: list[Scan], failed: list[Finding]) -> None:
    """Exit status 2 where no path is there on any host."""
    absent = [one for one in found if one.absent]
    if found and not failed and len(absent) == len(found):
        raise UsageError(f"{absent[0].trouble}", _HINT)
