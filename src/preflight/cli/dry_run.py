"""What a judging command would ask and write, and nothing of it done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from preflight.cli.asking import shown_commands
from preflight.cli.exit import Exit
from preflight.cli.many import many_hosts
from preflight.cli.options import Options
from preflight.cli.plan import Plan, Question
from preflight.cli.saving import hold_targets, host_paths
from preflight.cli.streams import Streams
from preflight.model import Command


def dry_run(question: Question, plan: Plan, options: Options, streams: Streams) -> int:
    """Tell it; the exit status."""
    hold_targets(options, drawn=bool(plan.facts) or question.pairs)
    if options.from_:
        streams.report([f"would read {', '.join(options.from_)}; nothing would be run\n"])
        return Exit.OK
    commands = plan.commands()
    many = many_hosts(options, plan.commands, streams)
    if plan.benches and "tests" in plan.benches:
        from preflight.cli.nccl_tests.shown import lines

        streams.report(lines(plan.benches, commands, options, many, plan.python))
        streams.report([_closing(plan, options)])
        return Exit.OK
    job = question.trains if question.trains is not None else question.benches
    if many and job is not None:
        from preflight.cli.one_job import first_questions

        before = first_questions(commands, job, plan.python)
        streams.report(["first, to know who can take part, and where they can meet:\n"])
        streams.report(shown_commands(before, options, many.told()))
        streams.report(["then those that can, as one job; their plan says that too:\n"])
        if question.benches is not None:
            commands = _together(commands, plan.benches or {}, len(many.hosts))
    streams.report(shown_commands(commands, options, many.told() if many else ""))
    streams.report([_closing(plan, options)])
    return Exit.OK


def _together(commands: Sequence[Command], benches: dict[str, Any], hosts: int) -> list[Command]:
    """With what a bench takes over so many hosts, in place of what it takes on one."""
    from preflight.cli.benches import estimate

    alone, together = estimate(benches), estimate(benches, hosts)
    return [replace(one, note=one.note.replace(alone, together)) for one in commands]


def _closing(plan: Plan, options: Options) -> str:
    """How much is judged, and what is written."""
    lock = [options.lock] if options.lock is not None else []
    files = ", ".join([*options.save, *lock, *map(str, host_paths(options))])
    works = (plan.trains, plan.stores, plan.objects)
    writes = any(one is not None for one in works)
    files = files or ("nothing that stays" if writes else "nothing")
    return f"{len(plan.checks)} checks; would write {files}\n"
