"""How fast storage takes a checkpoint and gives it back, from the tables of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from preflight.model import Known, Missing

Row = dict[str, Any]


class Kind(Struct, frozen=True):
    """What is looked for: a row that does `way` and has one of the words in its name, of which the
    first is the nearest."""

    way: str
    words: tuple[str, ...]


WRITES = Kind("write", ("checkpoint", "save", "seq-write", "write"))
READS = Kind("read", ("restore", "load", "seq-read", "read"))
#: Rows that have one of the words and are something else.
_OTHERS = ("rand", "mixed", "log", "sync", "dataloader", "small-files", "while", "back")
#: In smaller pieces than this nobody saves.
_LEAST_BYTES = 64 << 10
#: Beyond these a figure is no speed of storage.
_LEAST_MBPS, _MOST_MBPS = 1e-3, 1e12
#: What is not of storage that holds a checkpoint.
_NOT_STORAGE = ("page cache", "memory", "cached image", "no device")


class Speed(Struct, frozen=True):
    """Of one row, in 1e9 bytes a second. `far`: how far its name is from what is looked for, 0 the
    nearest; `shared`: whether other hosts may see the same files; `hosts`: so many measured at the
    same time."""

    host: str
    job: str
    gbps: float
    far: int
    shared: Known[bool]
    hosts: int = 1


def nearest(table: Row, kind: Kind) -> list[Speed]:
    """The rows of one table that are the nearest to what is looked for."""
    numbers, cached = numbers_of(table), left_out(table)
    ways = _ways(table)
    fits = {
        job: of for job, of in numbers.items()
        if job not in cached and ways.get(job, kind.way) == kind.way and _fits(job, of)
    }  # fmt: skip
    for far, word in enumerate(kind.words):
        found = [_speed(table, job, of, far) for job, of in fits.items() if word in job.lower()]
        if found:
            return found
    return []


def numbers_of(table: Row) -> dict[str, Any]:
    """For programs: what the table has of each row."""
    told = table.get("numbers")
    return told if isinstance(told, dict) else {}


def positive(value: object) -> float | None:
    """A number that can be a measurement."""
    fine = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if fine and 0 < value < 1e30 else None  # type: ignore[arg-type,operator]


def left_out(table: Row) -> dict[str, str]:
    """Rows that measured something other than storage, and what."""
    rows = [row for row in table.get("rows") or () if isinstance(row, dict)]
    told = {str(row.get("job", row.get("pattern"))): str(row.get("of", "")) for row in rows}
    return {name: of for name, of in told.items() if of in _NOT_STORAGE}


def not_storage(tables: Sequence[Row], kind: Kind) -> str:
    """What rows that do this measured in place of storage: memory, page cache; empty of none."""
    found = (
        of for table in tables for job, of in left_out(table).items()
        if _ways(table).get(job, kind.way) == kind.way
        and any(word in job.lower() for word in kind.words)
        and not any(word in job.lower() for word in _OTHERS)
    )  # fmt: skip
    return ", ".join(dict.fromkeys(found))


def _ways(table: Row) -> dict[str, Any]:
    told = table.get("ways")
    return told if isinstance(told, dict) else {}


def _fits(job: str, told: Any) -> bool:
    rate = positive(told.get("bandwidth_mbps")) if isinstance(told, dict) else None
    if rate is None or not _LEAST_MBPS <= rate <= _MOST_MBPS:
        return False
    block = positive(told.get("block_bytes"))
    small = block is not None and block < _LEAST_BYTES
    other = any(word in job.lower() for word in _OTHERS)
    return not (small or other or told.get("random"))


def _speed(table: Row, job: str, told: Row, far: int) -> Speed:
    place = table.get("place")
    known = place if isinstance(place, dict) else {}
    shared, hosts = known.get("shared"), known.get("hosts")
    return Speed(
        str(table.get("host") or ""), job, float(told["bandwidth_mbps"]) / 1e3, far,
        shared if isinstance(shared, bool) else Missing("not-in-input", "not told"),
        hosts if isinstance(hosts, int) and not isinstance(hosts, bool) else 1,
    )  # fmt: skip


class Together(Struct, frozen=True):
    """What all hosts reach, and how that was made of what each of them reached. `slower`: other
    ways that one host tried, with their rates."""

    gbps: float
    how: str
    slower: tuple[tuple[str, float], ...] = ()


def together(tables: Sequence[Row], kind: Kind) -> Together | None:
    """Of all ranks, on all hosts; None where nothing was measured. Each writes its part and the
    last of them counts: so many hosts are as often the slowest of them. Those that share storage
    and measured one after another reach, as far as is known, what one of them reached."""
    each = list(_of_each_host(tables, kind))
    if not each:
        return None
    least = min(each, key=lambda one: one.gbps)
    if len(each) == 1:
        return Together(least.gbps, least.job, tuple(_slower(tables, kind, least)))
    of = f"{least.job} of {least.host}, the slowest of {len(each)} hosts"
    at_once = all(one.hosts >= len(each) for one in each)
    if at_once or all(one.shared is False for one in each):
        how = "measured at the same time" if at_once else "which share no storage"
        return Together(len(each) * least.gbps, f"{len(each)} x {of}, {how}")
    shared = any(one.shared is True for one in each)
    why = "share storage" if shared else "may share storage"
    return Together(least.gbps, f"{of}, alone: they {why} and were not measured together")


def _slower(tables: Sequence[Row], kind: Kind, than: Speed) -> Iterator[tuple[str, float]]:
    for table in tables:
        for one in nearest(table, kind):
            if one.far == than.far and one.gbps < than.gbps:
                yield one.job, one.gbps


def _of_each_host(tables: Sequence[Row], kind: Kind) -> Iterator[Speed]:
    """Of each host the nearest row; of several as near, which are ways to save, the fastest."""
    found: dict[str, list[Speed]] = {}
    for table in tables:
        for one in nearest(table, kind):
            found.setdefault(one.host, []).append(one)
    for each in found.values():
        yield min(each, key=lambda one: (one.far, -one.gbps))
