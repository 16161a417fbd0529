"""What fio writes as JSON, with figures that are made up."""

from __future__ import annotations

import json
from typing import Any

Row = dict[str, Any]
NONE: Row = {"io_bytes": 0, "io_kbytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0,
             "total_ios": 0, "clat_ns": {"min": 0, "max": 0, "mean": 0.0}}  # fmt: skip


def side(iops: float = 20000.0, block: int = 4096, p99_us: float = 300.0, **over: Any) -> Row:
    """Ten seconds of one way."""
    clat = {"min": 9000, "max": int(3e3 * p99_us), "mean": 500.0 * p99_us, "percentile": {
        "50.000000": int(400 * p99_us), "99.000000": int(1e3 * p99_us),
        "99.900000": int(2e3 * p99_us),
    }}  # fmt: skip
    rate = int(iops * block)
    return {"io_bytes": rate * 10, "io_kbytes": rate * 10 // 1024, "bw_bytes": rate,
            "bw": rate // 1024, "iops": iops, "runtime": 10000, "total_ios": int(iops * 10),
            "clat_ns": clat} | over  # fmt: skip


def job(name: str = "rand-read", options: Row | None = None, **over: Any) -> Row:
    """A random read of 4 KiB past the page cache, with 32 in flight."""
    told = {"rw": "randread", "bs": "4k", "iodepth": "32", "ioengine": "libaio", "direct": "1",
            "size": "8g"} | (options or {})  # fmt: skip
    told = {key: value for key, value in told.items() if value is not None}
    return {"jobname": name, "groupid": 0, "error": 0, "eta": 0, "elapsed": 10,
            "job options": told, "read": side(), "write": NONE, "trim": NONE,
            "usr_cpu": 3.5, "sys_cpu": 9.25} | over  # fmt: skip


def report(
    *jobs: Row, at_ms: int = 1_700_000_010_000, version: str = "fio-3.36",
    options: Row | None = None, **over: Any,
) -> str:  # fmt: skip
    """The report of these jobs as fio prints it. `options`: those of all jobs."""
    told = {"fio version": version, "timestamp": at_ms // 1000, "timestamp_ms": at_ms,
            "time": "Tue Nov 14 22:13:30 2023",
            **({"global options": options} if options else {}), "jobs": list(jobs) or [job()],
            "disk_util": [{"name": "nvme0n1", "util": 97.5}]} | over  # fmt: skip
    return json.dumps(told, indent=2).replace('": ', '" : ') + "\n"


def synced(p99_us: float = 900.0) -> Row:
    """A log: small writes with a sync behind each."""
    latency = side(p99_us=p99_us)["clat_ns"]
    return job("log", {"rw": "write", "fdatasync": "1"}, read=NONE, write=side(1000.0),
               sync={"total_ios": 10000, "lat_ns": latency})  # fmt: skip


def bench(*jobs: Row, end: bool = True, said: str = "", **first: Any) -> str:
    """The lines of the bundled bench, a report for each job."""
    begin = {"preflight": "io-bench/1", "kind": "begin", "plan": {}, "dir": "/data",
             "size_bytes": 1 << 30, "mount": "/data", "fs": "xfs", "source": "/dev/nvme0n1",
             "shared": False, "memory": False} | first  # fmt: skip
    lines = [begin, {"kind": "job", "text": "[rand-read]\nrw=randread\n"}]
    lines += [
        {"kind": "fio", "name": one["jobname"], "status": 0, "hung": False, "said": said,
         "report": json.loads(report(one))}
        for one in jobs or (job(), synced())
    ]  # fmt: skip
    lines += [{"kind": "end", "elapsed_s": 9.1}] if end else []
    return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in lines)


def large(way: str, mbps: float, target: str = "/dev/sda", **options: str) -> Row:
    """Blocks of 1 MiB, 16 in flight."""
    moved = side(mbps * 1e6 / (1 << 20), 1 << 20)
    told = {"rw": way, "bs": "1m", "iodepth": "16", "filename": target} | options
    sides = {"read": NONE, "write": NONE} | {way.removeprefix("rand"): moved}
    return job(f"seq-{way.removeprefix('rand')}", told, **sides)


def on_disk(iops: float = 120.0) -> Row:
    """Random reads of a whole disk."""
    return job(options={"filename": "/dev/sda"}, read=side(iops))
