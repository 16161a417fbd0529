"""Locks on the command line: --lock writes one of what was found, --against compares with one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from msgspec.structs import astuple, replace

from preflight import lockfile
from preflight.cli.clock import now
from preflight.cli.options import Options
from preflight.cli.stored import content
from preflight.cli.streams import Streams
from preflight.errors import PreflightError, UsageError
from preflight.judge.lock import ENTRIES, READS, TELL
from preflight.lockfile import Locked
from preflight.model import Check, HostReport, Report, Status
from preflight.nodesets import fold

CHANGED = "versions.lock.changed"
#: A pin that is older is listed: what it was made for may be mended.
_OLD_MONTHS = 12
_MADE = "preflight versions --lock env.lock.json makes a lock"
#: A lock of a thousand packages has a tenth of it.
_MOST_BYTES = 16 << 20
_HEAD_BYTES = 100_000


def with_lock(checks: Sequence[Check], options: Options) -> list[Check]:
    """The checks, those on the lock with its entries; without a lock they are left out."""
    entries = against(options)
    asked = any(map(_is_on_lock, checks))
    if (entries or options.lock is not None) and not asked:
        raise UsageError("a lock is compared by `preflight versions`, and by `preflight run`",
                         f"preflight versions --against {quote(str(options.against))}")  # fmt: skip
    if options.lock is not None and entries:
        raise UsageError(
            "--lock writes a lock, --against compares with one", "leave one of them out"
        )
    if options.lock is not None:
        _hold(Path(options.lock))
    row = {TELL: True} if options.lock is not None else {ENTRIES: list(map(astuple, entries))}
    return [
        replace(check, row={**check.row, **row, "reads": READS}) if _is_on_lock(check) else check
        for check in checks
        if not _is_on_lock(check) or entries or options.lock is not None
    ]


def _is_on_lock(check: Check) -> bool:
    return check.rule == "lock"


def against(options: Options) -> list[Locked]:
    """The entries of --against where that is a lock, else none."""
    if options.against is None or not is_lock(options):
        return []
    entries = lockfile.read(_read(Path(options.against)), options.against)
    if not entries:
        raise UsageError(
            f"{options.against}: no entry is in it, so nothing would be compared", _MADE
        )
    return entries


def is_lock(options: Options) -> bool:
    """Whether --against names a lock; what cannot be read is told where reports are read."""
    if options.against is None or not Path(options.against).is_file():  # a pipe is read once
        return False
    with suppress(OSError), Path(options.against).open("rb") as file:
        return lockfile.is_lock(file.read(_HEAD_BYTES), options.against)
    return False


def _read(path: Path) -> bytes:
    return content(path, _MADE, most=_MOST_BYTES)


def _hold(path: Path) -> None:
    """Refuse a place that cannot be written, before the work starts."""
    if path.is_dir():
        raise UsageError(f"--lock {path}: is a directory", f"--lock {path}/env.lock.json")
    of_system = path.parent == Path("/dev") or path.is_relative_to("/proc")
    if str(path) == "-" or of_system or (path.exists() and not path.is_file()):
        raise UsageError(f"--lock {path}: is no plain file", "--lock env.lock.json")
    if not path.parent.is_dir():
        raise UsageError(f"--lock {path}: there is no directory {path.parent}", "make it first")
    _before(path)


def _before(path: Path) -> list[Locked]:
    """The lock that is there already, for its dates and notes. Anything else is not overwritten."""
    if not path.exists():
        return []
    data = _read(path)
    if data.strip() and not lockfile.is_lock(data, ""):
        raise UsageError(f"--lock {path}: there is another file, and no lock", "name another place")
    return lockfile.read(data, str(path)) if data.strip() else []


def write(report: Report, options: Options, streams: Streams) -> None:
    """Write the lock of what all hosts have, where --lock asks for it."""
    if options.lock is None:
        return
    path = Path(options.lock)
    before = _before(path)
    entries = lockfile.merged(_uniform(report.hosts), before, now()[:10])
    _put(path, lockfile.written(entries))
    kept = sum(bool(one.note) for one in entries)
    streams.note(f"wrote {path}: {len(entries)} entries, {kept} with a note")


def _uniform(hosts: Sequence[HostReport]) -> list[Locked]:
    """The entries that all hosts have alike; PreflightError that names the odd ones."""
    values: dict[str, dict[str, list[str]]] = {}
    unknown: list[str] = []
    for host in hosts:
        told = [one for one in host.results if one.check == CHANGED]
        if not told:
            unknown.append(f"{host.host}: no answer")
        for one in told:
            if one.status is Status.PASS:
                values.setdefault(one.subject, {}).setdefault(str(one.measured), []).append(
                    host.host
                )
            elif one.status is Status.ERROR:
                unknown.append(f"{host.host}: {one.subject}: {one.reason}")
    if (
        not values
        and all(host.results for host in hosts)
        and not any(one.check == CHANGED for host in hosts for one in host.results)
    ):
        raise PreflightError("no lock is written: --only or --skip leaves out what reads it",
                             "without them; or --only 'versions.lock.*' too")  # fmt: skip
    unlike = list(_unlike(values, len(hosts)))
    if unlike or unknown:
        told_all = "\n  ".join([*unknown, *unlike])
        raise PreflightError(f"no lock is written: it would not hold for all hosts\n  {told_all}",
                             "mend what differs, or lock one of the hosts")  # fmt: skip
    if not values:
        raise PreflightError("no lock is written: nothing is known that could be locked", _MADE)
    return [_locked(subject, next(iter(found))) for subject, found in values.items()]


def _locked(subject: str, value: str) -> Locked:
    kind, _, name = subject.partition(" ")
    return Locked(kind, name, value)


def _unlike(values: dict[str, dict[str, list[str]]], hosts: int) -> Iterator[str]:
    for subject, found in values.items():
        have = sum(map(len, found.values()))
        if len(found) > 1 or have < hosts:
            told = sorted(found.items(), key=lambda item: -len(item[1]))
            parts = [f"{value} on {fold(names)}" for value, names in told]
            absent = f"; {hosts - have} without" if have < hosts else ""
            yield f"{subject}: {', '.join(parts)}{absent}"


def _put(path: Path, text: str) -> None:
    """In place whole, or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise PreflightError(f"--lock {path}: {error.strerror}", "name another place") from None
    finally:
        with suppress(OSError):
            part.unlink()


def old_pins(entries: Iterable[Locked]) -> Iterator[str]:
    """Pins that have been there for long."""
    old = list(lockfile.old(entries, now()[:10], _OLD_MONTHS))
    if old:
        listed = "; ".join(f"{one.kind} {one.name} {one.told()}" for one in old[:8])
        more = f"; and {len(old) - 8} more" if len(old) > 8 else ""
        yield f"locked for more than {_OLD_MONTHS} months: {listed}{more}"
