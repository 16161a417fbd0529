"""The jobs: how each reads or writes, and the file that fio takes them from."""

from __future__ import annotations

from typing import NamedTuple

#: Requests in flight where many are: what NVMe needs to be busy (one queue of 64, or more).
_MANY = 64
_MOST_PROCESSES = 8
#: Of the log, and of all that is written.
_LOG_BYTES, _LOG_SHARE = 64 << 20, 16
_BLOCK = 1 << 20


class Way(NamedTuple):
    """How fio gets to the file system."""

    engine: str
    direct: bool


class Sizes(NamedTuple):
    """Bytes of the file that is read, and of the log."""

    data: int
    log: int


def sizes(total_bytes: int) -> Sizes:
    """Both together are no more than `total_bytes`."""
    log = min(_LOG_BYTES, total_bytes // _LOG_SHARE) // _BLOCK * _BLOCK
    return Sizes((total_bytes - log) // _BLOCK * _BLOCK, log)


#: Name -> options. What reads, reads what seq-write wrote.
_JOBS: dict[str, dict[str, str]] = {
    "seq-write": {"rw": "write", "bs": "1m", "iodepth": "16", "end_fsync": "1"},
    "seq-read": {"rw": "read", "bs": "1m", "iodepth": "16"},
    "rand-read-4k": {"rw": "randread", "bs": "4k", "many": ""},
    "rand-read-128k": {"rw": "randread", "bs": "128k", "many": ""},
    "mixed-4k": {"rw": "randrw", "rwmixread": "70", "bs": "4k", "many": ""},
    "log": {"rw": "write", "bs": "4k", "ioengine": "psync", "direct": "0", "fdatasync": "1",
            "filename": "log"},
}  # fmt: skip
NAMES = tuple(_JOBS)
WRITES = NAMES[0]


def job_file(way: Way, size: Sizes, seconds: float, processors: int) -> str:
    """The file: run by hand in another directory it is the same test. `seconds` of each job."""
    shared = {
        "ioengine": way.engine, "direct": str(int(way.direct)), "thread": "1",
        "group_reporting": "1", "randrepeat": "0", "filename": "data",
        "runtime": f"{max(1, round(1000 * seconds))}ms",
    }  # fmt: skip
    text = "; by hand: cd DIR && fio job.fio, where DIR is on the file system in question\n"
    text += "[global]\n" + _lines(shared)
    for name, options in _JOBS.items():
        text += f"\n[{name}]\nstonewall\n" + _lines(_settled(name, options, way, size, processors))
    return text


def _settled(
    name: str, options: dict[str, str], way: Way, size: Sizes, processors: int
) -> dict[str, str]:
    found = {key: value for key, value in options.items() if key != "many"}
    if "many" in options:
        count = max(1, min(_MOST_PROCESSES, processors))
        found |= {"numjobs": str(count), "iodepth": str(max(1, _MANY // count))}
    if name == "log":
        return {**found, "size": str(size.log)}
    found["size"] = str(size.data)
    reads = "read" in found["rw"] or found["rw"] == "randrw"
    # Past the page cache a file may be read again and again; else each byte once.
    if reads and way.direct:
        found["time_based"] = "1"
    if found["rw"] == "randrw" and not way.direct:
        found["end_fsync"] = "1"
    return found


def _lines(options: dict[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in options.items())
