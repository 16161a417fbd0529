"""Whether limits of the kernel were reached: what the network counts, what is in use of the rest.

Sources: softnet_seq_show in net/core/net-procfs.c and neigh_stat_seq_show in net/core/neighbour.c
of the kernel; its Documentation/networking/snmp_counter.rst, admin-guide/sysctl/fs.rst; proc(5).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from preflight.errors import ParseError
from preflight.facts.counters import Counters
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "network-counters"

#: Our word -> file. Each line of it is printed behind the word.
_FILES = {
    "softnet": "/proc/net/softnet_stat",
    "netstat": "/proc/net/netstat",
    "snmp": "/proc/net/snmp",
    "neighbours": "/proc/net/stat/arp_cache",
    "file-nr": "/proc/sys/fs/file-nr",
    "aio-nr": "/proc/sys/fs/aio-nr",
    "aio-max-nr": "/proc/sys/fs/aio-max-nr",
    "loadavg": "/proc/loadavg",
    "pid_max": "/proc/sys/kernel/pid_max",
    "threads-max": "/proc/sys/kernel/threads-max",
}
# One process reads them all: the shell reads byte after byte from /proc, and these are long.
_ASK = f"""\
grep -s -H '' {" ".join(_FILES.values())}
echo end"""

_WORDS = {path: word for word, path in _FILES.items()}
#: Before a line of names and one of as many numbers.
_HEADS = {"netstat": "TcpExt:", "snmp": "Tcp:"}
_NOT_COUNTED = Missing("not-applicable", "this kernel does not count it here")

Lines = dict[str, list[tuple[int, str]]]


def locate(text: str, start: int, field: str) -> int:
    """The first line of the file that the field was read from; of names and numbers that of the
    numbers."""
    word = next((word for word, names in _OF.items() if field in names), "softnet")
    head = f"{_FILES[word]}:{_HEADS.get(word, '')}"
    found = [at for at, line in enumerate(text.split("\n"), 1) if line.startswith(head)]
    return found[-1 if word in _HEADS else 0] if found else start


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10, locate=locate)
def network_counters(text: str) -> Counters:
    """`/proc/net/softnet_stat:00516a22 00000000 ...` lines: the file, then a line of it."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the counters are cut short: no closing `end`", len(lines))
    files = _files(lines[:-1])
    if not files:
        raise ParseError("expected lines such as `/proc/loadavg:0.10 ...`", 1)
    told: dict[str, Any] = {**_softnet(files), **_tcp(files), **_in_use(files)}
    return Counters(**told, probe=_PROBE)


def _files(lines: list[str]) -> Lines:
    found: Lines = {}
    for number, line in enumerate(lines, 1):
        path, colon, rest = line.partition(":")
        if colon and path in _WORDS:
            found.setdefault(_WORDS[path], []).append((number, rest))
    return found


def _softnet(files: Lines) -> dict[str, Known[Any]]:
    """A line for each processor, in hex: packets, drops, squeezes and more."""
    sums: list[Known[int]] = [_column(files, "softnet", at) for at in range(3)]
    packets, drops, squeezes = sums
    return {
        "packets": packets,
        "backlog_drops": drops,
        "backlog_drops_per_million": _share(drops, packets, 1_000_000),
        "time_squeezes": squeezes,
        "time_squeezes_per_million": _share(squeezes, packets, 1_000_000),
        "neighbours_full": _neighbours_full(files),
    }


def _neighbours_full(files: Lines) -> Known[int]:
    """The column of that name: its place differs between kernels."""
    rows = files.get("neighbours", [])
    names = rows[0][1].split() if rows else []
    if "table_fulls" not in names:
        return _NOT_COUNTED
    return _column({"neighbours": rows[1:]}, "neighbours", names.index("table_fulls"))


def _column(files: Lines, word: str, at: int) -> Known[int]:
    total, rows = 0, files.get(word, [])
    for _, row in rows:
        try:
            total += int(row.split()[at], 16)
        except (ValueError, IndexError):
            return Missing("unreadable", f"{_FILES[word]}: {row[:80]!r} is no line of counters")
    return total if rows else _NOT_COUNTED


def _tcp(files: Lines) -> dict[str, Known[Any]]:
    extra = dict(_named(files.get("netstat", []), _HEADS["netstat"]))
    opens = dict(_named(files.get("snmp", []), _HEADS["snmp"])).get("PassiveOpens", _NOT_COUNTED)
    overflows = extra.get("ListenOverflows", _NOT_COUNTED)
    full = _sum(extra.get(name) for name in ("TCPReqQFullDrop", "SyncookiesRecv"))
    return {
        "passive_opens": opens,
        "listen_overflows": overflows,
        "listen_overflows_percent": _of_attempts(overflows, opens),
        "listen_drops": extra.get("ListenDrops", _NOT_COUNTED),
        "syn_queue_full": full,
        "syn_queue_full_percent": _of_attempts(full, opens),
    }


def _named(rows: list[tuple[int, str]], head: str) -> Iterator[tuple[str, Known[int]]]:
    """A line of names and one of as many numbers, both behind the same word."""
    mine = [row.split()[1:] for _, row in rows if row.split()[:1] == [head]]
    if len(mine) < 2:
        return
    for at, name in enumerate(mine[0]):
        number = mine[1][at] if at < len(mine[1]) else ""
        unread = Missing("unreadable", f"{head} {name} is {number[:40]!r}, which is no number")
        yield name, int(number) if _is_count(number) else unread


def _in_use(files: Lines) -> dict[str, Known[Any]]:
    files_open, files_max = _word(files, "file-nr", 0), _word(files, "file-nr", 2)
    aio, aio_max = _word(files, "aio-nr", 0), _word(files, "aio-max-nr", 0)
    threads = _word(files, "loadavg", 3, after="/")
    limits = [_word(files, "pid_max", 0), _word(files, "threads-max", 0)]
    known = [one for one in limits if not isinstance(one, Missing)]
    return {
        "files": files_open,
        "files_percent": _share(files_open, files_max, 100),
        "aio": aio,
        "aio_percent": _share(aio, aio_max, 100),
        "threads": threads,
        "threads_percent": _share(threads, min(known) if known else limits[0], 100),
    }


def _word(files: Lines, word: str, at: int, *, after: str = "") -> Known[int]:
    """One number of a file of one line; of 1/89 the part behind the stroke."""
    rows = files.get(word)
    if not rows:
        return _NOT_COUNTED
    words = rows[0][1].split()
    told = words[at] if at < len(words) else ""
    told = told.partition(after)[2] if after else told
    if _is_count(told):
        return int(told)
    return Missing("unreadable", f"{_FILES[word]}: {rows[0][1][:80]!r} has no number there")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20


def _sum(parts: Iterator[Known[int] | None]) -> Known[int]:
    told = [one for one in parts if one is not None]
    unread = next((one for one in told if isinstance(one, Missing)), None)
    if unread is not None or not told:
        return unread or _NOT_COUNTED
    return sum(one for one in told if not isinstance(one, Missing))


def _of_attempts(lost: Known[int], opened: Known[int]) -> Known[float]:
    if isinstance(lost, Missing) or isinstance(opened, Missing):
        return lost if isinstance(lost, Missing) else opened
    return _share(lost, lost + opened, 100)


def _share(part: Known[int], whole: Known[int], scale: int) -> Known[float]:
    for one in (part, whole):
        if isinstance(one, Missing):
            return one
    assert not isinstance(part, Missing)
    assert not isinstance(whole, Missing)
    if not whole:  # nothing was counted yet, or there is no room at all
        return 0.0 if not part else Missing("unreadable", f"{part} of 0")
    return round(scale * part / whole, 3)


_OF = {
    "netstat": ("listen_overflows", "listen_overflows_percent", "listen_drops", "syn_queue_full",
                "syn_queue_full_percent"),
    "snmp": ("passive_opens",),
    "neighbours": ("neighbours_full",),
    "file-nr": ("files", "files_percent"),
    "aio-nr": ("aio", "aio_percent"),
    "loadavg": ("threads", "threads_percent"),
}  # fmt: skip
