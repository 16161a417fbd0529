"""The cells of the table of bare `nvidia-smi`, as paths and texts of `nvidia-smi -q`."""

from __future__ import annotations

from collections.abc import Iterator

#: Errors of several words that stand where one value should.
_PHRASES = (
    "Unknown Error", "GPU is lost", "GPU requires reset", "Not Supported", "Not Found",
    "Insufficient Permissions", "No Permission", "Not Available",
)  # fmt: skip
_GLUE = "\x00"
#: The compute mode as the column shortens it.
_MODES = {"E. Process": "Exclusive_Process", "E. Thread": "Exclusive_Thread"}
_SWITCHES = {"On": "Enabled", "Off": "Disabled"}
_OTHER = {"Enabled": "Disabled", "Disabled": "Enabled"}


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def words_of(cell: str) -> list[str]:
    """The values of a cell; an error of several words is one value."""
    for phrase in _PHRASES:
        if phrase in cell:
            cell = cell.replace(phrase, phrase.replace(" ", _GLUE))
    return [word.replace(_GLUE, " ") for word in cell.split()]


def _first(cells: list[str]) -> Iterator[tuple[str, str]]:
    """`0  NVIDIA H100 80GB HBM3   On | 00000000:19:00.0 Off | 0`. On Windows the driver model
    (WDDM, TCC) stands in place of the persistence mode."""
    words = words_of(cells[0])
    last = words[-1] if len(words) > 2 else ""
    yield "product name", " ".join(words[1:-1] if last else words[1:])
    if last not in ("WDDM", "TCC", "MCDM"):
        yield "persistence mode", _SWITCHES.get(last, last)
    display = words_of(cells[1])[-1:] or [""]
    yield "display active", _SWITCHES.get(display[0], "" if ":" in display[0] else display[0])
    yield from _ecc(cells[2])


def _ecc(cell: str) -> Iterator[tuple[str, str]]:
    """The count of uncorrected errors since the driver was loaded; Off without ECC, On in place of
    the count with MIG. A star: the mode changes at the next reset."""
    count = cell.rstrip("*").strip()
    if count.isdecimal():
        yield "ecc errors/volatile/dram uncorrectable", count
    counted = "Enabled" if count.isdecimal() else count
    mode = {"Off": "Disabled", "On": "Enabled"}.get(count, counted)
    yield "ecc mode/current", mode
    if mode in _OTHER:
        yield "ecc mode/pending", _OTHER[mode] if cell.endswith("*") else mode


def _second(cells: list[str]) -> Iterator[tuple[str, str]]:
    """`N/A   38C    P0   75W / 700W | 3MiB / 81559MiB | 0%      Default`."""
    left, _, limit = cells[0].partition(" / ")
    words = words_of(left)
    paths = ("fan speed", "temperature/gpu current temp", "performance state")
    yield from zip(paths, words, strict=False)
    yield "power readings/power draw", words[3] if len(words) > 3 else ""
    yield "power readings/enforced power limit", limit.strip()
    used, slash, total = cells[1].partition(" / ")
    yield "fb memory usage/used", used.strip()
    yield "fb memory usage/total", total.strip() if slash else used.strip()
    busy = words_of(cells[2])
    yield "utilization/gpu", busy[0] if busy else ""
    mode = " ".join(busy[1:])
    yield "compute mode", _MODES.get(mode, mode)


def _third(cells: list[str]) -> Iterator[tuple[str, str]]:
    """`| | | Disabled`, the MIG mode; a star: it changes at the next reset."""
    mode = cells[2].rstrip("*").strip()
    yield "mig mode/current", mode
    if mode in _OTHER:
        yield "mig mode/pending", _OTHER[mode] if cells[2].endswith("*") else mode


#: How the cells of the first, second and third row of a GPU are read, as in `nvidia-smi -q`.
ROWS = (_first, _second, _third)
