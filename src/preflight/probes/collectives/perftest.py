"""What perftest printed: ib_write_bw, ib_read_bw, ib_send_bw, ib_write_lat and their like."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from preflight.errors import ParseError
from preflight.facts.collectives import RdmaRow, RdmaTest, RdmaTests
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.collectives.derived import apart
from preflight.probes.collectives.labels import Labelled, behind_words, labelled
from preflight.probes.spec import probe
from preflight.units import format_bytes

TOOL = "perftest"
_TITLE = re.compile(
    r"(?:(?P<both>Bidirectional )|Dual-port )?(?P<verb>RDMA_Write|RDMA_Read|Send|Atomic\w*"
    r"|Raw Ethernet)\b[\w -]{0,40}?(?:(?P<both2>Bidirectional )|Post List )?(?P<kind>BW|Latency)\b"
    r"[\w -]{0,40}Test\s*$"
)
#: Two settings may stand in one line.
_SETTING = re.compile(
    r"(Device|Number of qps|Connection type|Mtu|Link type|GID index|TX depth) *\t* *: *"
    r"([\w.:+-]{1,64})(?:\[B\])?"
)
_END = re.compile(
    r"(local|remote) address:\s+LID (\w{1,12}) (?:OUT \w+ )?QPN (\w{1,12}) PSN (\w{1,12})"
)
_HEADER = re.compile(r"#bytes\s+#iterations\s+(.{1,300})")
#: perftest's MB and MiB are 2^20 bytes; Gb are 1e9 bits (perftest's man page, --report_gbits).
_UNITS = {
    "MB": 8 * 2**20 / 1e9, "MiB": 8 * 2**20 / 1e9, "KB": 8 * 2**10 / 1e9, "KiB": 8 * 2**10 / 1e9,
    "GB": 8 * 2**30 / 1e9, "GiB": 8 * 2**30 / 1e9, "Gb": 1.0, "Mb": 1e-3, "Kb": 1e-6,
}  # fmt: skip
_UNIT = re.compile(r"\[(\w{2,3})/s(?:ec)?\]")
_ROW = re.compile(r"\s*(\d{1,12})\s+(\d{1,12})\s+(\d[\d.]*(?:\s+[\d.na-]+)*)\s*$")
_TROUBLE = re.compile(
    r"\s*(?:Couldn't (?:connect|read|initialize|get|create|allocate)\b|Failed (?:to|status) "
    r"|Unable to |Completion with error|IB device \S+ not found|Device not recognized"
    r"|Problems? with warm up|Conflicting|Found Incompatibility|ERRNO: )[^\n]{0,200}"
)
#: Of the test itself: it did not measure all, whatever stands behind.
_BROKE = re.compile(r"Completion with error|Failed status |Failed to complete ")
_VERBS = {"RDMA_Write": "write", "RDMA_Read": "read", "Send": "send", "Raw Ethernet": "raw"}
_LAYERS = {"IB": "InfiniBand", "Ethernet": "Ethernet"}
#: From here on bandwidth is what the wire carries, not how many messages a second there are.
_JUDGED_BYTES = 1 << 16
_NO_ROW = Missing("unreadable", "the text ends before the first size was measured")


class _Test(Struct):
    """One test as it is read: both of its ends may have written into the same text."""

    line: int
    verb: str
    kind: str
    both: bool
    settings: dict[str, str] = field(default_factory=dict)
    ends: set[tuple[str, str]] = field(default_factory=set)  # (local | remote, address)
    columns: list[str] = field(default_factory=list)
    rows: dict[int, RdmaRow] = field(default_factory=dict)
    trouble: str = ""
    broke: bool = False  # by that trouble, which came after the last row or is the test's own


@probe(TOOL, [TOOL], timeout_s=60, with_stderr=True)
def perftest(text: str) -> RdmaTests:
    """A test for each title. Both ends of one test, told in one text, are one."""
    found: list[_Test] = []
    waiting = ""
    for line in labelled(text):
        if title := _TITLE.match(line.text.strip()):
            _titled(title, line.number, found)
        elif found:
            _told(line, found[-1])
        elif match := _TROUBLE.match(line.text):
            waiting = waiting or match[0].strip()
    if not found and not waiting:
        raise behind_words(text, TOOL) or ParseError(
            "expected a title of perftest: RDMA_Write BW Test", 1
        )
    tests = [_test(one) for one in _once(found)] or [_never(waiting)]
    return RdmaTests(apart(tests), probe=TOOL)


def _titled(title: re.Match[str], number: int, found: list[_Test]) -> None:
    """A second title before any result is the other end's."""
    verb = _VERBS.get(title["verb"], title["verb"].lower())
    kind = "latency" if title["kind"] == "Latency" else "bandwidth"
    both = bool(title["both"] or title["both2"])
    last = found[-1] if found else None
    if last and not last.rows and not last.trouble and (last.verb, last.kind) == (verb, kind):
        return
    found.append(_Test(number, verb, kind, both))


def _told(line: Labelled, test: _Test) -> None:
    text = line.text
    if match := _HEADER.search(text):
        test.columns = match[1].split("  ")
        test.columns = [one.strip() for one in test.columns if one.strip()]
    elif test.columns and (match := _ROW.match(text)):
        row = _row(match, test, line.number)
        test.rows.setdefault(row.size_bytes, row)
        test.broke = test.broke and _BROKE.match(test.trouble) is not None
    elif match := _END.search(text):
        test.ends.add((match[1], f"{match[2]} {match[3]} {match[4]}"))
    elif match := _TROUBLE.match(text):
        told = match[0].strip()
        own = _BROKE.match(told) and not _BROKE.match(test.trouble)
        test.trouble, test.broke = told if own else test.trouble or told, True
    else:
        for name, value in _SETTING.findall(text):
            test.settings.setdefault(name, value)


def _row(match: re.Match[str], test: _Test, number: int) -> RdmaRow:
    """The columns that the header names: of bandwidth or of latency."""
    cells = dict(zip(test.columns, match[3].split(), strict=False))
    numbers = {name: _number(cell) for name, cell in cells.items()}

    def column(begins: str) -> Known[float]:
        name = next((one for one in numbers if one.startswith(begins)), "")
        value = numbers.get(name)
        unit = _UNIT.search(name)
        if value is None:
            return NOT_IN_INPUT
        return round(value * _UNITS.get(unit[1], 1.0), 3) if unit else value

    return RdmaRow(
        int(match[1]), column("BW peak"), column("BW average"), column("t_typical"),
        column("t_avg"), column("99% percentile"), number,
    )  # fmt: skip


def _once(found: Sequence[_Test]) -> list[_Test]:
    """Without the tests whose other end was told before them."""
    kept: list[_Test] = []
    for one in found:
        mine = {address for end, address in one.ends if end == "local"}
        if not any(mine & _remote(other) and other.rows for other in kept):
            kept.append(one)
        else:
            peer = next(other for other in kept if mine & _remote(other))
            peer.ends |= one.ends
            if one.broke and not peer.broke:
                peer.trouble, peer.broke = one.trouble, True
    return kept


def _remote(test: _Test) -> set[str]:
    return {address for end, address in test.ends if end == "remote"}


def _test(one: _Test) -> RdmaTest:
    told = one.settings
    rows = tuple(one.rows[size] for size in sorted(one.rows))
    device: Known[str] = told.get("Device", NOT_IN_INPUT)
    name = f"{one.verb} {one.kind}" if isinstance(device, Missing) else (
        f"{device} {one.verb} {one.kind}"
    )  # fmt: skip
    local = {address for end, address in one.ends if end == "local"}
    average, at_bytes = _largest(rows, one)
    least = rows[0] if rows else None
    return RdmaTest(
        name, one.verb, one.kind, device, told.get("Connection type", NOT_IN_INPUT),
        _LAYERS.get(told.get("Link type", ""), NOT_IN_INPUT), _whole(told.get("Mtu")),
        _whole(told.get("Number of qps")), _whole(told.get("GID index")),
        loopback=bool(local & _remote(one)), bidirectional=one.both, rows=rows,
        ended=False if one.broke else True if rows else _NO_ROW, trouble=one.trouble,
        average_gbits=average, at_bytes=at_bytes,
        typical_us=least.typical_us if least else _NO_ROW,
        p99_us=least.p99_us if least else _NO_ROW, line=one.line, probe=TOOL,
    )  # fmt: skip


def _largest(rows: Sequence[RdmaRow], one: _Test) -> tuple[Known[float], Known[int]]:
    if one.kind == "latency":
        missing = Missing("not-applicable", "a test of latency")
    elif not rows:
        missing = Missing("exited", one.trouble) if one.trouble else _NO_ROW
    elif rows[-1].size_bytes < _JUDGED_BYTES:
        size = format_bytes(rows[-1].size_bytes)
        missing = Missing("not-asked", f"the largest size is {size}: add -s 8388608, or -a")
    else:
        return rows[-1].average_gbits, rows[-1].size_bytes
    return missing, missing


def _never(trouble: str) -> RdmaTest:
    missing = Missing("exited", trouble)
    return RdmaTest("perftest", "", "", ended=False, trouble=trouble, average_gbits=missing,
                    at_bytes=missing, line=1, probe=TOOL)  # fmt: skip


def _whole(text: str | None) -> Known[int]:
    return int(text) if text and text.isdecimal() else NOT_IN_INPUT


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
