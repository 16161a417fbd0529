"""Values of options that are no choice, refused before anything is done."""

from __future__ import annotations

import shlex

from preflight.cli.options import Options, are_many
from preflight.errors import UsageError
from preflight.hca_list import is_list
from preflight.model import LEVELS
from preflight.reports import RENDERERS
from preflight.units import parse_duration

#: What --duration takes at most: a day.
_LONGEST_S = 86400


def hold(options: Options) -> None:
    """Refuse values that are no choice, before anything is done."""
    if not are_many(options) and (options.ssh != "builtin" or options.accept_new_host_keys):
        flag = "--ssh" if options.ssh != "builtin" else "--accept-new-host-keys"
        raise UsageError(f"{flag}, and no hosts are named", "--hosts 'node[01-16]'")
    if options.from_ and are_many(options):
        raise UsageError("--from reads what was recorded, --hosts asks", "leave one of them out")
    choices = (("--format", options.format, tuple(RENDERERS)), ("--level", options.level, LEVELS),
               ("--color", options.color, ("auto", "always", "never")))  # fmt: skip
    for flag, value, allowed in choices:
        if value not in allowed:
            raise UsageError(f"{flag} {value!r} is no choice", f"one of {', '.join(allowed)}")
    hold_duration(options)
    _hold_pids(options)
    if options.nics is not None and not is_list(options.nics):
        raise UsageError(f"--nics {options.nics!r} is no list of adapters",
                         "--nics mlx5_0,mlx5_1:1 or =mlx5_0 or ^mlx5_4")  # fmt: skip
    if parse_duration(options.host_timeout) < 1:
        raise UsageError(f"--host-timeout {options.host_timeout!r} is too short", "at least 1s")


def _hold_pids(options: Options) -> None:
    """A process id is of one machine, and of one that is asked."""
    if not options.pid:
        return
    if options.from_ or are_many(options):
        flag = "--from reads what was recorded" if options.from_ else "other hosts are asked"
        raise UsageError(f"--pid is of a process of this machine, and {flag}",
                         "run preflight with --pid on the host where the process runs")  # fmt: skip
    wrong = next((pid for pid in options.pid if pid < 1), None)
    if wrong is not None:
        raise UsageError(f"--pid {wrong} is no process", "pgrep -f train.py tells it")


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
