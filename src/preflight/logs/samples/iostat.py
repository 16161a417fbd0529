"""Reports of `iostat -x`: by the names of columns, which differ between versions of sysstat."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from msgspec import Struct

from preflight.errors import ParseError
from preflight.facts.samples import DiskLoad, DiskSamples
from preflight.model import NOT_IN_INPUT, Known
from preflight.unpack import Unpacking

#: Column -> quantity and factor to its unit. Old versions call the queue avgqu-sz and have one
#: await for both ways; kB and MB are of 1,024 (man iostat).
_COLUMNS: dict[str, tuple[str, float]] = {
    "r/s": ("reads_per_s", 1),
    "rkB/s": ("read_mbps", 1024 / 1e6),
    "rMB/s": ("read_mbps", 1024**2 / 1e6),
    "wkB/s": ("write_mbps", 1024 / 1e6),
    "wMB/s": ("write_mbps", 1024**2 / 1e6),
    "r_await": ("read_await_ms", 1),
    "w_await": ("write_await_ms", 1),
    "await": ("await_ms", 1),
    "aqu-sz": ("queue", 1),
    "avgqu-sz": ("queue", 1),
    "%util": ("util_percent", 1),
    "util": ("util_percent", 1),
}
_HEADER = re.compile(rb"^Device:?\s+.*(?:%util|await)", re.MULTILINE)
_JSON = re.compile(rb'"sysstat"\s*:')
_MOST_BYTES = 512 << 20
#: A device is held up in a report where requests wait so long, in so long a queue, with one in
#: flight all the time. `%util` alone says nothing of a device that serves many requests at once.
HELD_MS, HELD_QUEUE, HELD_PERCENT = 10.0, 1.0, 95.0

Row = dict[str, float]


class _Device(Struct):
    rows: list[Row] = []
    lines: list[int] = []


def sniff(head: bytes, name: str) -> bool:
    """By the header of its table, or the key of its JSON."""
    return bool(_HEADER.search(head[:16_384]) or _JSON.search(head[:512]))


def read(path: Path, tell: Callable[[str], None]) -> DiskSamples:
    """ParseError where there is no row that fits a header."""
    with path.open("rb") as file:
        source = Unpacking(file, _MOST_BYTES)
        data = b"".join(iter(lambda: source.read(1 << 20), b""))
    reports = list(_of_json(data) if _JSON.search(data[:512]) else _of_text(data))
    if not any(reports):
        raise ParseError("no row of iostat -x that fits its header", 1)
    # The first report is the mean since the machine began, unless -y left it out, which no column
    # tells: it is left out, and one that is alone is taken for such.
    later = reports[1:] if len(reports) > 1 else reports
    return DiskSamples(
        str(path), tuple(_loads(later)), len(later), since_boot=len(reports) == 1,
        truncated=bool(source.cause),
    )  # fmt: skip


Report = dict[str, tuple[int, Row]]


def _of_text(data: bytes) -> Iterator[Report]:
    header: list[str] = []
    report: Report = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        words = line.split()
        if words and words[0].rstrip(":") == "Device":
            if report:
                yield report
            header, report = words[1:], {}
        elif line.startswith("avg-cpu"):
            header = []
        elif header and len(words) == len(header) + 1:
            report[words[0]] = (number, _row(zip(header, words[1:], strict=True)))
    if report:
        yield report


def _of_json(data: bytes) -> Iterator[Report]:
    """sysstat -> hosts -> statistics -> disk; ParseError where it is cut or is something else."""
    import msgspec

    try:
        told = msgspec.json.decode(data)
        for one in told["sysstat"]["hosts"][0]["statistics"]:
            yield {
                disk["disk_device"]: (0, _row(disk.items())) for disk in one.get("disk", ())
            }  # fmt: skip
    except (msgspec.DecodeError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ParseError(f"no whole JSON of iostat: {error}") from None


def _row(pairs: object) -> Row:
    """Quantities of a row; a decimal comma is a point."""
    found: Row = {}
    for name, value in pairs:  # type: ignore[attr-defined]
        quantity = _COLUMNS.get(name)
        try:
            number = float(str(value).replace(",", "."))
        except ValueError:
            continue
        if quantity:
            found[quantity[0]] = number * quantity[1]
    if "await_ms" in found:
        both = found.pop("await_ms")
        found.setdefault("read_await_ms", both)
        found.setdefault("write_await_ms", both)
    return found


def _loads(reports: list[Report]) -> Iterator[DiskLoad]:
    devices: dict[str, _Device] = {}
    for report in reports:
        for name, (line, row) in report.items():
            one = devices.setdefault(name, _Device())
            one.rows.append(row)
            one.lines.append(line)
    for name, device in devices.items():
        yield _load(name, device)


def _load(name: str, device: _Device) -> DiskLoad:
    busy = [row for row in device.rows if row.get("util_percent", 0) > 0 or row.get("queue", 0) > 0]

    def middle(quantity: str) -> Known[float]:
        values = [row[quantity] for row in busy if quantity in row]
        return median(values) if values else NOT_IN_INPUT

    at = max(range(len(device.rows)), key=lambda i: device.rows[i].get("util_percent", 0))
    return DiskLoad(
        name, len(device.rows), len(busy), device.lines[at],
        **{field: middle(field) for field in ("util_percent", "read_await_ms", "write_await_ms",
           "queue", "reads_per_s", "read_mbps", "write_mbps")},
        held_up=sum(map(_is_held_up, device.rows)),
    )  # fmt: skip


def _is_held_up(row: Row) -> bool:
    waits = max(row.get("read_await_ms", 0), row.get("write_await_ms", 0))
    return (
        waits > HELD_MS
        and row.get("queue", 0) > HELD_QUEUE
        and row.get("util_percent", 0) > HELD_PERCENT
    )
