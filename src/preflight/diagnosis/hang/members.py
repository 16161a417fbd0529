"""Who is who in files of stacks: ranks, what works for them, and looks at one process in turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from msgspec import Struct, field

from preflight.diagnosis.frames import Place, place_of, role_of
from preflight.facts.hangs import Stack, StackFile, StackProcess

_MOST_WORKERS = 64


class Look(Struct, frozen=True):
    """A rank at one moment. `source`, `line`: of the stack of its first thread."""

    place: Place
    source: str
    line: int
    time_s: float | None = None
    fatal: str = ""
    holder: str = ""  # the thread that holds the interpreter's lock meanwhile, and where


class Member(Struct):
    """A rank over all looks at it, in turn. `name`: rank 3, local rank 3, PID 4711, or its file."""

    name: str
    rank: int | None
    looks: list[Look] = field(default_factory=list)
    workers: list[Look] = field(default_factory=list)  # of its loader, at the last look

    @property
    def last(self) -> Look:
        return self.looks[-1]

    @property
    def moves(self) -> bool:
        """Whether two looks differ."""
        return len({one.place.frames for one in self.looks}) > 1

    @property
    def apart_s(self) -> float | None:
        """Seconds from the first look to the last, where file names tell."""
        times = [one.time_s for one in self.looks if one.time_s is not None]
        return max(times) - min(times) if len(times) > 1 else None


class _Seen(Struct, frozen=True):
    """A process that may be a rank, before it has a name."""

    key: tuple[object, ...]
    rank: int | None
    local_rank: int | None
    process: StackProcess
    file: StackFile
    main: Stack


def members_of(files: Sequence[StackFile]) -> list[Member]:
    """Ranks in their order; launchers and helpers are left out. Processes of a loader belong to
    the rank that is their parent, or whose file they stand in."""
    ordered = sorted(files, key=lambda one: (one.time_s or 0.0, _natural(one.source)))
    seen = [one for file in ordered for one in _ranks(file)]
    if not seen:  # workers alone are better than nothing
        seen = [one for file in ordered for one in _ranks(file, roles=("worker", "launcher"))]
    found: dict[tuple[object, ...], Member] = {}
    names, workers = _names(seen), _Workers()
    for one in seen:
        member = found.setdefault(one.key, Member(names[one.key], one.rank))
        member.looks.append(_look(one))
        member.workers = workers.of(one)
    return sorted(found.values(), key=lambda one: (one.rank is None, one.rank or 0,
                                                   _natural(one.name)))  # fmt: skip


def _natural(text: str) -> list[tuple[int, str]]:
    """rank2 before rank10."""
    return [
        (int(one), "") if one.isdecimal() else (-1, one) for one in re.split(r"(\d{1,18})", text)
    ]


def _ranks(file: StackFile, roles: tuple[str, ...] = ("rank",)) -> Iterator[_Seen]:
    """Those that are ranks by their stacks, and no child of another that is."""
    mains = [(one, main) for one in file.processes if (main := _main(one)) is not None]
    mine = [(one, main) for one, main in mains if role_of(main) in roles]
    pids = {one.pid for one, _ in mine if one.pid is not None}
    tops = [(one, main) for one, main in mine if one.parent not in pids or one.parent is None]
    alone = len({one.pid or one.mark for one, _ in tops}) == 1
    for one, main in tops:
        rank = one.rank if one.rank is not None else file.rank if alone else None
        folder = str(PurePath(file.source).parent)
        key = (rank,) if rank is not None else (folder, one.host, one.pid or one.mark, one.command)
        yield _Seen(key, rank, one.local_rank, one, file, main)


def _main(process: StackProcess) -> Stack | None:
    return next((one for one in process.threads if one.main and one.frames), None)


def _names(seen: Sequence[_Seen]) -> dict[tuple[object, ...], str]:
    """A name for each, none twice: by what is surest of it."""
    firsts = {one.key: one for one in reversed(seen)}.values()
    found: dict[tuple[object, ...], str] = {}
    for name in (_by_rank, _by_local_rank, _by_pid, _by_file):
        for one in firsts:
            found[one.key] = found.get(one.key) or name(one)
        twice = Counter(found.values())
        found = {key: told for key, told in found.items() if told and twice[told] == 1}
    left = [one for one in firsts if one.key not in found]
    found.update({one.key: f"{_by_file(one)}:{one.process.line}" for one in left})
    return found


def _by_rank(one: _Seen) -> str:
    return f"rank {one.rank}" if one.rank is not None else ""


def _by_local_rank(one: _Seen) -> str:
    return f"local rank {one.local_rank}" if one.local_rank is not None else ""


def _by_pid(one: _Seen) -> str:
    on = f"{one.process.host} " if one.process.host else ""
    return f"{on}PID {one.process.pid}" if one.process.pid is not None else ""


def _by_file(one: _Seen) -> str:
    return PurePath(one.file.source).name


def _look(one: _Seen) -> Look:
    place = place_of(one.main)
    holder = next((each for each in one.process.threads
                   if each.state == "gil" and not each.main and each.frames), None)  # fmt: skip
    held = f"{holder.thread or 'another thread'} at {place_of(holder).site}" if holder else ""
    time_s = one.file.time_s if one.process.time_s is None else one.process.time_s
    return Look(place, one.file.source, one.main.line, time_s, one.process.fatal, held)


class _Workers:
    """Processes of loaders, each file's looked at once."""

    def __init__(self) -> None:
        self._by_file: dict[int, dict[int | None, list[Look]]] = {}

    def of(self, one: _Seen) -> list[Look]:
        """Those of this rank: its children; where no parent is told, those in its file."""
        found = self._by_file.get(id(one.file))
        if found is None:
            found = self._by_file[id(one.file)] = {}
            for process in one.file.processes:
                main = _main(process)
                if main is not None and process is not one.process and role_of(main) == "worker":
                    look = Look(place_of(main), one.file.source, main.line)
                    found.setdefault(process.parent, []).append(look)
        mine = found.get(one.process.pid, []) if one.process.pid is not None else []
        return (mine or found.get(None, []))[:_MOST_WORKERS]
