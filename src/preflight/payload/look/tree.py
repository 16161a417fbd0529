"""Which processes belong to a job, and what each of them is in it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from .proc import environment_of, stat_of, trains, words_of

#: The kernel's flag of its own threads (PF_KTHREAD in include/linux/sched.h).
_KERNEL_THREAD = 0x200000
_LAUNCHERS = ("torchrun", "torch.distributed", "accelerate", "deepspeed", "mpirun")
#: torch's names of its own processes.
_WORKER, _LAUNCHER = "pt_data_worker", "pt_elastic"
_RANK = r"rank ?(\d+)"


@dataclass
class Member:
    """A process of the job. `role`: rank, worker (prepares a rank's data), other."""

    pid: int
    parent: int
    name: str
    command: str
    role: str = "other"
    of: int | None = None  # the rank that it works for
    rank: int | None = None
    local_rank: int | None = None
    trains: bool = False


def everything() -> dict[int, Member]:
    """All processes by PID, without threads of the kernel and what has ended."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        called, fields = stat_of(f"/proc/{name}/stat")
        if fields and fields[0] not in "ZX" and not int(fields[6]) & _KERNEL_THREAD:
            found[int(name)] = Member(int(name), int(fields[1]), called, "")
    return found


def trouble_of(pid: int) -> str:
    """Why this process cannot be looked at; "" where it can."""
    _, fields = stat_of(f"/proc/{pid}/stat")
    if not fields:
        return f"there is no process {pid}"
    if fields[0] in "ZX":
        return f"process {pid} has ended; its parent {fields[1]} has not noticed yet"
    if int(fields[6]) & _KERNEL_THREAD:
        return f"{pid} is a thread of the kernel"
    if pid in _line_of(os.getpid()):
        return f"process {pid} is preflight itself, or the shell that started it"
    owner = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116
    if os.geteuid() not in (0, owner):
        return f"process {pid} belongs to user {owner}: look as that user, or with sudo"
    return ""


def family_of(pid: int, all_: dict[int, Member]) -> list[Member]:
    """It and all below it, parents first; nothing of this program itself."""
    family = _below(pid, all_, _own(all_))
    return sorted((all_[one] for one in family & set(all_)), key=lambda m: (_depth(m, all_), m.pid))


def _below(pid: int, all_: dict[int, Member], without: set[int]) -> set[int]:
    family = {pid}
    while more := {m.pid for m in all_.values() if m.parent in family} - family - without:
        family |= more
    return family


def _own(all_: dict[int, Member]) -> set[int]:
    """This process, what it has started, and who started it."""
    return {*_line_of(os.getpid()), *_below(os.getpid(), all_, set())}


def training(all_: dict[int, Member], holders: set[int]) -> list[Member]:
    """Every process of this user, of all users for root, that trains: it has a rank, or holds a GPU
    with Python; and what works for it."""
    own = _own(all_)
    heads = [
        m.pid for m in all_.values()
        if m.pid not in own and _is_python(m.pid)
        and (_number(environment_of(m.pid), "RANK") is not None or m.pid in holders)
    ]  # fmt: skip
    found = {m.pid: m for head in heads for m in family_of(head, all_)}
    return sorted(found.values(), key=lambda m: (_depth(m, all_), m.pid))


def assign(family: list[Member], holders: set[int]) -> None:
    """Give each its role, parents first."""
    by_pid = {m.pid: m for m in family}
    for m in family:
        words = words_of(m.pid)
        m.command, m.trains = " ".join(words)[:200], trains(m.pid)
    for m in family:
        above = by_pid.get(m.parent)
        if above is not None and above.role != "other":
            m.role, m.of = "worker" if _works(m, above) else "other", above.of or above.pid
        elif _is_rank(m, above, holders, family):
            m.role = "rank"
            _name(m)
    if not any(m.role == "rank" for m in family):
        _assign_untold(family)


def _assign_untold(family: list[Member]) -> None:
    """Where no framework is loaded, yet or at all: those that were given a RANK, each with what is
    below it; else the process that was named."""
    python = [m.pid for m in family if _is_python(m.pid)]
    heads = {one for one in python if _number(environment_of(one), "RANK") is not None}
    if not heads and family and family[0].pid in python:
        heads = {family[0].pid}
    of: dict[int, Member] = {}
    for m in family:
        if m.parent in of:
            above = of[m.pid] = of[m.parent]
            m.role, m.of = "worker" if _works(m, above) else "other", above.pid
        elif m.pid in heads:
            m.role, of[m.pid] = "rank", m
            _name(m)


def _works(m: Member, above: Member) -> bool:
    forked = m.command == above.command or "multiprocessing" in m.command
    return m.name == _WORKER or (forked and above.role == "rank")


def _is_rank(m: Member, above: Member | None, holders: set[int], family: list[Member]) -> bool:
    if m.name == _LAUNCHER:
        return False
    rank = _number(environment_of(m.pid), "RANK")
    if rank is not None and m.trains:
        return True
    if m.pid in holders or re.fullmatch(_RANK, m.name):
        return True
    below = [one for one in family if one.parent == m.pid and one.trains]
    if any(_is_head(one, holders, family) for one in below):
        return False
    launches = (
        bool(below)
        and all(one.name != _WORKER for one in below)
        and any(
            word == "train" or word.rpartition("/")[2].startswith(_LAUNCHERS)
            for word in m.command.split()
        )
    )
    return m.trains and not launches


def _is_head(m: Member, holders: set[int], family: list[Member]) -> bool:
    """Whether a process that another one has started is a rank for certain: by its name, its GPU,
    or workers of its own, which no worker has."""
    workers = any(one.parent == m.pid and one.name == _WORKER for one in family)
    return workers or m.pid in holders or re.fullmatch(_RANK, m.name) is not None


def _name(m: Member) -> None:
    known = environment_of(m.pid)
    named = re.fullmatch(_RANK, m.name)
    m.rank = int(named.group(1)) if named else _number(known, "RANK")
    m.local_rank = _number(known, "LOCAL_RANK")


def _number(known: dict[str, str], name: str) -> int | None:
    text = known.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 8 else None


def _is_python(pid: int) -> bool:
    return any("python" in word.rpartition("/")[2] for word in words_of(pid)[:1]) or trains(pid)


def _line_of(pid: int) -> list[int]:
    """A process and those above it, up to the first that is not its launcher's."""
    line: list[int] = []
    while pid > 1 and len(line) < 100:
        line.append(pid)
        _, fields = stat_of(f"/proc/{pid}/stat")
        pid = int(fields[1]) if fields else 0
    return line


def _depth(m: Member, all_: dict[int, Member]) -> int:
    depth = 0
    while m.parent in all_ and depth < 100:
        m, depth = all_[m.parent], depth + 1
    return depth
