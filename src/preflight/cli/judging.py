"""What all judging commands do: choose the checks, get the answers, judge, report, exit."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from preflight import __version__, datafiles, strict_yaml
from preflight.assemble.sources import commands_for
from preflight.cli.asking import Captures, Keeper, ask_here, shown_commands
from preflight.cli.clock import now
from preflight.cli.exit import Exit, exit_status
from preflight.cli.hosts import Asking, are_many, asking
from preflight.cli.options import Options
from preflight.cli.saving import Targets, capture_paths, opened_targets
from preflight.cli.streams import Streams
from preflight.collect import Examined, examine
from preflight.errors import UsageError
from preflight.examiner import FIRST_HOSTS, Examiner, examine_all
from preflight.judge import load, overrides
from preflight.judge.fleet import judge_fleet
from preflight.model import (
    LEVELS,
    Check,
    Command,
    HostReport,
    MissingProbe,
    Override,
    Raw,
    Report,
    Result,
    Status,
)
from preflight.redact.secrets import in_arguments
from preflight.reports import RENDERERS, render
from preflight.units import parse_duration
from preflight.verdict import count, report_verdict

NO_GPU = "no NVIDIA GPU"
#: What --duration takes at most: a day.
_LONGEST_S = 86400
LEVEL_HINT = (
    "quick looked on, nothing was put under load; --duration 60s watches the GPUs, best at work"
)


class Plan(Struct):
    """What is to be judged."""

    checks: list[Check]
    site_probes: list[Command]
    overrides: tuple[Override, ...]
    watch_s: float = 0.0
    python: tuple[str, ...] = ()

    def commands(self) -> list[Command]:
        """The questions that it takes; recorded answers need none, nor the modules that ask."""
        asked = commands_for(self.checks, self.site_probes)
        if not self.watch_s:
            return asked
        from preflight.ship import watch_command

        return [*asked, watch_command(self.watch_s, self.python)]


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
    captures = Captures(capture_paths(options.save), options.redact)
    with opened_targets(options.save) as targets:
        began, started_at = time.monotonic(), now()
        many = asking(options, plan.commands(), streams) if are_many(options) else None
        hosts, fleet = _judged(plan, options, streams, captures, many)
        report = _report(question, plan, options, hosts, fleet, started_at, began)
        streams.done()
        report = shown(report, options, captures)
        status = finish(report, options, streams, targets, captures)
        return Exit.INTERRUPTED if many and many.interrupted.is_set() else status


def shown(report: Report, options: Options, captures: Captures | None = None) -> Report:
    """The report as it may be shown, with the same stand-ins as the captures written beside it.
    Results hold no secrets; facts may."""
    if not options.redact and not any(host.facts for host in report.hosts):
        return report
    from preflight.redact.redactor import redact_report

    redactor = (captures or Captures([])).stand_ins()
    return redact_report(report, redactor, full=options.redact)


def finish(
    report: Report, options: Options, streams: Streams, targets: Targets,
    captures: Captures | None = None,
) -> int:  # fmt: skip
    """Print the report, write the files, and say by exit status how it went."""
    if options.format == "text":
        from preflight.reports.text import lines

        painted = map(streams.paint, lines(report, verbose=options.verbose, quiet=options.quiet))
        streams.report(painted)
    else:
        streams.report(render(report, options.format, facts=options.facts))
    failed = [*targets.write(report, facts=options.facts), *(captures.failed if captures else ())]
    for path in [*targets.written, *(captures.written if captures else ())]:
        streams.note(f"saved {path}")
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


def _hold(options: Options) -> None:
    """Refuse values that are no choice, before anything is done."""
    if options.from_ and are_many(options):
        raise UsageError("--from reads what was recorded, --hosts asks", "leave one of them out")
    choices = (("--format", options.format, tuple(RENDERERS)), ("--level", options.level, LEVELS),
               ("--color", options.color, ("auto", "always", "never")))  # fmt: skip
    for flag, value, allowed in choices:
        if value not in allowed:
            raise UsageError(f"{flag} {value!r} is no choice", f"one of {', '.join(allowed)}")
    hold_duration(options)
    if parse_duration(options.host_timeout) < 1:
        raise UsageError(f"--host-timeout {options.host_timeout!r} is too short", "at least 1s")


def hold_duration(options: Options) -> None:
    """Refuse a time that cannot be watched, or a way to start Python that is none."""
    if options.duration is not None:
        if options.from_:
            raise UsageError("--duration watches what is here, --from reads what was recorded",
                             "leave one of them out")  # fmt: skip
        if not 1 <= parse_duration(options.duration) <= _LONGEST_S:
            raise UsageError(f"--duration {options.duration!r} is out of range", "1s to 24h")
    try:
        words = shlex.split(options.python)
    except ValueError:
        words = []
    if not words:
        raise UsageError(f"--python {options.python!r} is no command", "--python python3.12")


def make_plan(question: Question, options: Options) -> Plan:
    """The checks as chosen and changed by the options."""
    catalogue = load.load(question.domains, [Path(name) for name in options.checks])
    changes = (*_profile(options.profile), *map(overrides.parse, options.set_))
    checks = overrides.apply(catalogue.checks, changes)
    checks = overrides.mark(checks, question.asked, asked=True)
    if _states_gpus(changes):
        checks = overrides.mark(checks, ["gpu.present"], stated=True)
    level = next(level for level in LEVELS if level == options.level)
    checks = overrides.select(checks, only=options.only, skip=options.skip, level=level)
    watch_s = 0.0 if options.duration is None else parse_duration(options.duration)
    return Plan(checks, catalogue.probes, changes, watch_s, tuple(shlex.split(options.python)))


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
        hint = f"shipped profiles: {known}; or the path of your own, ending in .yaml"
        raise UsageError(f"--profile {name}: there is no {path}", hint) from error
    document = strict_yaml.load(text, str(path))
    if not isinstance(document, dict) or set(document) != {"set"} or not document["set"]:
        raise UsageError(f"{path}: a profile is one mapping, set: {{ID: VALUE}}")
    if not isinstance(document["set"], dict):
        raise UsageError(f"{path}: set: is a mapping, such as {{gpu.count: 8}}")
    for identifier, value in document["set"].items():
        yield Override(identifier, value, f"profile {name}")


def _judged(
    plan: Plan, options: Options, streams: Streams, captures: Captures, many: Asking | None
) -> tuple[list[HostReport], list[Result]]:
    """Every host, and what only their comparison shows."""
    if many:
        found = _asked(plan, options, streams, captures, many)
    elif options.from_:
        found = list(_recorded(plan, options, captures))
    else:
        raws = ask_here(plan.commands(), options, streams, captures)
        return [examine(raws[0].host, raws, plan.checks, facts=_wants_facts(options))], []
    read = [one.readings for one in found if one.readings]
    return [one.report for one in found], judge_fleet(read, plan.checks)


def _asked(
    plan: Plan, options: Options, streams: Streams, captures: Captures, many: Asking
) -> list[Examined]:
    """Many hosts, judged as they come, in the order in which they were named."""
    facts = options.facts or (len(many.hosts) == 1 and _wants_facts(options))
    found: dict[str, Examined] = {}
    # The processes start before the first thread.
    workers = 0 if len(many.hosts) < FIRST_HOSTS else None
    with Examiner(plan.checks, facts=facts, workers=workers) as examiner:
        for name, raws in many.answers(plan.commands(), options, streams, captures):
            examiner.put(name, raws)
            found |= {one.report.host: one for _, one in examiner.poll()}
        found |= {one.report.host: one for _, one in examiner.rest()}
    return [found[name] for name in many.hosts if name in found]


def _recorded(plan: Plan, options: Options, captures: Captures) -> Iterator[Examined]:
    """Hosts from files. A file that is not recognised is there as a host without results, so that
    it cannot be overlooked."""
    from preflight.transports.recorded import open_inputs

    source = open_inputs(options.from_, sys.stdin.buffer if sys.stdin else None)
    with captures.opened() as keeper:
        hosts = _kept(source.hosts(), keeper)
        yield from examine_all(
            hosts, plan.checks, all_facts=options.facts, one_hosts_facts=_wants_facts(options)
        )
    for file, why in source.bad():
        missing = MissingProbe(file, "unreadable", why)
        yield Examined(HostReport(file, Status.ERROR, (missing,)))


def _wants_facts(options: Options) -> bool:
    """Only JSON holds facts."""
    return options.format == "json" or any(name.endswith(".json") for name in options.save)


def _kept(
    hosts: Iterator[tuple[str, list[Raw]]], keeper: Keeper | None
) -> Iterator[tuple[str, list[Raw]]]:
    for name, raws in hosts:
        if keeper:
            keeper.put(raws)
        yield name, raws


def _report(
    question: Question, plan: Plan, options: Options, hosts: Sequence[HostReport],
    fleet: Sequence[Result], started_at: str, began: float,
) -> Report:  # fmt: skip
    return Report(
        command=question.command,
        argv=tuple(in_arguments(sys.argv[1:])),
        level=options.level,
        started_at=started_at,
        elapsed_s=round(time.monotonic() - began, 2),
        verdict=report_verdict(hosts, fleet, ()),
        counts=count([*(result for host in hosts for result in host.results), *fleet]),
        hosts=tuple(hosts),
        profile=options.profile,
        overrides=plan.overrides,
        fleet=tuple(fleet),
        hints=tuple(_hints(options, hosts)),
        preflight=__version__,
    )


def _hints(options: Options, hosts: Sequence[HostReport]) -> Iterator[str]:
    """What a user would want to do next."""
    if any(host.summary.startswith(NO_GPU) for host in hosts) and not options.set_:
        yield "no GPU was judged; where there should be some: --set gpu.count=N makes it a failure"
    if not options.from_:
        yield LEVEL_HINT


def _dry_run(plan: Plan, options: Options, streams: Streams) -> int:
    if options.from_:
        streams.report([f"would read {', '.join(options.from_)}; nothing would be run\n"])
        return Exit.OK
    where = asking(options, plan.commands(), streams).told() if are_many(options) else ""
    streams.report(shown_commands(plan.commands(), options, where))
    files = ", ".join(options.save) or "nothing"
    streams.report([f"{len(plan.checks)} checks; would write {files}\n"])
    return Exit.OK
