"""The BMC's sensors, from ipmitool: power supplies, fans, air, everything with a threshold.

What a power supply says stands in its state: the status column says "ok" for as long as the sensor
can be read, also of a supply without AC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from preflight.errors import ParseError
from preflight.facts.chassis import Air, Chassis, Fan, Part, Redundancy, Sensor
from preflight.model import Known, Missing
from preflight.probes.ipmi.lines import (
    Answer,
    Line,
    is_reading,
    kind_of,
    known_words,
    no_device,
    read,
)
from preflight.probes.ipmi.power import balance, is_power_supply, power_supplies, told_elsewhere
from preflight.probes.spec import probe

#: Whose line a record's `line` is.
_PROBE = "ipmi-sdr"

_INLET = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (r"inlet|intake", r"ambient|amb[ _]?temp", r"front[ _]?panel|\bFP[ _]?temp")
)
_EXHAUST = re.compile(r"exhaust|outlet", re.IGNORECASE)
#: The states of generic event type 0Bh, IPMI v2.0 table 42-2, the worst first: there may be two.
_RESERVE = (
    ("insufficient resources", "insufficient"),
    ("redundancy lost", "lost"),
    ("non-redundant", "lost"),
    ("degraded", "degraded"),
    ("fully redundant", "full"),
)
#: Parts that have an inlet or surroundings of their own.
_NOT_ROOM = re.compile(r"cpu|gpu|dimm|vr[md]?\b|hdd|ssd|nvme|nic|ocp|pch|riser|psu?\d", re.I)


@probe(
    _PROBE,
    ["ipmitool", "sdr", "elist"],
    timeout_s=40,
    needs_root=True,
    waits_for="bmc",
    with_stderr=True,
)
def ipmi_sdr(text: str) -> Known[Chassis]:
    """All sensors of `ipmitool sdr`, `sdr list`, `sdr elist`, `sdr type X` or `sensor`."""
    answer = read(text)
    if not answer.lines:
        gone = no_device(text)
        if gone is not None:
            return gone
        raise ParseError("expected `NAME | READING | ok` as `ipmitool sdr` prints", 1)
    return _chassis(answer, [line for line in answer.lines if not line.silent])


def _chassis(answer: Answer, told: Sequence[Line]) -> Chassis:
    supplies = power_supplies(told)
    fans = [line for line in told if _is_fan(line)]
    chassis_fans = _fans(line for line in fans if not is_power_supply(line))
    return Chassis(
        sensors=_some([_sensor(line) for line in told if line.status or line.value is not None],
                      "no sensor has a reading"),
        power_supplies=_some(supplies, "no sensor speaks of a power supply"),
        redundancy=_some([_redundancy(line) for line in told if _is_redundancy(line)],
                         "no sensor speaks of redundancy"),
        fans=_some(chassis_fans, "no sensor speaks of a fan"),
        psu_fans=_some(_fans(line for line in fans if is_power_supply(line)),
                       "no sensor speaks of a power supply's fan"),
        parts=_some([_part(line) for line in told if _is_part(line)],
                    "no part tells its state in words"),
        fans_turning=_turning(chassis_fans),
        air=_air(told),
        balance=balance(supplies),
        without_reading=len(answer.lines) - len(told),
        unanswered=answer.errors,
        line=answer.lines[0].line,
        probe=_PROBE,
    )  # fmt: skip


def _some(found: Sequence[object], otherwise: str) -> Known[tuple]:  # type: ignore[type-arg]
    return tuple(found) if found else Missing("not-in-input", otherwise)


def _sensor(line: Line) -> Sensor:
    silent = Missing("not-applicable", "the sensor has no threshold")
    kind = kind_of(line.name, line.unit)
    return Sensor(
        name=line.name,
        kind=kind,
        value=_number(line),
        unit=line.unit,
        status=line.status or silent,
        state=known_words(line),
        entity=line.entity or Missing("not-in-input", "this layout shows no entity"),
        line=line.line,
        probe=_PROBE,
    )


def _number(line: Line) -> Known[float]:
    if line.value is None:
        return Missing("not-applicable", "not a number")
    return line.value if is_reading(line) else _no_reading(line)


def _no_reading(line: Line) -> Missing:
    told = f"{line.name} tells {line.value:g} {line.unit}"
    return Missing("unreadable", f"{told}, which is no reading: the sensor does not answer")


def _is_redundancy(line: Line) -> bool:
    return "redundan" in (line.words or "").lower()


def _redundancy(line: Line) -> Redundancy:
    words = line.words or ""
    reserve = next((word for pattern, word in _RESERVE if pattern in words.lower()), None)
    if "redundancy disabled" in words.lower():
        off = Missing("not-applicable", "redundancy is switched off in the BMC's settings")
        return Redundancy(line.name, off, words, line.line, _PROBE)
    unknown = Missing("unreadable", f"{words[:60]!r} is no state of redundancy that is known")
    return Redundancy(line.name, reserve or unknown, words, line.line, _PROBE)


def _is_fan(line: Line) -> bool:
    if _is_redundancy(line):
        return False
    if line.value is not None:
        return kind_of(line.name, line.unit) == "fan"
    return "fan" in line.name.lower() and bool(line.words)


def _fans(lines: Iterable[Line]) -> list[Fan]:
    return [_fan(line) for line in lines]


def _fan(line: Line) -> Fan:
    words = (line.words or "").lower()
    silent = Missing("not-applicable", "the sensor tells no speed")
    present: Known[bool] = Missing("not-applicable", "the sensor does not tell whether it is there")
    if "absent" in words or "removed" in words:
        present = False
    elif "present" in words or "inserted" in words or line.value:
        present = True
    return Fan(
        name=line.name,
        speed=silent if line.value is None else line.value,
        unit=line.unit,
        turning=silent if line.value is None else line.value > 0,
        present=present,
        line=line.line,
        probe=_PROBE,
    )


def _turning(fans: Sequence[Fan]) -> Known[int]:
    if not fans:
        return Missing("not-in-input", "no sensor speaks of a fan")
    return sum(fan.turning is True for fan in fans)


def _is_part(line: Line) -> bool:
    return bool(line.words) and not _is_redundancy(line)


def _part(line: Line) -> Part:
    """What a supply tells of its input and of failures stands in its own record."""
    words = line.words or ""
    return Part(
        line.name, told_elsewhere(words) if is_power_supply(line) else words, line.line, _PROBE
    )


def _air(lines: Sequence[Line]) -> Air:
    degrees = [
        line
        for line in lines
        if line.value is not None
        and kind_of(line.name, line.unit) == "temperature"
        and not is_power_supply(line)
        and not _NOT_ROOM.search(line.name)
    ]
    inlets = [line for pattern in _INLET for line in degrees if pattern.search(line.name)]
    outlets = [line for line in degrees if _EXHAUST.search(line.name)]
    humid = [
        line
        for line in lines
        if line.value is not None and kind_of(line.name, line.unit) == "humidity"
    ]
    each = [*inlets, *outlets, *humid]
    first = next((line for line in each if is_reading(line)), next(iter(each), None))
    return Air(
        inlet_c=_celsius(inlets, "an inlet or ambient temperature"),
        exhaust_c=_celsius(outlets, "an exhaust temperature"),
        humidity_percent=_value(humid, "humidity"),
        line=first.line if first else 0,
        probe=_PROBE if first else "",
    )


def _value(lines: Sequence[Line], what: str) -> Known[float]:
    told = next((line for line in lines if is_reading(line)), None)
    if told is not None and told.value is not None:
        return told.value
    return _no_reading(lines[0]) if lines else Missing("not-in-input", f"no sensor tells {what}")


def _celsius(lines: Sequence[Line], what: str) -> Known[float]:
    value = _value(lines, what)
    told = next((line for line in lines if is_reading(line)), None)
    if isinstance(value, Missing) or told is None or not told.unit.lower().endswith("f"):
        return value
    return (value - 32) * 5 / 9
