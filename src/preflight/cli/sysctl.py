"""preflight sysctl: the system under the training run, and changing it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from preflight.cli.judging import judge_and_report
from preflight.cli.options import Options, are_many
from preflight.cli.plan import Question
from preflight.cli.streams import Streams
from preflight.errors import UsageError

#: What of the comparison of hosts belongs to it.
FLEET = ("fleet.told.same", "fleet.sysctl.*", "fleet.clock.*", "fleet.board.*", "fleet.memory.*")


def run(options: Options, streams: Streams) -> int:
    """Judge kernel parameters, limits, processors, memory and disks; change them where asked."""
    _hold(options)
    question = Question("sysctl", ("system", "parameters", "fleet"), fleet=FLEET)
    if not (options.fix_script or options.apply or options.undo is not None):
        return judge_and_report(question, options, streams)
    from preflight.cli import settings

    if options.undo is not None:
        return settings.undone(options, streams)
    told = settings.applied if options.apply else settings.script
    # What --apply would change is known once the machine was looked at, which changes nothing.
    looks = options
    if options.apply and options.dry_run:
        looks = replace(options, dry_run=False, save=[], save_hosts=None, lock=None)
    return judge_and_report(
        question, looks, streams, lambda checks, report: told(checks, report, options, streams)
    )


def _hold(options: Options) -> None:
    """Refuse what does not go together, before anything is done."""
    asked = [flag for flag, has in _FLAGS if has(options)]
    if len(asked) > 1:
        raise UsageError(f"{asked[0]} and {asked[1]} are two things", "one after the other")
    if options.undo_file is not None and not options.apply:
        raise UsageError("--undo-file is where --apply writes", "--apply --undo-file FILE")
    if asked and options.format != "text":
        raise UsageError(
            f"{asked[0]} has no report to print as {options.format}",
            "--save report.json writes the report beside it",
        )
    elsewhere = options.from_ or are_many(options)
    if elsewhere and (options.apply or options.undo is not None):
        raise UsageError(f"{asked[0]} changes this machine only", "for other hosts: --fix-script")


_FLAGS: tuple[tuple[str, Callable[[Options], bool]], ...] = (
    ("--fix-script", lambda options: options.fix_script),
    ("--apply", lambda options: options.apply),
    ("--undo", lambda options: options.undo is not None),
)
