"""The box around the GPUs as its management controller (BMC) tells of it, and the BMC's event log.

Every record keeps `line`, where it stands in the raw answer (from 1), and whose answer it is.
"""

from __future__ import annotations

from msgspec import Struct, field

from preflight.model import NOT_IN_INPUT, Known


class Sensor(Struct, frozen=True):
    """One sensor that has a reading or a state. `status` in the words of IPMI: ok | non-critical |
    critical | non-recoverable; missing for a sensor that has only states."""

    name: str
    kind: str  # temperature | fan | power | current | voltage | humidity | state | other
    value: Known[float] = NOT_IN_INPUT
    unit: str = ""  # as ipmitool writes it: degrees C, RPM, Watts
    status: Known[str] = NOT_IN_INPUT
    state: Known[str] = NOT_IN_INPUT  # "Presence detected, Failure detected"
    entity: Known[str] = NOT_IN_INPUT  # 10.2: IPMI entity id (10 power supply), instance
    line: int = 0
    probe: str = ""


class PowerSupply(Struct, frozen=True):
    """One power supply; what it says of itself comes from its state, not from the status column."""

    name: str
    present: Known[bool] = NOT_IN_INPUT
    failed: Known[bool] = NOT_IN_INPUT
    failure_predicted: Known[bool] = NOT_IN_INPUT
    input_lost: Known[bool] = NOT_IN_INPUT  # no AC, or AC out of its range
    load: Known[float] = NOT_IN_INPUT  # of the quantity that most of them tell
    load_unit: str = ""  # Watts | Amps
    line: int = 0
    probe: str = ""


class Balance(Struct, frozen=True):
    """How evenly the power supplies that have input share the load."""

    lowest_percent: Known[float] = NOT_IN_INPUT  # the least loaded, of the most loaded
    line: int = 0
    probe: str = ""


class Redundancy(Struct, frozen=True):
    """What is left in reserve. `reserve`: full | degraded | lost | insufficient (the load is more
    than what is left can carry), from IPMI's words in `state`: Fully Redundant ..."""

    name: str
    reserve: Known[str] = NOT_IN_INPUT
    state: Known[str] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Fan(Struct, frozen=True):
    """One fan; `speed` in RPM or percent. `turning` is missing where it has no speed."""

    name: str
    speed: Known[float] = NOT_IN_INPUT
    unit: str = ""
    turning: Known[bool] = NOT_IN_INPUT
    present: Known[bool] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Air(Struct, frozen=True):
    """The air that comes in and goes out; line: that of the inlet, else of the first of them."""

    inlet_c: Known[float] = NOT_IN_INPUT
    exhaust_c: Known[float] = NOT_IN_INPUT
    humidity_percent: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Part(Struct, frozen=True):
    """A part that tells its state in words: a processor, a memory module, a drive."""

    name: str
    state: Known[str] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Chassis(Struct, frozen=True):
    """All that the BMC's sensors tell. A list is missing where no sensor speaks of such a thing."""

    sensors: Known[tuple[Sensor, ...]] = NOT_IN_INPUT
    power_supplies: Known[tuple[PowerSupply, ...]] = NOT_IN_INPUT
    redundancy: Known[tuple[Redundancy, ...]] = NOT_IN_INPUT
    fans: Known[tuple[Fan, ...]] = NOT_IN_INPUT
    psu_fans: Known[tuple[Fan, ...]] = NOT_IN_INPUT
    parts: Known[tuple[Part, ...]] = NOT_IN_INPUT
    fans_turning: Known[int] = NOT_IN_INPUT
    air: Air = field(default_factory=Air)
    balance: Balance = field(default_factory=Balance)
    without_reading: int = 0  # sensors that say that they have none
    unanswered: int = 0  # errors of ipmitool between the readings
    line: int = 1
    probe: str = ""


class SelEntry(Struct, frozen=True):
    """One line of the event log. `at_s`: seconds since 1970 by the BMC's clock, None where it had
    no time or its clock was not set."""

    number: int  # hexadecimal in the log
    sensor: str  # "Power Supply PS2 Status", "Memory #0x53"
    event: str  # "Power Supply AC lost"
    line: int
    at_s: float | None = None
    time: str = ""  # as the log writes it
    asserted: bool = True
    probe: str = ""


class EventLog(Struct, frozen=True):
    """The newest entries, oldest first, and how many lines there were in all."""

    entries: tuple[SelEntry, ...] = ()
    total: int = 0
    unread: int = 0  # lines in a form that is not known, and vendors' own records
    line: int = 1
    probe: str = ""
