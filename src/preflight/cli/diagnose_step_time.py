"""preflight diagnose-step-time: where the step goes, and whose fault it is, from what is there."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from preflight import __version__
from preflight.cli.asking import Captures
from preflight.cli.clock import now
from preflight.cli.exit import Exit
from preflight.cli.finishing import finish, shown
from preflight.cli.options import Options, are_many
from preflight.cli.saving import capture_paths, hold_targets, opened_targets
from preflight.cli.streams import Streams
from preflight.cli.targets.read import facts_of, not_understood, readings_of
from preflight.cli.targets.walk import Walked, is_pid, walk
from preflight.diagnosis.asked import Asked
from preflight.diagnosis.decide import findings
from preflight.diagnosis.reading import Reading
from preflight.errors import UsageError
from preflight.model import Report
from preflight.redact.secrets import in_arguments
from preflight.reports import RENDERERS
from preflight.reports.step_time import step_tables
from preflight.units import parse_count
from preflight.verdict import count, verdict_of


def run(options: Options, streams: Streams) -> int:
    """Read what is given, conclude, print and save; 2 where nothing of it could be read."""
    if options.format not in RENDERERS:
        raise UsageError(
            f"--format {options.format!r} is no choice", f"one of {', '.join(RENDERERS)}"
        )
    began, started_at = time.monotonic(), now()
    asked = _asked(options)
    captures = Captures(capture_paths(options.save), options.redact)
    if options.dry_run:
        return _dry_run(options, streams)
    with opened_targets(options, drawn=True) as targets, tempfile.TemporaryDirectory() as spool:
        walked = _walked(options, Path(spool))
        readings = _readings(walked, asked, options, streams, captures)
        found = findings(readings)
        streams.done()
        report = Report(
            command="diagnose-step-time", argv=tuple(in_arguments(sys.argv[1:])), level="",
            started_at=started_at, elapsed_s=round(time.monotonic() - began, 2),
            verdict=verdict_of(()), counts=count(found), hosts=(), findings=found,
            measurements=tuple(step_tables(readings)), preflight=__version__,
        )  # fmt: skip
        report.verdict = verdict_of(one.status for one in report.findings)
        return finish(shown(report, options, captures), options, streams, targets, captures)


def _dry_run(options: Options, streams: Streams) -> int:
    hold_targets(options, drawn=False)
    pids = [int(one) for one in options.targets if is_pid(one)]
    files = [one for one in (*options.targets, *options.from_) if not is_pid(one)]
    if files:
        streams.report([f"would read {', '.join(files)}\n"])
    if pids or are_many(options):
        from preflight.cli.targets.live import would_look

        streams.report(would_look(pids, options, streams))
    return Exit.OK


def _readings(
    walked: Walked, asked: Asked, options: Options, streams: Streams, captures: Captures
) -> list[Reading]:
    def tell(text: str) -> None:
        if not options.quiet:
            streams.step(text)

    facts = facts_of(walked, tell)
    if walked.pids or are_many(options):
        from preflight.cli.targets.live import as_facts, looks

        facts.update(as_facts(looks(walked.pids, options, streams, captures)))
    elif captures.paths:
        raise UsageError(
            f"--save {captures.paths[0]} keeps a look at processes, and none is looked at",
            "--save report.json",
        )
    readings = readings_of(facts, asked)
    told = [*readings, *not_understood(walked, read=bool(facts))]
    for text in told[-1].notes if told and told[-1].input == "what was given" else ():
        if not options.quiet:
            streams.note(text)
    if not readings and not any(one.unread for one in told):
        names = ", ".join(one.shown for one in walked.inputs[:3])
        told.append(Reading(names, unread=("nothing in it tells of steps, and nothing of a hang",)))
    return told


def _walked(options: Options, spool: Path) -> Walked:
    """What was given. Hosts by themselves are enough: what trains there is looked for."""
    targets = [*options.targets, *options.from_]
    if not targets and are_many(options):
        return Walked()
    walked = walk(targets, spool)
    if not are_many(options):
        _hold_something(walked)
    return walked


def _hold_something(walked: Walked) -> None:
    """UsageError where there is nothing that any reader takes."""
    if walked.inputs or walked.pids:
        return
    told = [f"{name}: {why}" for name, why in walked.failed.items()]
    told += [f"{names[0]}: {kind}" for kind, names in walked.unknown.items()]
    raise UsageError(
        f"nothing here can be read: {'; '.join(told[:5]) or 'no files'}",
        "give a training log, a trace of torch.profiler, flight-recorder dumps, stacks, or a PID",
    )


def _asked(options: Options) -> Asked:
    params = parse_count(options.params) if options.params is not None else None
    if options.gpus is not None and options.gpus < 1:
        raise UsageError(f"--gpus {options.gpus} is below 1", "--gpus 64")
    return Asked(gpu=options.gpu, gpus=options.gpus, params=params)
