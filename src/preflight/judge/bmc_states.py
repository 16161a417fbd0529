"""The words of the BMC's sensors judged by their table, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from preflight import datafiles, strict_yaml
from preflight.facts.chassis import Part
from preflight.facts.host import Host
from preflight.judge.results import result, undetermined
from preflight.kept import kept
from preflight.model import Check, Evidence, Missing, Result, Status

_TABLE = "checks/data/bmc_states.yaml"
_WANTED = "no fault"


class StateRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the table, whose head says what its keys mean."""

    state: str
    severity: Literal["FAIL", "WARN"]
    sensor: str = ""
    unless: str = ""


class _Row(Struct, frozen=True):
    state: re.Pattern[str]
    sensor: re.Pattern[str]
    unless: re.Pattern[str]
    status: Status


@cache
def _rows() -> tuple[_Row, ...]:
    """The table, the worst first."""
    path = datafiles.root() / _TABLE
    place = path.parent / "__pycache__" / "bmc_states.msgpack"
    table = kept(place, tuple[StateRow, ...], [path, Path(__file__)], lambda: _read(path))
    found = [
        _Row(
            re.compile(row.state, re.IGNORECASE),
            re.compile(row.sensor, re.IGNORECASE),
            re.compile(row.unless or "(?!)", re.IGNORECASE),
            Status(row.severity),
        )
        for row in table
    ]
    return tuple(sorted(found, key=lambda row: row.status is not Status.FAIL))


def _read(path: Path) -> tuple[StateRow, ...]:
    document = strict_yaml.load(path.read_text(encoding="utf-8"), _TABLE)
    return tuple(msgspec.convert(document["rows"], list[StateRow]))


def severity(sensor: str, states: str) -> Status | None:
    """FAIL or WARN; None where the states tell of no fault."""
    for row in _rows():
        fits = row.state.search(states) and row.sensor.search(sensor)
        if fits and not row.unless.search(states):
            return row.status
    return None


def judge_states(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of every part that tells its state in words."""
    chassis = host.chassis
    assert not isinstance(chassis, Missing), "judge_rule sees to that"
    parts = chassis.parts
    if isinstance(parts, Missing):
        return [undetermined(check, host.name, parts) for check in checks]
    return [one for check in checks for one in _judged(check, parts)]


def _judged(check: Check, parts: Sequence[Part]) -> Iterator[Result]:
    for part in parts:
        if isinstance(part.state, Missing):
            yield undetermined(check, part.name, part.state)
            continue
        status = severity(part.name, part.state) or Status.PASS
        evidence = (Evidence(part.probe, line=part.line),)
        yield result(check, part.name, status, part.state, _WANTED, evidence=evidence)
