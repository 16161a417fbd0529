"""preflight capture: all answers of this machine in one file."""

from __future__ import annotations

import socket
from pathlib import Path

from preflight.assemble.host import assemble
from preflight.cli.asking import CAPTURE_SUFFIX, Captures, ask_here, shown_commands
from preflight.cli.exit import Exit
from preflight.cli.judging import Question, hold_duration, make_plan
from preflight.cli.options import Options
from preflight.cli.streams import Streams
from preflight.errors import UsageError
from preflight.judge.load import DOMAINS
from preflight.model import Missing


def run(options: Options, streams: Streams) -> int:
    """Ask everything that any check needs; write it; name the file and what could not be had."""
    hold_duration(options)
    plan = make_plan(Question("capture", DOMAINS), options)
    # The name of the file would tell what --redact is to hide.
    name = "redacted" if options.redact else socket.gethostname()
    path = Path(options.output or f"preflight-{name}{CAPTURE_SUFFIX}")
    if not path.name.endswith(CAPTURE_SUFFIX):
        stem = path.name.removesuffix(".gz").removesuffix(".capture")
        raise UsageError(f"-o {path}: a capture's name ends in {CAPTURE_SUFFIX}",
                         f"-o {path.with_name(stem + CAPTURE_SUFFIX)}")  # fmt: skip
    if options.dry_run:
        streams.report([*shown_commands(plan.commands(), options), f"would write {path}\n"])
        return Exit.OK
    captures = Captures([path], options.redact)
    raws = ask_here(plan.commands(), options, streams, captures)
    for error in captures.failed:
        raise error
    assembled = assemble(raws[0].host, raws)
    if not options.quiet:
        for each in assembled.missing:
            streams.note(f"not had: {each.text}")
    told = len(raws) - len(assembled.missing)
    shown = f"{path}: {told} of {len(raws)} answers; read it with: preflight run --from {path}"
    streams.report([f"{shown}\n"])
    return Exit.UNDETERMINED if isinstance(assembled.host.identity, Missing) else Exit.OK
