"""Inputs -> facts -> readings: each file read once, each kind concluded from together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from preflight.cli.targets.kinds import CONCLUDING, Concluding
from preflight.cli.targets.walk import Walked
from preflight.diagnosis.asked import Asked
from preflight.diagnosis.reading import Reading
from preflight.errors import PreflightError

Facts = dict[str, list[Any]]
_SHOWN = 3  # names of files of one kind that are not understood


def facts_of(walked: Walked, tell: Callable[[str], None]) -> Facts:
    """What was read, by kind; what could not be is added to `walked.failed`."""
    found: Facts = {}
    for one in walked.inputs:
        tell(f"reading {one.shown} ({one.kind.name})")
        try:
            fact = one.kind.read(one.path, tell)
        except PreflightError as error:
            if one.named or one.kind.name != "log":
                walked.failed[one.shown] = error.what
            else:  # any text of a folder could have been one
                walked.unknown.setdefault(error.what, []).append(one.shown)
            continue
        except OSError as error:
            walked.failed[one.shown] = error.strerror or str(error)
            continue
        fact.source = one.shown
        found.setdefault(one.kind.name, []).append(fact)
    return found


def readings_of(
    facts: Facts, asked: Asked, concluding: Sequence[Concluding] = CONCLUDING
) -> list[Reading]:
    """What each kind tells, where one of its inputs is there."""
    found = []
    for one in concluding:
        mine = {kind: facts[kind] for kind in one.kinds if kind in facts}
        reading = one.reading(mine, asked) if mine else None
        if reading is not None:
            found.append(reading)
    return found


def not_understood(walked: Walked, *, read: bool = True) -> list[Reading]:
    """What could not be read, as readings that say so: of files that the user named. What lies in
    folders beside a run and is of no known kind is a note."""
    failed = tuple(f"{name}: {why}" for name, why in walked.failed.items())
    notes = tuple(_kind(kind, names) for kind, names in walked.unknown.items())
    readings = []
    if failed:
        readings.append(Reading("what was given", unread=failed))
    if notes and not failed and not read and not walked.pids:
        readings.append(Reading("what was given", unread=notes))
    elif notes:
        readings.append(Reading("what was given", notes=notes))
    return readings


def _kind(kind: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"not read: {', '.join(names[:_SHOWN])}{more}: {kind}"
