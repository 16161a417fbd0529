"""What --dir and the like ask of a bench of storage, as the plan that travels to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from preflight.cli.amounts import seconds_of, size_of
from preflight.cli.options import Options
from preflight.cli.streams import Streams
from preflight.errors import UsageError
from preflight.facts.patterns import PATTERNS as ALL
from preflight.model import Check, Command
from preflight.units import format_bytes, format_duration, parse_bytes

#: What `run --level standard` does.
QUICK: dict[str, Any] = {"size_bytes": 1 << 30, "seconds": 8.0}
#: What tries a directory and measures nothing.
TRIAL: dict[str, Any] = {"size_bytes": 1 << 20, "seconds": 2.0, "measure": False}
#: By default, and the least.
_SIZE, _SECONDS = 4 << 30, 60.0
_LEAST_BYTES, _LEAST_S = 64 << 20, 6.0
_MOST_BYTES, _MOST_S = 1 << 45, 86400.0
#: Of the plan's fields for one pattern: that, the option, the range, and that in words.
_RANGES = {
    "workers": ("dataloader", "--workers", 1, 256, "1 to 256"),
    "window_bytes": ("dataloader", "--window", 4 << 10, 16 << 20, "4K to 16M"),
    "demand_mbps": ("dataloader", "--demand-mbps", 1e-3, 1e6, "0.001 to 1000000, in MB/s"),
    "writers": ("checkpoint", "--writers", 1, 128, "1 to 128"),
}
_PAGE = 4 << 10


def plan_of(options: Options) -> dict[str, Any]:
    """The plan. Raises UsageError."""
    if options.from_:
        raise UsageError("--from reads what was recorded, and the other options write files",
                         "leave one of them out")  # fmt: skip
    plan: dict[str, Any] = {
        "size_bytes": size_of(options.size, _SIZE, _LEAST_BYTES, _MOST_BYTES),
        "seconds": seconds_of(options.runtime, _SECONDS, _LEAST_S, _MOST_S),
    }  # fmt: skip
    plan |= {"dir": _dir(options.dir)} if options.dir is not None else {}
    plan |= {"even_if_busy": True} if options.even_if_busy else {}
    plan |= {"patterns": _patterns(options)} | _own(options)
    if options.job is not None:
        from preflight.cli.fio_file import held

        plan["job_file"] = held(
            _read(options.job), options.job, plan["size_bytes"], plan["seconds"]
        )
    return plan


def wanted(asked: dict[str, Any] | None, checks: Sequence[Check]) -> dict[str, Any]:
    """What was asked for, else the quick one; without checks on what is measured nothing is."""
    if any(one.domain == "io" for one in checks):
        return dict(QUICK) if asked is None else asked
    return {**(asked or {}), **TRIAL}


def _patterns(options: Options) -> list[str]:
    """Which are measured: all, or those named; with a job file fio alone."""
    if options.patterns is None:
        return [ALL[0]] if options.job is not None else list(ALL)
    asked = [one.strip() for one in options.patterns.split(",")]
    wrong = next((one for one in asked if one not in ALL), None)
    if wrong is not None:
        raise UsageError(f"--patterns {wrong!r} is none", f"some of {','.join(ALL)}")
    if options.job is not None and asked != [ALL[0]]:
        raise UsageError("--job is of fio, and --patterns asks for more", "leave one of them out")
    return list(dict.fromkeys(asked))


def _own(options: Options) -> dict[str, Any]:
    """What is of one pattern alone."""
    asked: dict[str, Any] = {}
    if options.writers is not None:
        asked["writers"] = options.writers
    if options.loaders is not None:
        asked["workers"] = options.loaders
    if options.window is not None:
        asked["window_bytes"] = parse_bytes(options.window)
    if options.demand_mbps is not None:
        asked["demand_mbps"] = options.demand_mbps
    for name, value in asked.items():
        pattern, flag, low, high, words = _RANGES[name]
        if not low <= value <= high:  # NaN is in no range
            raise UsageError(f"{flag} is out of range", words)
        if pattern not in _patterns(options):
            raise UsageError(f"{flag}: of {pattern}, which is not measured",
                             f"--patterns {pattern}")  # fmt: skip
    if asked.get("window_bytes", 0) % _PAGE:
        raise UsageError(f"--window {options.window} is no multiple of 4K", "--window 128K")
    return asked


def _dir(text: str) -> str:
    if not text.startswith(("/", "~")):
        path = Path(text)
        if not text.strip():
            raise UsageError("--dir '': expected a directory", "is a variable empty?")
        return str(path.absolute())
    return text


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        what = f"--job {name} cannot be read: {why}"
        raise UsageError(what, "--job FILE, as fio takes it") from error


def store_question(plan: dict[str, Any], python: tuple[str, ...]) -> Command:
    """The question, with what it takes."""
    from preflight.ship import store_command

    return store_command(plan, float(plan["seconds"]), python, estimate(plan))


def estimate(plan: dict[str, Any]) -> str:
    """What it takes, for --dry-run."""
    where = plan.get("dir") or "the first of $TMPDIR, /tmp, /var/tmp, $HOME on a local disk"
    return (f"writes files of at most {format_bytes(plan['size_bytes'])} into {where}, again and "
            "again, removed afterwards; "
            f"about {format_duration(plan['seconds'])}")  # fmt: skip


def announced(plan: dict[str, Any], hosts: int, options: Options, streams: Streams) -> None:
    """Tell what is about to be written. Hosts that share the file system share the bytes."""
    if hosts > 1:
        plan |= {"hosts": hosts, "job": token_hex(8)}
    if options.quiet:
        return
    each = f", on each of {hosts} hosts" if hosts > 1 else ""
    once = "; a file system that they share gets it once" if "job_file" not in plan else ""
    streams.note(f"{estimate(plan)}{each}{once if each else ''}")


def told_of(told: dict[str, Any]) -> str:
    """A line of the payload in words for a terminal; "" for one that is no news."""
    if told.get("preflight") == "io-bench/1" and told.get("kind") == "begin":
        size = told.get("size_bytes")
        written = format_bytes(size) if isinstance(size, int) else "a size that is not told"
        return f"writes files of at most {written} into {told.get('dir')} ({told.get('fs')})"
    if told.get("kind") == "pattern":
        return f"{told.get('name')} {told.get('part', '')} is done"
    return f"{told.get('name')} is done" if told.get("kind") == "fio" else ""
