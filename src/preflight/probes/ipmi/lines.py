"""One line of ipmitool -> one sensor: layouts of `sdr`, `sdr elist`, `sdr type` and `sensor`."""

from __future__ import annotations

import re

from msgspec import Struct

from preflight.model import Known, Missing, MissingKind

#: The status column (ipmitool lib/ipmi_sdr.c, ipmi_sdr_get_thresh_status): `sensor` and newer
#: `sdr` add the side, lower or upper, on which the threshold is crossed.
_STATUS = {
    "ok": "ok",
    **dict.fromkeys(("nc", "lnc", "unc"), "non-critical"),
    **dict.fromkeys(("cr", "lcr", "ucr"), "critical"),
    **dict.fromkeys(("nr", "lnr", "unr"), "non-recoverable"),
}
#: No reading: not a fault. An empty slot, a part that is off, an event without a state.
_SILENT = frozenset({"ns", "na", "us", "disabled", ""})
_NOTHING = frozenset({
    "", "no reading", "not readable", "not available", "disabled", "event-only", "na", "unknown",
})  # fmt: skip

#: "32h", the sensor's number, in the second column of `sdr elist` and `sdr type`.
_NUMBER_COLUMN = re.compile(r"[0-9A-Fa-f]{2,3}h")
_ENTITY = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_BITS = re.compile(r"0x[0-9A-Fa-f]{1,8}")
#: "20 degrees C", "3,29 Volts" (a locale with a comma), "21.56 percent".
_VALUE = re.compile(r"(-?[0-9]{1,12}(?:[.,][0-9]{1,9})?) ?([A-Za-z%][A-Za-z% /()^]{0,40})")
_PLAIN = re.compile(r"-?[0-9]{1,12}(?:[.,][0-9]{1,9})?")
_KINDS = {
    "degrees c": "temperature", "degrees f": "temperature", "rpm": "fan", "watts": "power",
    "amps": "current", "volts": "voltage",
}  # fmt: skip

#: Below and above, no part of a server works: -40 C is the least of industrial parts, silicon is
#: specified to 125 C at most, and a byte with a sign begins at -128.
_DEGREES = {"c": (-50.0, 150.0), "f": (-58.0, 302.0)}

#: What ipmitool says between readings when the BMC does not answer one question.
_ERRORS = re.compile(
    r"(?:Unable to (?:send|establish|read|get)|Get (?:SDR|SEL|Device ID|Sensor|HPM)\b"
    r"|Error (?:reading|obtaining|sending|in|getting)|SDR (?:record|reposit|insert)"
    r"|Received a response with|BMC busy|Close Session|IPMI|Discovered|Authentication)",
    re.IGNORECASE,
)
_NO_DEVICE = re.compile(r"Could not open device at /dev/ipmi[^\n]*", re.IGNORECASE)


class Line(Struct, frozen=True):
    """A line with a sensor, in parts. `words`: its states; None where the layout shows none;
    `bits`: the state mask of `ipmitool sensor`."""

    name: str
    line: int
    entity: str = ""
    status: str = ""  # "" where it has no reading
    value: float | None = None
    unit: str = ""
    words: str | None = None
    bits: int | None = None

    @property
    def silent(self) -> bool:
        """Whether the sensor says that it has no reading."""
        return self.value is None and not self.words and self.bits is None and not self.status


class Answer(Struct, frozen=True):
    """All lines of an answer with a sensor, and how many errors stand between them."""

    lines: tuple[Line, ...]
    errors: int


def no_device(text: str) -> Missing | None:
    """Why there is no BMC to ask, if ipmitool says so."""
    said = _NO_DEVICE.search(text)
    if said is None:
        return None
    denied = "permission denied" in said[0].lower()
    kind: MissingKind = "denied" if denied else "not-applicable"
    why = "run preflight as root or with --sudo" if denied else (
        "a virtual machine has none; on a server: `sudo modprobe ipmi_si ipmi_devintf`"
    )  # fmt: skip
    return Missing(kind, f"ipmitool finds no management controller at /dev/ipmi0: {why}")


def read(text: str) -> Answer:
    """Every sensor of the text, one line each; lines of another form are passed over."""
    found, errors = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        sensor = _line(line, number) if "|" in line else None
        if sensor is not None:
            found.append(sensor)
        elif _ERRORS.match(line.strip()):
            errors += 1
    return Answer(_named_apart(found), errors)


def kind_of(name: str, unit: str) -> str:
    """What a sensor measures."""
    kind = _KINDS.get(unit.lower())
    if kind is None and unit.lower() in ("percent", "%"):
        lower = name.lower()
        kind = "humidity" if "humid" in lower else "fan" if _is_fan(lower) else None
    return kind or ("other" if unit else "state")


def is_reading(line: Line) -> bool:
    """Whether its number can be one: a sensor that does not answer tells the least or the most that
    its byte holds."""
    if line.value is None or kind_of(line.name, line.unit) != "temperature":
        return line.value is not None
    least, most = _DEGREES[line.unit[-1:].lower()]
    return least <= line.value <= most


def _is_fan(lower: str) -> bool:
    return "fan" in lower or "pwm" in lower


def _line(line: str, number: int) -> Line | None:
    cells = [cell.strip() for cell in line.split("|")]
    if not cells[0] or len(cells[0]) > 64:
        return None
    if len(cells) == 3:
        return _plain(cells, number)
    if len(cells) == 5 and _NUMBER_COLUMN.fullmatch(cells[1]):
        return _extended(cells, number)
    if len(cells) in (10, 11):
        return _with_thresholds(cells, number)
    return None


def _plain(cells: list[str], number: int) -> Line | None:
    """`Ambient Temp | 20 degrees C | ok`: of discrete sensors it shows the raw reading alone."""
    name, reading, status = cells
    if not _is_status(status):
        return None
    value, unit, rest = _reading(reading)
    words = rest if rest and not _BITS.fullmatch(rest) else None
    return Line(name, number, "", _STATUS.get(status.lower(), ""), value, unit, words)


def _extended(cells: list[str], number: int) -> Line | None:
    """`Power Supply 1 | 32h | ok | 10.1 | 110 Watts, Presence detected`."""
    name, _, status, entity, reading = cells
    if not (_is_status(status) and _ENTITY.fullmatch(entity)):
        return None
    value, unit, rest = _reading(reading)
    word = _STATUS.get(status.lower(), "")
    hexadecimal = bool(rest and _BITS.fullmatch(rest))
    words = None if not word or hexadecimal or (value is not None and not rest) else rest
    return Line(name, number, entity, word, value, unit, words)


def _with_thresholds(cells: list[str], number: int) -> Line | None:
    """`Fan1 | 5040.000 | RPM | ok | na | 360.000 | ...`: `ipmitool sensor`."""
    name, reading, unit, status = cells[:4]
    if unit == "discrete":
        mask = int(status, 16) if _BITS.fullmatch(status) and len(status) <= 6 else None
        # Two bytes: states 0 to 7, then a bit that is always set with states 8 to 14
        # (ipmitool lib/ipmi_sensor.c, ipmi_sensor_print_fc_discrete).
        return Line(name, number, bits=None if mask is None else mask >> 8)
    if not _is_status(status) or not (_PLAIN.fullmatch(reading) or reading.lower() in _NOTHING):
        return None
    value = _float(reading) if _PLAIN.fullmatch(reading) else None
    word = _STATUS.get(status.lower(), "") if value is not None else ""
    return Line(name, number, "", word, value, unit if value is not None else "")


def _is_status(text: str) -> bool:
    return text.lower() in _STATUS or text.lower() in _SILENT


def _reading(text: str) -> tuple[float | None, str, str]:
    """Value, unit and what else is told: "110 Watts, Presence detected"."""
    if text.lower() in _NOTHING:
        return None, "", ""
    first, _, rest = text.partition(", ")
    match = _VALUE.fullmatch(first)
    if match is None:
        return None, "", text
    return _float(match[1]), match[2].strip(), rest


def _float(text: str) -> float:
    return float(text.replace(",", "."))


def _named_apart(lines: list[Line]) -> tuple[Line, ...]:
    """Dell calls every supply's sensor "Status": the entity, else a number, tells them apart."""
    seen: dict[str, int] = {}
    for line in lines:
        seen[line.name] = seen.get(line.name, 0) + 1
    count: dict[str, int] = {}
    named = []
    for line in lines:
        count[line.name] = count.get(line.name, 0) + 1
        name = line.name
        if seen[name] > 1:
            name = f"{name} {line.entity or f'#{count[name]}'}"
        named.append(Line(name, line.line, line.entity, line.status, line.value, line.unit,
                          line.words, line.bits))  # fmt: skip
    return tuple(named)


def known_words(line: Line) -> Known[str]:
    """The states in words, or why they are not known."""
    if line.words is not None:
        return line.words
    return Missing("not-in-input", "this layout shows no states; `ipmitool sdr elist` does")
