"""What all judging commands do: choose the checks, get the answers, judge, report, exit."""

from __future__ import annotations

import shlex
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from msgspec import Struct

from preflight import __version__, datafiles, strict_yaml
from preflight.assemble import commands_for
from preflight.cli.exit import Exit, exit_status
from preflight.cli.options import Options
from preflight.cli.saving import captures, open_targets, write_all
from preflight.cli.streams import Streams
from preflight.collect import ask, examine, examine_all, trimmed
from preflight.errors import PreflightError, UsageError
from preflight.judge import load, overrides
from preflight.model import (
    LEVELS,
    Check,
    Command,
    HostReport,
    MissingProbe,
    Override,
    Raw,
    Report,
    Status,
)
from preflight.reports import RENDERERS
from preflight.units import parse_duration
from preflight.verdict import count, verdict_of

LEVEL_HINT = "quick looked on, nothing was put under load; no check of this version does more"


class Plan(Struct):
    """What is to be judged, and the questions that takes."""

    checks: list[Check]
    commands: list[Command]
    overrides: tuple[Override, ...]


class Question(Struct, frozen=True):
    """What a judging command is about. `asked`: checks on what the command's name asks for."""

    command: str
    domains: tuple[str, ...]
    asked: tuple[str, ...] = ()


def judge_and_report(question: Question, options: Options, streams: Streams) -> int:
    """The whole of a judging command; returns the exit status."""
    _hold(options)
    plan = make_plan(question, options)
    if options.dry_run:
        return _dry_run(plan, options, streams)
    targets = open_targets(options.save)
    began, started_at = time.monotonic(), now()
    try:
        hosts = _recorded(plan, options) if options.from_ else _live(plan, options, streams)
        report = _report(question, plan, options, hosts, started_at, began)
    except BaseException:
        for target in targets:
            target.drop()
        raise
    streams.done()
    if options.redact:
        from preflight.redact import Redactor, redact_report

        report = redact_report(report, Redactor(host.host for host in report.hosts))
    return finish(report, options, streams, lambda: write_all(
        targets, report, facts=options.facts, note=streams.note
    ))  # fmt: skip


def finish(
    report: Report, options: Options, streams: Streams,
    save: Callable[[], list[PreflightError]] = list,
) -> int:  # fmt: skip
    """Print the report, write the files, and say by exit status how it went."""
    if options.format == "text":
        from preflight.reports.text import lines

        painted = map(streams.paint, lines(report, verbose=options.verbose, quiet=options.quiet))
        streams.report(painted)
    else:
        from preflight.reports import render

        streams.report(render(report, options.format, verbose=options.verbose, facts=options.facts))
    failed = save()
    for error in failed:
        streams.note(f"error: {error.what}")
        streams.note(f"hint: {error.hint}")
    status = exit_status(
        report.verdict,
        warned=report.counts.warn > 0,
        strict=options.strict,
        exit_zero=options.exit_zero,
    )
    return Exit.COULD_NOT_START if failed and status is Exit.OK else status


def now() -> str:
    """UTC, as reports write it."""
    return f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def _hold(options: Options) -> None:
    """Refuse values that are no choice, before anything is done."""
    choices = (("--format", options.format, tuple(RENDERERS)), ("--level", options.level, LEVELS),
               ("--color", options.color, ("auto", "always", "never")))  # fmt: skip
    for flag, value, allowed in choices:
        if value not in allowed:
            raise UsageError(f"{flag} {value!r} is no choice", f"one of {', '.join(allowed)}")
    if parse_duration(options.host_timeout) < 1:
        raise UsageError(f"--host-timeout {options.host_timeout!r} is too short", "at least 1s")


def make_plan(question: Question, options: Options) -> Plan:
    """The checks as chosen and changed by the options."""
    catalogue = load.load(question.domains, [Path(name) for name in options.checks])
    changes = (*_profile(options.profile), *map(overrides.parse, options.set_))
    checks = overrides.apply(catalogue.checks, changes)
    checks = overrides.ask(checks, question.asked, stated=_states_gpus(changes))
    level = next(level for level in LEVELS if level == options.level)
    checks = overrides.select(checks, only=options.only, skip=options.skip, level=level)
    return Plan(checks, commands_for(checks, catalogue.probes), changes)


def _states_gpus(changes: Sequence[Override]) -> bool:
    return any(change.id == "gpu.count" and change.value != 0 for change in changes)


def _profile(name: str | None) -> Iterator[Override]:
    if name is None:
        return
    folder = datafiles.root() / "checks" / "profiles"
    path = Path(name) if name.endswith(".yaml") else folder / f"{name}.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        known = ", ".join(sorted(each.stem for each in folder.glob("*.yaml"))) or "none yet"
        hint = f"shipped profiles: {known}; or the path of a file FILE.yaml"
        raise UsageError(f"--profile {name}: {error.strerror}", hint) from None
    document = strict_yaml.load(text, str(path))
    if not isinstance(document, dict) or set(document) != {"set"}:
        raise UsageError(f"{path}: a profile is one mapping, set: {{ID: VALUE}}")
    for identifier, value in document["set"].items():
        yield Override(identifier, value, f"profile {name}")


def _live(plan: Plan, options: Options, streams: Streams) -> list[HostReport]:
    """This machine, asked now."""
    raws = ask_here(plan.commands, options, streams, captures(options.save))
    return [examine(raws[0].host if raws else "", raws, plan.checks, facts=True)]


def ask_here(
    commands: Sequence[Command], options: Options, streams: Streams, save: Sequence[Path]
) -> list[Raw]:
    """All answers of this machine. They are written to the captures in `save`; interrupted, what
    came so far is written unasked."""
    from preflight.transports.local import Local

    timeout_s = parse_duration(options.host_timeout)
    transport = Local(socket.gethostname(), timeout_s, options.sudo)
    kept: list[Raw] = []
    writers = [_writer(path, options) for path in save]
    try:
        ask(transport, trimmed(commands, timeout_s), kept, streams.step)
    except KeyboardInterrupt:
        _rescue(kept, options, streams)
        raise
    finally:
        for writer in writers:
            writer(kept)
    return kept


def _writer(path: Path, options: Options) -> Callable[[list[Raw]], None]:
    from preflight.capture import Writer
    from preflight.redact import Redactor, redact_raw

    writer = Writer(path, argv=tuple(sys.argv))

    def write(raws: list[Raw]) -> None:
        redactor = Redactor({raw.host for raw in raws})
        with writer:
            masked = (redact_raw(raw, redactor, full=options.redact) for raw in raws)
            writer.write(list(masked))

    return write


def _rescue(kept: list[Raw], options: Options, streams: Streams) -> None:
    """Save what an interrupted run has collected, here or in the temporary directory."""
    if not kept:
        streams.note("interrupted before the first answer: there is nothing to save")
        return
    name = f"preflight-interrupted-{kept[0].host}-{now().replace(':', '')}.capture.gz"
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        with suppress(OSError, PreflightError):
            _writer(folder / name, options)(kept)
            streams.note(f"interrupted; {len(kept)} answers are saved: {folder / name}")
            return


def _recorded(plan: Plan, options: Options) -> list[HostReport]:
    """Hosts from files. A file that is not recognised is there as a host without results, so that
    it cannot be overlooked."""
    from preflight.transports import recorded

    source = recorded.open_inputs(options.from_, sys.stdin.buffer)
    hosts = list(examine_all(source.hosts(), plan.checks, facts=True))
    for file, why in source.bad():
        missing = (MissingProbe(file, "unreadable", why),)
        hosts.append(HostReport(file, Status.ERROR, missing))
    return hosts


def _report(
    question: Question, plan: Plan, options: Options, hosts: Sequence[HostReport],
    started_at: str, began: float,
) -> Report:  # fmt: skip
    return Report(
        command=question.command,
        argv=tuple(sys.argv[1:]),
        level=options.level,
        started_at=started_at,
        elapsed_s=round(time.monotonic() - began, 2),
        verdict=verdict_of(host.verdict for host in hosts),
        counts=count(result for host in hosts for result in host.results),
        hosts=tuple(hosts),
        profile=options.profile,
        overrides=plan.overrides,
        hints=() if options.from_ else (LEVEL_HINT,),
        preflight=__version__,
    )


def _dry_run(plan: Plan, options: Options, streams: Streams) -> int:
    if options.from_:
        streams.report([f"would read {', '.join(options.from_)}; nothing would be run\n"])
        return Exit.OK
    commands = trimmed(plan.commands, parse_duration(options.host_timeout))
    text = [
        f"on {socket.gethostname()}, one after another, at most {options.host_timeout} in all:\n"
    ]
    for each in commands:
        sudo = ["sudo", "-n"] if options.sudo and each.needs_root else []
        shown = shlex.join([*sudo, *each.argv])
        if "\n" in shown and not options.verbose:
            shown = f"a script of {shown.count(chr(10)) + 1} lines that only reads (-v shows it)"
        text.append(f"  at most {each.timeout_s:>3} s  {each.probe:<12} {shown}\n")
    files = [*options.save] or ["nothing"]
    text.append(f"{len(plan.checks)} checks; would write {', '.join(files)}\n")
    streams.report(text)
    return Exit.OK
