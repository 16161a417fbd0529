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


def throttled_s(pid: int) -> float | None:
    """Seconds that its group of processors was held back; None where that is not told."""
    for line in text_of(f"/proc/{pid}/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if names and "cpu" not in names.split(","):
            continue
        for root in (
            ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct") if names else ("/sys/fs/cgroup",)
        ):
            told = pairs_of(f"{root}{path}/cpu.stat")
            if "throttled_usec" in told:
                return told["throttled_usec"] / 1e6
            if "throttled_time" in told:
                return told["throttled_time"] / 1e9
    return None


def trains(pid: int) -> bool:
    """Whether a framework of training is loaded."""
    maps = text_of(f"/proc/{pid}/maps")
    return any(name in maps for name in ("libtorch", "xla_extension", "libjax", "libtensorflow"))
