"""GPUs over time, from the table of `nvidia-smi dmon` in any of its column sets."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from preflight.errors import ParseError
from preflight.facts.watch import Watch
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe
from preflight.probes.watch_lost import Rounds, find_lost, unreadable_from
from preflight.probes.watch_series import Series, looked_twice, watched

_PROBE = "nvidia-smi-dmon"
#: Column -> quantity and factor to its unit (nvidia-smi(1), dmon): `temp` is gtemp of drivers
#: before 390; fb is in MiB, rxpci and txpci in MB/s, sbecc, dbecc and pci count since the last
#: reset of their counters.
_COLUMNS: dict[str, tuple[str, float]] = {
    "pwr": ("power_w", 1),
    "temp": ("gpu_c", 1),
    "gtemp": ("gpu_c", 1),
    "mtemp": ("memory_c", 1),
    "sm": ("utilization_percent", 1),
    "mem": ("memory_utilization_percent", 1),
    "enc": ("encoder_percent", 1),
    "dec": ("decoder_percent", 1),
    "mclk": ("memory_mhz", 1),
    "pclk": ("sm_mhz", 1),
    "pviol": ("power_violation_percent", 1),
    "tviol": ("thermal_violation", 1),
    "fb": ("memory_used_bytes", 2**20),
    "sbecc": ("ecc_corrected", 1),
    "dbecc": ("ecc_uncorrected", 1),
    "pci": ("pcie_replays", 1),
    "rxpci": ("pcie_rx_gbps", 0.001),
    "txpci": ("pcie_tx_gbps", 0.001),
}
_NONE = Missing("not-applicable", "nvidia-smi dmon prints -")
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,6})?")
#: The tool takes no shorter interval: `-d 0` is refused.
_LEAST_S = 1.0
_DAY_S = 86400


class _Table:
    """The rows so far, by GPU."""

    def __init__(self) -> None:
        self.header: list[str] = []
        self.series: dict[int, Series] = {}
        self.times: dict[int, list[float]] = {}
        self.rounds = Rounds()

    def names(self, line: str, number: int) -> None:
        """A header, which also ends a round of rows, or the line of its units."""
        names = _names(line, number)
        if names:
            self.header = names
            self.rounds.header()

    def row(self, words: list[str], number: int) -> None:
        """One line of values under the header."""
        if len(words) != len(self.header):
            expected = f"expected {len(self.header)} values under the header, got {len(words)}"
            raise ParseError(expected, number)
        told = dict(zip(self.header, words, strict=True))
        if not re.fullmatch("[0-9]{1,4}", told["gpu"]):
            raise ParseError(f"expected the number of a GPU, got {told['gpu'][:20]!r}", number)
        gpu = int(told["gpu"])
        one = self.series.setdefault(gpu, Series(gpu, number))
        one.began = self.rounds.row(gpu)
        sample: dict[str, float] = {}
        for column, (name, factor) in _COLUMNS.items():
            if column in told:
                _value(told[column], name, factor, sample, one)
        one.samples.append(sample)
        at_s = _seconds(told)
        if at_s is not None:
            self.times.setdefault(gpu, []).append(at_s)


def _value(word: str, name: str, factor: float, sample: dict[str, float], one: Series) -> None:
    if _NUMBER.fullmatch(word):
        value = float(word) * factor
        sample[name] = value
    else:
        said = (
            _NONE if word == "-" else Missing("unreadable", f"nvidia-smi dmon prints {word[:40]}")
        )
        one.missing[name] = said


def _seconds(told: dict[str, str]) -> float | None:
    """When the row was printed, in an unknown zone; a time alone counts from midnight."""
    date, time = told.get("Date"), told.get("Time")
    if time is None:
        return None
    form = "%Y%m%d %H:%M:%S" if date else "%H:%M:%S"
    text = f"{re.sub('[-/]', '', date)} {time}" if date else time
    try:
        return (datetime.strptime(text, form) - datetime(1900, 1, 1)).total_seconds()
    except ValueError:
        return None


def _locate(text: str, line: int, field: str) -> int:
    """For a counter the GPU's last row, for a violation its first row that shows one, for a loss
    the first row without values, or its last."""
    if not field.startswith(("growth.", "throttle.", "answers")):
        return line
    header: list[str] = []
    rows: list[tuple[int, dict[str, str]]] = []
    for number, words in enumerate(map(_words, text.split("\n")), 1):
        if words and words[0].startswith("#"):
            header = _names(" ".join(words), number) or header
        elif len(words) == len(header):
            rows.append((number, dict(zip(header, words, strict=True))))
    gpu = next((row.get("gpu") for number, row in rows if number == line), None)
    mine = [(number, row) for number, row in rows if row.get("gpu") == gpu]
    if field.startswith("growth."):
        return mine[-1][0] if mine else line
    if field == "answers":
        read = [
            (number, any(row.get(name, "-") != "-" for name in _COLUMNS)) for number, row in mine
        ]
        return unreadable_from(read, line)
    return next((number for number, row in mine if row.get("tviol", "0") not in ("0", "-")), line)


def _words(line: str) -> list[str]:
    return line.replace(",", " ").split()


@probe(_PROBE, ["nvidia-smi", "dmon", "-s", "pucvmet", "-o", "DT"], timeout_s=3600, locate=_locate)
def nvidia_smi_dmon(text: str) -> Watch:
    """A header names the columns (again after some rows), `-` is no value. Raises ParseError where
    a row does not fit its header, or where there is none."""
    table = _Table()
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        words = _words(line)
        if not words or words[0].startswith("^C"):
            continue
        if words[0].startswith("#"):
            table.names(line, number)
        elif number == len(lines) and len(words) < len(table.header):
            break  # cut in the middle of a row
        elif table.header:
            table.row(words, number)
        else:
            raise ParseError("expected a header that begins with #", number)
    if not table.series:
        raise ParseError("expected a header and rows of values as nvidia-smi dmon prints", 1)
    return _watch(table)


def _names(line: str, number: int) -> list[str]:
    """The columns that a header names; none where it is the line of their units."""
    words = _words(line.replace("#", " "))
    if "Idx" in words:
        return []
    names = [word if word in ("Date", "Time") else word.lower() for word in words]
    if "gpu" not in names or "pid" in names:
        raise ParseError("expected a header with the column gpu, as nvidia-smi dmon prints", number)
    return names


def _watch(table: _Table) -> Watch:
    interval: Known[float] = NOT_IN_INPUT
    basis = ""
    for gpu, one in table.series.items():
        one.watched_s, interval, basis = _interval(table.times.get(gpu, []), len(one.samples))
        looked_twice(one)
    find_lost(table.series.values())
    gpus = watched(list(table.series.values()), _PROBE)
    return Watch(gpus, interval, basis, probe=_PROBE)


def _interval(times: list[float], samples: int) -> tuple[Any, Any, str]:
    """How long a GPU was watched, from one row to the next, and how that is known."""
    if len(times) == samples and samples > 1:
        watched_s = times[-1] - times[0]
        watched_s += _DAY_S if watched_s < 0 else 0
        return watched_s, watched_s / (samples - 1), "measured"
    return (samples - 1) * _LEAST_S, _LEAST_S, "at least 1 s, the least that nvidia-smi dmon takes"
