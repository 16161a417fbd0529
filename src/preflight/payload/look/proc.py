"""What the kernel tells of one process: /proc/PID/*, see proc(5). Each is empty where it has ended
meanwhile or belongs to somebody else."""

from __future__ import annotations

import os

_TICKS = os.sysconf("SC_CLK_TCK")


def text_of(path: str) -> str:
    """A file of /proc; "" where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def stat_of(path: str) -> tuple[str, list[str]]:
    """Name, and the fields from the state on; ("", []) where it has ended."""
    head, closing, rest = text_of(path).rpartition(")")
    return (head.partition("(")[2], rest.split()) if closing else ("", [])


def cpu_s(fields: list[str]) -> float:
    """Seconds of processor, of these fields of a stat."""
    return (int(fields[11]) + int(fields[12])) / _TICKS


def words_of(pid: int) -> list[str]:
    """Its command line."""
    return [one for one in text_of(f"/proc/{pid}/cmdline").split("\0") if one]


def environment_of(pid: int) -> dict[str, str]:
    """What it was started with; {} where that is another user's."""
    pairs = (one.partition("=") for one in text_of(f"/proc/{pid}/environ").split("\0"))
    return {name: value for name, _, value in pairs if name}


def pairs_of(path: str) -> dict[str, int]:
    """Lines of a name and a number, as in status, io and cpu.stat; kB are made bytes."""
    found = {}
    for line in text_of(path).splitlines():
        words = line.replace(":", " ").split()
        if len(words) > 1 and words[1].isdigit():
            found[words[0]] = int(words[1]) * (1024 if words[2:3] == ["kB"] else 1)
    return found


def run_wait_s(pid: int) -> float:
    """Seconds for which its first thread was ready and had no processor (sched-stats.rst)."""
    words = text_of(f"/proc/{pid}/task/{pid}/schedstat").split()
    return int(words[1]) / 1e9 if len(words) > 1 else 0.0


def processor_limit(pid: int) -> dict[str, float]:
    """Of the group of it or above it that was held back most often: `periods` so far, those in
    which it was `held_periods`, and the `limit` in processors, 0 where there is none; {} where
    groups are not told (cgroup-v2.rst, sched-bwc.rst)."""
    found: dict[str, float] = {}
    for line in text_of(f"/proc/{pid}/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names and "cpu" not in names.split(","):
            continue
        for root in ("cpu", "cpu,cpuacct") if names else ("", "unified"):
            for above in _upwards(path):
                one = _limit_of(f"/sys/fs/cgroup/{root}{above}")
                if one and one["held_periods"] >= found.get("held_periods", 0.0):
                    found = one
    return found


def _upwards(path: str) -> list[str]:
    parts = path.rstrip("/").split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]


def _limit_of(group: str) -> dict[str, float]:
    told = pairs_of(f"{group}/cpu.stat")
    if "nr_throttled" not in told:
        return {}
    words = text_of(f"{group}/cpu.max").split()
    for name in () if words else ("cpu.cfs_quota_us", "cpu.cfs_period_us"):
        words += text_of(f"{group}/{name}").split()
    limited = len(words) == 2 and words[0].isdigit()  # "max" and -1 are no limit
    return {
        "periods": told.get("nr_periods", 0), "held_periods": told["nr_throttled"],
        "limit": int(words[0]) / int(words[1]) if limited else 0.0,
    }  # fmt: skip


def trains(pid: int) -> bool:
    """Whether a framework of training is loaded."""
    maps = text_of(f"/proc/{pid}/maps")
    return any(name in maps for name in ("libtorch", "xla_extension", "libjax", "libtensorflow"))
