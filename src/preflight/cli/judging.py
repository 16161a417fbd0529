"""What all judging commands do: choose the checks, get the answers, judge, report, exit."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from preflight import __version__
from preflight.cli.asking import Captures, Keeper, ask_here
from preflight.cli.clock import now
from preflight.cli.exit import Exit
from preflight.cli.finishing import Told, finish, shown, tell_unwritten
from preflight.cli.hints import hints
from preflight.cli.holding import hold
from preflight.cli.levels import as_recorded
from preflight.cli.many import many_hosts
from preflight.cli.options import Options
from preflight.cli.plan import Plan, Question, make_plan
from preflight.cli.saving import capture_paths, opened_targets
from preflight.cli.stored import changed_since, earlier
from preflight.cli.streams import Streams
from preflight.collect import Examined, Transport, examine_one_of_many
from preflight.errors import ToldInterrupt
from preflight.examiner import FIRST_HOSTS, Examiner, examine_all
from preflight.judge.causes import attribute_fleet
from preflight.judge.drill import drills_told
from preflight.judge.of_all import taken_out
from preflight.model import (
    Check,
    HostReport,
    Missing,
    MissingProbe,
    Raw,
    Report,
    Result,
    Status,
)
from preflight.redact.secrets import in_arguments
from preflight.reports.heat import marked
from preflight.verdict import count, report_verdict, with_fleet

if TYPE_CHECKING:
    from preflight.cli.hosts import Asking

Instead = Callable[[Sequence[Check], Report], Told]


def judge_and_report(
    question: Question, options: Options, streams: Streams, instead: Instead | None = None
) -> int:
    """The whole of a judging command; returns the exit status. `instead`: what is told in place of
    the report, made of the checks and the hosts."""
    hold(options)
    plan = make_plan(question, options)
    if options.dry_run:
        from preflight.cli.dry_run import dry_run

        return dry_run(question, plan, options, streams)
    if question.stores is not None and plan.stores is not None and not _elsewhere(options):
        from preflight.cli.looking import looked

        looked(plan.stores, plan.python, options)
    then = earlier(options)
    captures = Captures(capture_paths(options.save), options.redact)
    with opened_targets(options, drawn=bool(plan.facts) or question.pairs) as targets:
        began, started_at = time.monotonic(), now()
        many = many_hosts(options, plan.commands, streams)
        if many and question.trains is not None and not question.trains.get("sweep"):
            from preflight.cli.one_job import as_one_job

            as_one_job(many, plan.python)
        if plan.stores is not None:
            from preflight.cli.storing import announced

            announced(plan.stores, len(many.hosts) if many else 1, options, streams)
        if plan.objects is not None:
            from preflight.cli.objects import announced as objects_announced

            objects_announced(plan.objects, len(many.hosts) if many else 1, options, streams)
        if many and question.benches is not None:
            from preflight.cli.engines import as_one_bench

            as_one_bench(many, plan, options)
        try:
            found = _examined(plan, options, streams, captures, many)
        except ToldInterrupt as error:
            tell_unwritten(question.command, targets, error.args, streams)
            raise
        hosts, fleet = _judged(plan, options, found, many)
        report = _report(question, plan, options, hosts, fleet, started_at, began)
        report.measurements = marked((table for one in found for table in one.measured), hosts)
        if question.more_tables is not None:
            report.measurements += tuple(question.more_tables(report.measurements))
        if options.slurm:
            from preflight.reports.drain import drain_lines

            report.hints += tuple(drain_lines(report))
        streams.done()
        report = shown(changed_since(report, then), options, captures)
        told = instead(plan.checks, report) if instead else None
        status = finish(report, options, streams, targets, captures, told)
        _write_lock(report, options, streams)
        return Exit.INTERRUPTED if many and many.interrupted.is_set() else status


def _elsewhere(options: Options) -> bool:
    return bool(options.hosts or options.hostfile or options.slurm or options.from_)


def _write_lock(report: Report, options: Options, streams: Streams) -> None:
    if options.lock is not None:
        from preflight.cli.locking import write

        write(report, options, streams)


def _examined(
    plan: Plan, options: Options, streams: Streams, captures: Captures, many: Asking | None
) -> list[Examined]:
    """Every host, asked or read, and judged by itself."""
    if many:
        return _asked(plan, options, streams, captures, many)
    if options.from_:
        recorded = list(_recorded(plan, options, streams, captures))
        for one in recorded:
            one.report.results = tuple(as_recorded(one.report.results, plan.beyond))
        return recorded
    raws = ask_here(plan.commands(), options, streams, captures, _by_engine(plan))
    facts, drawn = _wants_facts(options), bool(plan.facts)
    checks = _checks_of(plan, options, many)
    return [
        examine_one_of_many(
            raws[0].host, raws, checks, facts=facts, drawn=drawn, nics=options.nics or ""
        )
    ]


def _by_engine(plan: Plan) -> Callable[[Transport], Transport]:
    """What the engine of a bench makes of the way to this machine."""
    if "tests" not in (plan.benches or {}):
        return lambda transport: transport
    from preflight.cli.engines import here

    return here(plan)


def _checks_of(plan: Plan, options: Options, many: Asking | None) -> list[Check]:
    """Of what hosts have in common this machine alone has what was stated."""
    if many or options.from_:
        return plan.checks
    return [one for one in plan.checks if one.across != "fleet" or one.row.get("stated")]


def _judged(
    plan: Plan, options: Options, found: Sequence[Examined], many: Asking | None
) -> tuple[list[HostReport], list[Result]]:
    """Every host, and what only their comparison shows."""
    checks = _checks_of(plan, options, many)
    hosts = [one.report for one in found]
    shared = taken_out(hosts)
    read = [one.readings for one in found if one.readings and one.readings.of]
    if not read and not shared:
        return hosts, []
    from preflight.judge.fleet import judge_fleet

    fleet = judge_fleet([one.readings for one in found if one.readings], checks)
    fleet = [*shared, *as_recorded(fleet, plan.beyond)]
    attribute_fleet(fleet, hosts)
    with_fleet(hosts, fleet, _compared(found, fleet))
    return hosts, fleet


def _compared(found: Sequence[Examined], fleet: Sequence[Result]) -> set[str]:
    """The hosts that told a value of anything that was compared."""
    judged = {one.check for one in fleet if one.status is not Status.SKIP}
    return {
        one.readings.host
        for one in found
        if one.readings
        for each in one.readings.of
        if each.check in judged and each.value is not None and not isinstance(each.value, Missing)
    }


def _asked(
    plan: Plan, options: Options, streams: Streams, captures: Captures, many: Asking
) -> list[Examined]:
    """Many hosts, judged as they come, in the order in which they were named."""
    facts = options.facts or (len(many.hosts) == 1 and _wants_facts(options))
    found: dict[str, Examined] = {}
    # The processes start before the first thread.
    workers = 0 if 0 < len(many.hosts) < FIRST_HOSTS else None
    with Examiner(
        plan.checks, facts=facts, drawn=bool(plan.facts), nics=options.nics or "", workers=workers
    ) as examiner:
        for name, raws in many.answers(plan.commands(), options, streams, captures):
            examiner.put(name, raws)
            found |= {one.report.host: one for _, one in examiner.poll()}
        found |= {one.report.host: one for _, one in examiner.rest()}
    order = dict.fromkeys([*many.hosts, *found])  # Slurm may choose them
    return [found[name] for name in order if name in found]


def _recorded(
    plan: Plan, options: Options, streams: Streams, captures: Captures
) -> Iterator[Examined]:
    """Hosts from files. A file that is not recognised is there as a host without results, so that
    it cannot be overlooked."""
    from preflight.transports.recorded import open_inputs

    source = open_inputs(options.from_, sys.stdin.buffer if sys.stdin else None)
    with captures.opened() as keeper:
        hosts = _kept(source.hosts(), keeper)
        yield from examine_all(
            hosts,
            plan.checks,
            all_facts=options.facts,
            one_hosts_facts=_wants_facts(options),
            drawn=bool(plan.facts),
            nics=options.nics or "",
        )
    for note in source.notes():
        streams.note(f"note: {note}")
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
    results = [*(result for host in hosts for result in host.results), *fleet]
    return Report(
        command=question.command,
        argv=tuple(in_arguments(sys.argv[1:])),
        level=options.level,
        started_at=started_at,
        elapsed_s=round(time.monotonic() - began, 2),
        verdict=report_verdict(hosts, fleet, ()),
        counts=count(results),
        hosts=tuple(hosts),
        profile=options.profile,
        overrides=plan.overrides,
        fleet=tuple(fleet),
        hints=(*drills_told(results), *hints(question, plan, options, hosts)),
        preflight=__version__,
    )
