"""What `py-spy dump` writes: text, with variables and native frames too, and JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from preflight.errors import ParseError
from preflight.facts.hangs import Stack, StackProcess
from preflight.logs.hangs.json_values import values

#: Kept of one process, and of one stack. The first thread is always kept.
MOST_THREADS, MOST_FRAMES = 512, 256
_MOST_OBJECTS = 2_000_000
_PROCESS = re.compile(r"Process (\d{1,10}): ?(.*)")
_PARENT = re.compile(r"Parent Process (\d{1,10}):")
_THREAD = re.compile(r"Thread (0x[0-9A-Fa-f]{1,16}|\d{1,20}) \(([a-z+ ]*)\)(?:: \"(.*)\")?$")
_FRAME = re.compile(r"(?: {4}|\t)(\S.*) (\([^()]*\))$")
_VARIABLE = re.compile(r"(?: {12}|\t\t\t)((?:global_|world_)?rank): (\d{1,7})$")
_BETWEEN = re.compile(r"-{20,}$| {8,}\S|\t\t|$")

_RANK = re.compile(r"(?:^|\s)(?:--?(?:global[-_])?rank[= ]|RANK=)(\d{1,7})(?!\d)")
_LOCAL_RANK = re.compile(r"(?:--local[-_]rank[= ]|LOCAL_RANK=)(\d{1,7})(?!\d)")


class SpyText:
    """The lines of one text in turn: `take` is false for one that is no part of a stack."""

    def __init__(self, source: str) -> None:
        self.source, self.frames, self.count = source, 0, 0
        self._found: list[StackProcess] = []
        self._process: dict[str, Any] | None = None
        self._threads: list[dict[str, Any]] = []
        self._open = False  # lines now belong to the last thread

    def take(self, number: int, line: str, rank: int | None, host: str) -> bool:
        """One line; `rank` and `host` are what stands beside it."""
        if line[:1] in (" ", "\t", "-", ""):
            return self._within(line)
        if not line.startswith(("Thread ", "Process ", "Parent ", "Python ")):
            return False
        if thread := _THREAD.match(line):
            self._thread(number, thread, rank, host)
        elif process := _PROCESS.match(line):
            self._end()
            self._process = {"line": number, "pid": int(process[1]), "command": process[2][:1000],
                             "rank": rank, "host": host}  # fmt: skip
        elif parent := _PARENT.match(line):
            if self._process is not None:
                self._process["parent"] = int(parent[1])
        else:
            return self._process is not None and line.startswith("Python ")
        return True

    def _within(self, line: str) -> bool:
        """A frame, a variable, or what stands between stacks."""
        if self._open and (frame := _FRAME.match(line)):
            self._add(f"{frame[1][:200]} {frame[2]}")
        elif self._open and (variable := _VARIABLE.match(line)):
            # Frames come innermost first: the outermost has the last word.
            self._threads[-1]["rank"] = int(variable[2])
        else:
            return self._process is not None and _BETWEEN.match(line) is not None
        return True

    def close(self) -> None:
        """What follows is of something else."""
        self._end()

    def done(self) -> list[StackProcess]:
        """All that was found."""
        self._end()
        return self._found

    def _thread(self, number: int, told: re.Match[str], rank: int | None, host: str) -> None:
        if self._process is None:  # the head of it is cut away
            self._process = {"line": number, "rank": rank, "host": host}
        states = told[2].split("+")
        self._threads.append({
            "line": number, "tid": told[1], "name": told[3] or "", "frames": [],
            "state": "gil" if "gil" in states else states[0],
        })  # fmt: skip
        self._open = True

    def _add(self, frame: str) -> None:
        frames = self._threads[-1]["frames"]
        if len(frames) < MOST_FRAMES:
            frames.append(frame)
            self.frames += 1

    def _end(self) -> None:
        if self._process is not None and self._threads:
            self.count += 1
            self._found.append(_process(self.source, self._process, self._threads))
        self._process, self._threads, self._open = None, [], False


def _process(source: str, told: dict[str, Any], threads: Sequence[dict[str, Any]]) -> StackProcess:
    main = _main(threads, told.get("pid"))
    command, rank = told.get("command", ""), told.get("rank")
    if rank is None:
        rank = threads[main].get("rank")
    if rank is None and (named := _RANK.search(command)):
        rank = int(named[1])
    local = _LOCAL_RANK.search(command)
    kept = sorted({*range(min(len(threads), MOST_THREADS)), main})
    return StackProcess(
        told["line"], tuple(
            Stack(source, threads[at]["line"], rank, told.get("host", ""), told.get("pid"),
                  threads[at]["name"], threads[at]["state"], tuple(threads[at]["frames"]),
                  main=at == main) for at in kept),
        told.get("pid"), rank, int(local[1]) if local else None, told.get("host", ""), command,
        told.get("parent"),
    )  # fmt: skip


def _main(threads: Sequence[dict[str, Any]], pid: int | None) -> int:
    """Which thread is the first of its process: by its name, its number, or where it began."""
    for fits in (
        lambda one: one["name"] == "MainThread",
        lambda one: pid is not None and one["tid"] == str(pid),
        lambda one: any(frame.startswith("<module> (") for frame in one["frames"][-2:]),
    ):
        for at, one in enumerate(threads):
            if fits(one):
                return at
    return 0


def is_json(head: bytes) -> bool:
    """An array of threads."""
    return head.lstrip()[:1] == b"[" and b'"owns_gil"' in head and b'"frames"' in head


def of_json(data: bytes, source: str) -> tuple[StackProcess, ...]:
    """ParseError where nothing whole is in it. A later array that is cut is left out."""
    if data.count(b"{") > _MOST_OBJECTS:
        raise ParseError(f"it holds more than {_MOST_OBJECTS:,} objects")
    text = data.decode("utf-8", "replace")
    processes = []
    for line, told in values(text, "["):
        by_pid: dict[int | None, list[dict[str, Any]]] = {}
        for one in told:
            if isinstance(one, dict):
                by_pid.setdefault(_int(one.get("pid")), []).append(one)
        for pid, threads in by_pid.items():
            about: dict[str, Any] = next((one["process_info"] for one in threads
                          if isinstance(one.get("process_info"), dict)), {})  # fmt: skip
            command = about.get("command_line")
            processes.append(_process(
                source, {"line": line, "pid": pid, "parent": _int(about.get("ppid")),
                         "command": command[:1000] if isinstance(command, str) else ""},
                [_thread_of(one, line) for one in threads],
            ))  # fmt: skip
    return tuple(processes)


def _thread_of(one: dict[str, Any], line: int) -> dict[str, Any]:
    frames = one.get("frames")
    frames = [each for each in frames if isinstance(each, dict)] if isinstance(frames, list) else []
    told: dict[str, Any] = {
        "line": line, "tid": str(_int(one.get("os_thread_id")) or ""),
        "name": str(one.get("thread_name") or "")[:200],
        "state": "gil" if one.get("owns_gil") is True else "active" if one.get("active") is True
        else "idle", "frames": [_frame_of(each) for each in frames[:MOST_FRAMES]],
    }  # fmt: skip
    for each in frames:
        for variable in each.get("locals") or () if isinstance(each.get("locals"), list) else ():
            name, value = (variable.get("name"), variable.get("repr")) if isinstance(
                variable, dict) else ("", "")  # fmt: skip
            if name in ("rank", "global_rank", "world_rank") and re.fullmatch(
                r"\d{1,7}", str(value)
            ):
                told["rank"] = int(str(value))
    return told


def _frame_of(one: dict[str, Any]) -> str:
    place = str(one.get("filename") or one.get("short_filename") or "?")[:400]
    line = _int(one.get("line"))
    return f"{str(one.get('name') or '?')[:200]} ({place}{f':{line}' if line else ''})"


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
