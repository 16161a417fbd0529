"""Running processes as targets: asked here, or on the hosts that the user names."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from preflight.cli.asking import Captures, ask_here, shown_commands
from preflight.cli.many import many_hosts
from preflight.cli.options import Options, are_many
from preflight.cli.streams import Streams
from preflight.errors import PreflightError, ToldInterrupt, UsageError
from preflight.facts.process import HostLook
from preflight.model import Command, Raw
from preflight.units import parse_duration

_SECONDS = 10.0
_LEAST_S, _MOST_S = 2.0, 600.0


def question(pids: Sequence[int], options: Options) -> Command:
    """What a host is asked. UsageError for options that contradict each other."""
    from preflight.ship import look_command

    seconds = parse_duration(options.duration) if options.duration else _SECONDS
    if not _LEAST_S <= seconds <= _MOST_S:
        raise UsageError(f"--duration {options.duration}: a look takes 2 s to 10 min",
                         "--duration 30s")  # fmt: skip
    if pids and are_many(options):
        way, how = ("--slurm", "--slurm") if options.slurm else ("--hosts", "--hosts HOSTS")
        raise UsageError(
            f"a PID is of this machine, and {way} asks others",
            f"preflight diagnose-step-time {how} finds what trains there",
        )
    plan = {"pids": list(pids), "seconds": seconds}
    return look_command(plan, tuple(shlex.split(options.python)))


def looks(
    pids: Sequence[int], options: Options, streams: Streams, captures: Captures
) -> list[HostLook]:
    """Every host that was asked; one that gave no answer with why."""
    command = question(pids, options)
    many = many_hosts(options, lambda: [command], streams)
    if many is None:
        raws = ask_here([command], options, streams, captures)
        return [look_of(raws[0].host, raws)] if raws else []
    answers = many.answers([command], options, streams, captures)
    found = [look_of(name, raws) for name, raws in answers]
    if many.interrupted.is_set():
        raise ToldInterrupt
    return found


def would_look(pids: Sequence[int], options: Options, streams: Streams) -> Iterator[str]:
    """What --dry-run prints of it."""
    command = question(pids, options)
    many = many_hosts(options, lambda: [command], streams)
    yield from shown_commands([command], options, many.told() if many else "")


def look_of(host: str, raws: Sequence[Raw]) -> HostLook:
    """What one host answered."""
    from preflight.probes.look.look import look

    troubles = list(_troubles(raws))
    raw = next((one for one in raws if one.probe == "look" and one.missing is None), None)
    if raw is None or troubles:
        return HostLook(host, troubles=tuple(troubles or ["it gave no answer"]))
    text = raw.stdout if isinstance(raw.stdout, str) else raw.stdout.decode(errors="replace")
    try:
        return look(text, host)
    except PreflightError as error:
        said = raw.stderr if isinstance(raw.stderr, str) else raw.stderr.decode(errors="replace")
        last = said.strip().splitlines()[-1:] or [error.what]
        return HostLook(host, troubles=(f"the look ended with status {raw.rc}: {last[0][:200]}",))


def _troubles(raws: Sequence[Raw]) -> Iterator[str]:
    for raw in raws:
        if raw.missing is not None:
            yield raw.missing.text or raw.missing.kind


def as_facts(found: Sequence[HostLook]) -> dict[str, list[Any]]:
    """Under the name of their kind."""
    return {"look": list(found)} if found else {}
