"""Times that one line alone does not tell: relative ones, those of other boots, another year's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from preflight.probes.kernel_log.lines import YEAR_S, Line, read_line

#: Where a time of `dmesg -H` may stand; "[Jan 6 10:00]" and "[  +0.000003]".
_HUMAN = re.compile(r"^\[(?:[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d| *\+\d{1,9}\.\d{1,9})\]", re.MULTILINE)
#: The kernel writes its version first of all; journalctl writes a line between boots.
_BOOTS = ("Linux version ", "-- Boot ", "-- Reboot --")
_FIRST = "\n[    0.000000]"
_BOOT_ID = re.compile(r'"_BOOT_ID" ?: ?"([0-9a-f]{32})"')
_LOADING = "NVRM: loading NVIDIA UNIX "
#: A line is no landmark without one of these: a boot, the line after it, a load of the driver.
LANDMARKS = (*_BOOTS, _FIRST.strip(), _LOADING.rstrip())
#: Of a log in which a line's time or boot hangs on those above it, a line has one of these.
CHAINED = ('"_BOOT_ID"', "[  +")
#: How far a time since boot goes back at a new boot; less is two processors' lines out of order.
_BACK_S = 5.0


def relative_times(text: str) -> dict[int, float]:
    """Where a line of `dmesg -H` begins -> seconds, to the minute and then by the differences."""
    if not any(begin in text for begin in ("[  +", "[ +", "[+")):
        return {}
    times: dict[int, float] = {}
    now_s: float | None = None
    for match in _HUMAN.finditer(text):
        line = read_line(match[0])
        if line.at_s is None:
            continue
        if line.clock == "relative":
            now_s = None if now_s is None else now_s + line.at_s
        else:
            now_s = line.at_s
        if now_s is not None:
            times[match.start()] = now_s
    return times


def is_chained(line: str) -> bool:
    """Whether the line's time or boot hangs on those above it."""
    return _HUMAN.match(line) is not None or _BOOT_ID.search(line) is not None


def is_load(raw: str, line: Line) -> bool:
    """Whether the line tells of a load of NVIDIA's driver."""
    return _LOADING in raw and _by_kernel(line, _LOADING)


def is_boot(raw: str, line: Line) -> bool:
    """Whether the line by itself tells of a boot."""
    if not any(mark in raw for mark in _BOOTS):
        return False
    return raw.startswith("-- ") or _by_kernel(line, _BOOTS[0])


def is_first(raw: str, above: str, read: Callable[[str], Line]) -> bool:
    """Whether time since boot began again with this line."""
    if not raw.startswith(_FIRST.strip()) or above.startswith("[    0."):
        return False
    before = read(above)
    return before.clock == "boot" and (before.at_s or 0.0) > _BACK_S


def boots(text: str, line_at: Callable[[int], Line]) -> list[int]:
    """Where each line begins that is the first of a boot, the log's own beginning left out."""
    found = {text.rfind("\n", 0, at) + 1 for mark in _BOOTS for at in _all(text, mark)}
    found = {at for at in found if _is_boot(text, at, line_at)}
    found.update(_back_to_zero(text, line_at))
    found.update(_new_ids(text))
    return sorted(at for at in found if at > 0)


def driver_loads(text: str, line_at: Callable[[int], Line]) -> list[int]:
    """Where each line begins that tells of a load of NVIDIA's driver."""
    found = sorted({text.rfind("\n", 0, at) + 1 for at in _all(text, _LOADING)})
    return [at for at in found if _by_kernel(line_at(at), _LOADING)]


def _all(text: str, needle: str) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle))


def _is_boot(text: str, at: int, line_at: Callable[[int], Line]) -> bool:
    return text.startswith("-- ", at) or _by_kernel(line_at(at), _BOOTS[0])


def _by_kernel(line: Line, begin: str) -> bool:
    return line.program == "kernel" and line.message.startswith(begin)


def _back_to_zero(text: str, line_at: Callable[[int], Line]) -> Iterator[int]:
    for at in _all(text, _FIRST):
        above = text.rfind("\n", 0, at) + 1
        if text.startswith("[    0.", above):
            continue
        before = line_at(above)
        if before.clock == "boot" and (before.at_s or 0.0) > _BACK_S:
            yield at + 1


def _new_ids(text: str) -> Iterator[int]:
    """Where the boot id of `journalctl -o json` is not that of the line before."""
    before = ""
    if '"_BOOT_ID"' not in text:
        return
    for match in _BOOT_ID.finditer(text):
        if before and match[1] != before:
            yield text.rfind("\n", 0, match.start()) + 1
        before = match[1]


def before_boots(
    starts: list[int], boots: list[int], times: Iterable[float | None], ends: list[float | None]
) -> list[float | None]:
    """Times since boot as times since the last boot: those of earlier boots are negative, counted
    back from the last line of theirs (`ends`), because how long the host was off is not told."""
    told: list[float | None] = []
    for start, at_s in zip(starts, times, strict=True):
        later = [end for boot, end in zip(boots, ends, strict=True) if boot > start]
        known = [end for end in later if end is not None]
        whole = at_s is not None and len(known) == len(later)
        told.append(at_s - sum(known) if at_s is not None and whole else None)
    return told


def through_new_year(times: Iterable[float | None]) -> list[float | None]:
    """A time half a year before the one above it belongs to the next year."""
    told: list[float | None] = []
    year_s = before = 0.0
    for at in times:
        if at is not None:
            year_s += YEAR_S if at + year_s < before - YEAR_S / 2 else 0.0
            before = at = at + year_s
        told.append(at)
    return told
