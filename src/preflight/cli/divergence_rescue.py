"""preflight divergence-rescue: what went wrong with the loss, when it began, what is suspected."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from preflight import __version__
from preflight.cli.clock import now
from preflight.cli.exit import Exit
from preflight.cli.finishing import finish, shown
from preflight.cli.follow import follow
from preflight.cli.options import Options
from preflight.cli.rescue import checkpoints_in, execute, send, undo
from preflight.cli.saving import opened_targets
from preflight.cli.streams import Streams
from preflight.cli.targets.read import Facts, facts_of
from preflight.cli.targets.walk import Walked, walk
from preflight.diagnosis.checkpoint.verdicts import Judged as Checkpoint
from preflight.diagnosis.divergence.conclude import Judged, findings_of, judged
from preflight.diagnosis.divergence.plan import Plan, framework_of, plan_finding, plan_of
from preflight.errors import UsageError
from preflight.facts.stored import StoredReport
from preflight.model import Finding, Report, Status
from preflight.redact.secrets import in_arguments
from preflight.reports import RENDERERS
from preflight.reports.divergence import tables_of
from preflight.verdict import count, verdict_of

#: Checks whose failure says that a device may compute wrong. Clocks and power never do.
_CORRUPTS = re.compile(r"gpu\.(ecc|remap|xid|retired|uncorrectable)|stress\.")


def run(options: Options, streams: Streams) -> int:
    """Read what is given, conclude, print and save; 2 where nothing of it could be read."""
    if options.format not in RENDERERS:
        raise UsageError(
            f"--format {options.format!r} is no choice", f"one of {', '.join(RENDERERS)}"
        )
    if options.undo_moves is not None:
        for text in undo(options.undo_moves):
            streams.note(text)
        return Exit.OK
    if options.follow:
        # Standard output has lines for people, or a document for programs.
        lines = options.format == "text"
        follow(
            _one_log(options),
            streams.note,
            lambda text: streams.report([text]) if lines else streams.note(text.rstrip()),
        )
    began, started_at = time.monotonic(), now()
    stamp = f"{datetime.now():%Y%m%d-%H%M%S}"
    with opened_targets(options, drawn=True) as targets, tempfile.TemporaryDirectory() as spool:
        walked = walk([*options.targets, *options.from_], Path(spool))
        _hold_something(walked)

        def tell(text: str) -> None:
            if not options.quiet:
                streams.step(text)

        facts = facts_of(walked, tell)
        evidence = list(_hardware(facts.get("report", [])))
        logs = [one for log in facts.get("log", []) if (one := judged(log, evidence)) is not None]
        found = list(_findings(logs, facts, walked))
        checkpoints = checkpoints_in(options.checkpoints, options, streams)
        plan, run_folder = _plan(logs, checkpoints, options, stamp)
        finding = plan_finding(plan)
        found += [finding] if finding else []
        streams.done()
        report = Report(
            command="divergence-rescue", argv=tuple(in_arguments(sys.argv[1:])), level="",
            started_at=started_at, elapsed_s=round(time.monotonic() - began, 2),
            verdict=verdict_of(one.status for one in found), counts=count(found), hosts=(),
            findings=tuple(found), preflight=__version__,
            measurements=tuple(table for one in logs for table in tables_of(one, checkpoints)),
        )  # fmt: skip
        status = finish(shown(report, options), options, streams, targets)
        _act(plan, logs, checkpoints, run_folder, stamp, options, streams)
        return status


def _one_log(options: Options) -> Path:
    """UsageError where it is not one file."""
    targets = [*options.targets, *options.from_]
    if len(targets) != 1 or not Path(targets[0]).is_file():
        raise UsageError(
            "--follow watches one log", "preflight divergence-rescue train.log --follow"
        )
    return Path(targets[0])


def _plan(
    logs: Sequence[Judged], checkpoints: Sequence[Checkpoint], options: Options, stamp: str
) -> tuple[Plan | None, str]:
    """Of the log in which something failed; with the folder of its checkpoints."""
    folder = str(Path(options.checkpoints[0]).absolute()) if options.checkpoints else ""
    for one in logs:
        where = folder or str(Path(one.log.source).absolute().parent)
        found = plan_of(one, checkpoints, where, stamp)
        if found is not None:
            return found, where
    return None, folder


def _act(
    plan: Plan | None, logs: Sequence[Judged], checkpoints: Sequence[Checkpoint], run_folder: str,
    stamp: str, options: Options, streams: Streams,
) -> None:  # fmt: skip
    """What was asked for by name, after the report."""
    if options.execute is not None:
        for text in execute(plan, options.execute, run_folder, stamp):
            streams.note(text)
    if options.signal is not None:
        if not logs:
            raise UsageError("--signal: no log tells whether the run is worth saving",
                             "give its log too")  # fmt: skip
        lost = {event.kind for one in logs for event in one.events if event.recovery == "never"}
        bad = bool(lost & {"not-finite", "loss-vanished", "shift", "frozen"})
        for text in send(options.signal, framework_of(logs[0], checkpoints), finite=not bad):
            streams.note(text)


def _hold_something(walked: Walked) -> None:
    if walked.pids:
        raise UsageError("a PID has no loss to look at", "give its log: preflight "
                         "divergence-rescue train.log")  # fmt: skip
    if not walked.inputs:
        told = [f"{name}: {why}" for name, why in walked.failed.items()]
        told += [f"{names[0]}: {kind}" for kind, names in walked.unknown.items()]
        raise UsageError(
            f"nothing here can be read: {'; '.join(told[:5]) or 'no files'}",
            "give a training log, trainer_state.json, CSV, JSON lines or event files",
        )


def _findings(logs: Sequence[Judged], facts: Facts, walked: Walked) -> Iterator[Finding]:
    for one in logs:
        yield from findings_of(one)
    for name, why in walked.failed.items():
        yield Finding("input", Status.ERROR, name, text=f"not read: {why}")
    if not logs:
        names = ", ".join(one.shown for one in walked.inputs[:3])
        yield Finding(
            "loss.unknown", Status.ERROR, names,
            text="INCOMPLETE: no loss and no gradient norm of any step is in it",
            fix=("give the log of the training itself, or trainer_state.json",),
        )  # fmt: skip


def _hardware(reports: Sequence[StoredReport]) -> Iterator[str]:
    """What reports that were given beside the log say of devices."""
    for stored in reports:
        for host in stored.report.hosts:
            for one in host.results:
                if one.status is Status.FAIL and _CORRUPTS.match(one.check):
                    where = f"{host.host} {one.subject}".strip()
                    yield f"{where}: {one.check} fails in {stored.source}"
