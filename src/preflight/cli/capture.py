"""preflight capture: all answers of this machine, or of many, in one file."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from preflight.assemble.host import assemble
from preflight.cli.asking import CAPTURE_SUFFIX, Captures, ask_here, shown_commands
from preflight.cli.exit import Exit
from preflight.cli.holding import hold_duration
from preflight.cli.many import many_hosts
from preflight.cli.options import Options
from preflight.cli.plan import Question, make_plan
from preflight.cli.streams import Streams
from preflight.errors import UsageError
from preflight.judge.load import DOMAINS
from preflight.model import Command, Missing

if TYPE_CHECKING:
    from preflight.cli.hosts import Asking


def run(options: Options, streams: Streams) -> int:
    """Ask everything that any check needs; write it; name the file and what could not be had."""
    hold_duration(options)
    plan = make_plan(Question("capture", DOMAINS), options)
    commands = plan.commands()
    many = many_hosts(options, plan.commands, streams)
    path = _path(options, many)
    if options.dry_run:
        where = many.told() if many else ""
        streams.report([*shown_commands(commands, options, where), f"would write {path}\n"])
        return Exit.OK
    captures = Captures([path], options.redact)
    if many:
        return _many(many, commands, options, streams, captures)
    raws = ask_here(commands, options, streams, captures)
    _raise_failed(captures)
    assembled = assemble(raws[0].host, raws)
    if not options.quiet:
        for each in assembled.missing:
            streams.note(f"not had: {each.text}")
    told = len(raws) - len(assembled.missing)
    shown = f"{path}: {told} of {len(raws)} answers; read it with: preflight run --from {path}"
    streams.report([f"{shown}\n"])
    return Exit.UNDETERMINED if isinstance(assembled.host.identity, Missing) else Exit.OK


def _path(options: Options, many: Asking | None) -> Path:
    # The name of the file would tell what --redact is to hide.
    name = "redacted" if options.redact else socket.gethostname()
    name = f"{len(many.hosts) or 'slurm'}-hosts" if many else name
    path = Path(options.output or f"preflight-{name}{CAPTURE_SUFFIX}")
    if not path.name.endswith(CAPTURE_SUFFIX):
        stem = path.name.removesuffix(".gz").removesuffix(".capture")
        raise UsageError(f"-o {path}: a capture's name ends in {CAPTURE_SUFFIX}",
                         f"-o {path.with_name(stem + CAPTURE_SUFFIX)}")  # fmt: skip
    return path


def _raise_failed(captures: Captures) -> None:
    for error in captures.failed:
        raise error


def _many(
    many: Asking, commands: Sequence[Command], options: Options, streams: Streams,
    captures: Captures,
) -> int:  # fmt: skip
    """The same over many hosts; who gave no answer is named with the reason."""
    silent: dict[str, str] = {}
    count = cut = 0
    for name, raws in many.answers(commands, options, streams, captures):
        count += 1
        if all(raw.missing for raw in raws):
            silent[name] = next((raw.missing.text for raw in raws[-1:] if raw.missing), "")
        elif raws[-1].missing and raws[-1].missing.fault:
            cut += 1
    streams.done()
    _raise_failed(captures)
    if not options.quiet:
        for name, why in silent.items():
            streams.note(f"no answer: {name}: {why}")
    path = captures.paths[0]
    told = f"{path}: {count - len(silent)} of {count} hosts answered"
    told += f" ({cut} not to the end)" if cut else ""
    streams.report([f"{told}; read it with: preflight run --from {path}\n"])
    if many.interrupted.is_set():
        return Exit.INTERRUPTED
    return Exit.UNDETERMINED if silent or cut else Exit.OK
