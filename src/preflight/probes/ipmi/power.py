"""Which of the BMC's sensors belong to which power supply, and what they say of it together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from preflight.facts.chassis import Balance, PowerSupply
from preflight.model import Known, Missing
from preflight.probes.ipmi.lines import Line, known_words

_PROBE = "ipmi-sdr"
#: IPMI entity id of a power supply (IPMI v2.0, table 43-13).
_ENTITY = "10."
_NAME = re.compile(  # "PS 1 Output", "PSU2_PIN", "STATUS_PSU0", "SPD_FAN_PSU0_F"
    r"(?:[A-Za-z]{2,8}_){0,3}(?:Power[ _]?Supply|PWS|PSU?)[ _#-]{0,2}([0-9]{1,2})(?![0-9])",
    re.IGNORECASE,
)
#: A sensor that tells the supply's state, by its name alone.
_STATE_NAME = re.compile(
    r"(?:STATUS_)?(?:Power[ _]?Supply|PWS|PSU?)[ _#-]{0,2}[0-9]{1,2}"
    r"(?:[ _-]?(?:Status|State|Stat))?"
    r"(?: (?:10\.|#)[0-9]{1,3})?",
    re.IGNORECASE,
)
_OUTPUT = re.compile(r"out", re.IGNORECASE)

#: The states of a power supply, IPMI v2.0, table 42-3, sensor type 08h, in ipmitool's words
#: (lib/ipmi_sel.c); bit -> word, for the layout that shows bits.
_BITS = (
    "Presence detected", "Failure detected", "Predictive failure", "Power Supply AC lost",
    "AC lost or out-of-range", "AC out-of-range, but present", "Config Error",
    "Power Supply Inactive",
)  # fmt: skip
_STATES = re.compile(
    r"presence detected|failure detected|predictive failure|\bAC (?:lost|out)|input lost"
    r"|config error|supply inactive|device (?:absent|present)|input out",
    re.IGNORECASE,
)
_FAILED = re.compile(r"(?<!predictive )\bfail(?:ure detected|ed)\b", re.IGNORECASE)
_PREDICTED = re.compile(r"predictive failure(?! deasserted)", re.IGNORECASE)
_INPUT_LOST = re.compile(r"\bAC (?:lost|out-of-range)|input (?:lost|out)", re.IGNORECASE)
_AC_PRESENT = re.compile(r"AC out-of-range, but present", re.IGNORECASE)
_ABSENT = re.compile(r"absent|not present|removed", re.IGNORECASE)

#: Under these loads supplies share unevenly by nature: sharing is a regulation of the output
#: current, specified from about a fifth of the rated load on, and server supplies begin at 1 kW.
_LOAD_FROM = {"Watts": 200.0, "Amps": 1.0}
#: Which quantity tells the load, best first: output power, any power, any current.
_QUANTITIES = ("output", "Watts", "Amps")


class _Parts(Struct):
    """The lines of one supply."""

    state: Line | None = None
    first: Line | None = None
    words: list[str] = field(default_factory=list)  # of every line that tells its state
    loads: dict[str, float] = field(default_factory=dict)


def is_power_supply(line: Line) -> bool:
    """Whether the sensor is one of a power supply's."""
    return line.entity.startswith(_ENTITY) or _NAME.match(line.name) is not None


def power_supplies(lines: Sequence[Line]) -> list[PowerSupply]:
    """One record for each supply, in the order in which they are told."""
    parts: dict[str, _Parts] = {}
    for line in lines:
        if is_power_supply(line) and "redundan" not in (line.words or "").lower():
            _add(parts.setdefault(_key(line), _Parts()), line)
    known = {key: part for key, part in parts.items() if part.state or part.loads}
    quantity = _common([part.loads for part in known.values()])
    return [_supply(key, part, quantity) for key, part in known.items()]


def _key(line: Line) -> str:
    if line.entity.startswith(_ENTITY):
        return line.entity.removeprefix(_ENTITY)
    match = _NAME.match(line.name)
    return match[1] if match else line.name


def _add(part: _Parts, line: Line) -> None:
    part.first = part.first or line
    if _STATES.search(line.words or ""):
        part.words.append(line.words or "")
    if _tells_state(line) and (part.state is None or _more(line, part.state)):
        part.state = line
    if line.value is None or line.unit not in _LOAD_FROM:
        return
    if line.unit == "Watts" and _OUTPUT.search(line.name):
        part.loads.setdefault("output", line.value)
    part.loads.setdefault(line.unit, line.value)


def _tells_state(line: Line) -> bool:
    if _STATES.search(line.words or ""):
        return True
    return line.value is None and _STATE_NAME.fullmatch(line.name) is not None


def _more(line: Line, than: Line) -> bool:
    return bool(_STATES.search(line.words or "")) and not _STATES.search(than.words or "")


def _common(loads: Sequence[dict[str, float]]) -> str:
    """The best quantity that at least two supplies tell; of one supply its best."""
    enough = min(2, len(loads)) or 1
    told = (name for name in _QUANTITIES if sum(name in one for one in loads) >= enough)
    return next(told, "")


def _supply(key: str, part: _Parts, quantity: str) -> PowerSupply:
    words = ", ".join(part.words) or _words(part.state)
    load: Known[float] = Missing("not-in-input", "no sensor tells its load")
    if quantity in part.loads:
        load = part.loads[quantity]
    unit = "" if isinstance(load, Missing) else "Amps" if quantity == "Amps" else "Watts"
    told = part.state or part.first
    return PowerSupply(
        name=part.state.name if part.state else f"power supply {key}",
        present=words if isinstance(words, Missing) else _present(words),
        failed=_says(words, _FAILED),
        failure_predicted=_says(words, _PREDICTED),
        input_lost=_says(words, _INPUT_LOST),
        load=load,
        load_unit=unit,
        line=told.line if told else 0,
        probe=_PROBE,
    )


def _words(line: Line | None) -> Known[str]:
    if line is None:
        return Missing("not-in-input", "no sensor tells its state")
    if line.bits is None:
        return known_words(line)
    if line.bits and not line.bits & 1:  # not the states of the standard
        return Missing("not-in-input", f"state bits 0x{line.bits:02x}; `ipmitool sdr elist` tells")
    return ", ".join(word for bit, word in enumerate(_BITS) if line.bits >> bit & 1)


def told_elsewhere(words: str) -> str:
    """The states of a supply without those that its own record tells."""
    for pattern in (_AC_PRESENT, _FAILED, _PREDICTED, _INPUT_LOST):
        words = pattern.sub("", words)
    return words.strip(" ,")


def _present(words: str) -> bool:
    return bool(words) and not _ABSENT.search(words)


def _says(words: Known[str], pattern: re.Pattern[str]) -> Known[bool]:
    return words if isinstance(words, Missing) else pattern.search(words) is not None


def balance(supplies: Sequence[PowerSupply]) -> Balance:
    """The least loaded of the supplies that work, in percent of the most loaded."""
    loaded = [
        (supply.load, supply.line, supply.load_unit)
        for supply in supplies
        if isinstance(supply.load, float) and supply.input_lost is not True
        and supply.failed is not True and supply.present is not False
    ]  # fmt: skip
    if len(loaded) < 2:
        return Balance(Missing("not-in-input", "fewer than two power supplies tell their load"))
    (least, line, unit), (most, _, _) = min(loaded), max(loaded)
    if most < _LOAD_FROM[unit]:
        return Balance(Missing("not-applicable", "the load is too small to be shared evenly"))
    return Balance(100 * least / most, line, _PROBE)
