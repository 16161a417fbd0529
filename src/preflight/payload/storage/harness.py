"""A bench of storage, from the choice of a directory to its removal: what a checkpoint takes for
granted is tried there, then fio measures."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

from . import fio
from .beneath import IN_MEMORY, beneath
from .jobs import NAMES, WRITES, Sizes, Way, job_file, sizes
from .meeting import Meeting
from .mounts import is_shared
from .patterns import rows, shared
from .place import Place, RefusedError, chosen, own_folder
from .plan import Plan
from .proof import WORKS, proof
from .room import Room
from .seen import COMES_S, SEES_S, seen
from .watched import within

FORM = "io-bench/1"
Tell = Callable[[dict[str, Any]], None]
#: Tried in this order.
_ENGINES = ("io_uring", "libaio", "psync")
_PROBE_S = 5.0
_OURS = re.compile(r"^/proc/\d+/fd/\d+/?")  # place.py
_LEAST_S = 0.5
#: Trials take two seconds at most; a pattern so long beyond its time, for syncs.
_TRIES_S, _BEYOND_S = 30.0, 120.0
_NO_FIO = (
    "fio is not installed: sudo apt install fio, or dnf install fio, or conda install -c "
    "conda-forge fio, on each host"
)


def harness(plan: Plan, tell: Tell) -> None:
    """All of it."""
    began = time.monotonic()
    try:
        place = chosen(plan.dir, plan.size_bytes)
        if plan.job_file and (why := fio.refuses(plan.job_file)):
            raise RefusedError(f"fio refuses the job file: {why}: fio --parse-only FILE tells more")
        if plan.look:
            tell({"preflight": FORM, "kind": "looked"})
            return
        size = plan.size_bytes // (plan.hosts if is_shared(place.mount) else 1)
        with own_folder(place, lambda text: tell({"kind": "left", "text": text})) as folder:
            within(_TRIES_S, "it was tried what holds its data")
            of = beneath(folder, place.mount)
            tell({"preflight": FORM, "kind": "begin", "plan": asdict(plan), "dir": place.path,
                  "size_bytes": size, **_about(place, of)})  # fmt: skip
            within(_TRIES_S, "what a checkpoint takes for granted was tried")
            _tried(folder, tell)
            meeting = _met(place, folder, plan, tell)
            if plan.measure:
                since = began if plan.hosts < 2 else time.monotonic()
                room = Room(folder, size, 0.0, of == IN_MEMORY, plan, meeting)
                _measured(plan, size, room, tell, since)
                if meeting:
                    meeting.stay()
    except (RefusedError, OSError) as error:
        tell({"preflight": FORM, "kind": "cannot", "why": "refused", "text": _text(error, plan)})
        return
    tell({"kind": "end", "elapsed_s": round(time.monotonic() - began, 3)})


def _met(place: Place, folder: str, plan: Plan, tell: Tell) -> Meeting | None:
    """With the other hosts, where they share the file system."""
    if plan.hosts < 2 or not plan.job or not is_shared(place.mount):
        return None
    # There before anybody looks for it: that a file is not there is remembered too (nfs(5)).
    meeting = Meeting(place.path, folder, plan.job, plan.hosts)
    within(COMES_S + 3 * SEES_S, "other hosts were looked for")
    told = seen(place.path, folder, plan.job, plan.hosts)
    tell(told)
    if told["other_hosts"] != WORKS:
        meeting.leave(told["other_hosts"])
    return meeting


def _text(error: Exception, plan: Plan) -> str:
    """A file of ours is called by its name in our directory."""
    if not isinstance(error, OSError):
        return str(error)
    file = _OURS.sub("", str(error.filename or ""))
    where = f"{plan.dir or 'the directory'}{f' ({file})' if file else ''}"
    return f"{where}: {error.strerror or error}: another --dir"


def _about(place: Place, of: str) -> dict[str, Any]:
    mount = place.mount
    return {"mount": mount.place, "fs": mount.kind, "source": mount.source,
            "shared": is_shared(mount), "memory": of == IN_MEMORY, "of": of}  # fmt: skip


def _tried(folder: str, tell: Tell) -> None:
    place = f"{folder}/proof"
    os.mkdir(place)  # noqa: PTH102
    tell(proof(place))
    shutil.rmtree(place, ignore_errors=True)


def _measured(plan: Plan, size: int, room: Room, tell: Tell, began_s: float) -> None:
    """One pattern after the other, each with its share of bytes and seconds."""
    for name in plan.patterns:
        of_size, of_seconds = shared(plan, name)
        bytes_, seconds = int(size * of_size), plan.seconds * of_seconds
        if name == "fio":
            share = replace(plan, seconds=seconds)
            _benched(share, bytes_, room.folder, tell, began_s)
            _emptied(room.folder)
            continue
        within(seconds + _BEYOND_S, f"{name} was at work")
        for row in rows(name, room._replace(size_bytes=bytes_, seconds=seconds)):
            tell(row)


def _emptied(folder: str) -> None:
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            os.unlink(entry.path)  # noqa: PTH108


def _benched(plan: Plan, size: int, folder: str, tell: Tell, began_s: float) -> None:
    if not fio.program():
        tell({"kind": "cannot", "why": "no-fio", "text": _NO_FIO})
        return
    if plan.job_file:
        tell({"kind": "job", "text": plan.job_file})
        _put(folder, plan.job_file)
        tell(_line("job", fio.run(["job.fio"], folder, plan.seconds)))
        return
    way, said, beside_s = _way(folder)
    if way is None:
        tell({"kind": "failed", "text": said})
        return
    left_s = plan.seconds - (time.monotonic() - began_s)
    seconds = max(_LEAST_S, left_s / len(NAMES) - beside_s)
    for text, line in _each(way, sizes(size), seconds, folder):
        if text:
            tell({"kind": "job", "text": text})
        tell(line)


def _each(
    way: Way, wanted: Sizes, seconds: float, folder: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every job by itself, so that one that fails leaves the others. What reads has what seq-write
    has written, which on a slow disk is less than it was to write."""
    processors = len(os.sched_getaffinity(0))
    text = job_file(way, wanted, seconds, processors)
    _put(folder, text)
    first = fio.run([f"--section={WRITES}", "job.fio"], folder, seconds)
    written = _written(first.report)
    if first.status == 0 and written < wanted.data:
        text = job_file(way, Sizes(written, wanted.log), seconds, processors)
        _put(folder, text)
    yield text, _line(WRITES, first)
    if first.status or not written:
        return
    for name in NAMES[1:]:
        if not way.direct:
            _drop(folder)
        ran = fio.run([f"--section={name}", "job.fio"], folder, seconds)
        yield "", _line(name, ran)
        if ran.hung:
            return


def _line(name: str, ran: fio.Ran) -> dict[str, Any]:
    return {"kind": "fio", "name": name, "status": ran.status, "hung": ran.hung, "said": ran.said,
            "report": ran.report}  # fmt: skip


def _put(folder: str, text: str) -> None:
    with open(f"{folder}/job.fio", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def _written(report: dict[str, Any] | None) -> int:
    """Whole MiB."""
    jobs = (report or {}).get("jobs") or [{}]
    done = jobs[0].get("write", {}).get("io_bytes", 0)
    return int(done) >> 20 << 20


def _drop(folder: str) -> None:
    """What was written goes to the device, and is no more in memory."""
    with contextlib.suppress(OSError), open(f"{folder}/data", "rb") as file:  # noqa: PTH123
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _way(folder: str) -> tuple[Way | None, str, float]:
    """The first engine that works here, past the page cache if the file system allows it, and how
    long fio takes for next to nothing; None and what fio said of the last."""
    said = ""
    for direct in (True, False):
        for engine in _ENGINES:
            began = time.monotonic()
            ran = fio.run(
                ["--name=probe", f"--ioengine={engine}", f"--direct={int(direct)}", "--rw=write",
                 "--bs=4k", "--size=64k", "--filename=probe", "--thread"], folder, _PROBE_S,
            )  # fmt: skip
            with contextlib.suppress(OSError):
                os.unlink(f"{folder}/probe")  # noqa: PTH108
            jobs = (ran.report or {}).get("jobs") or [{"error": 1}]
            if ran.status == 0 and not jobs[0].get("error"):
                return Way(engine, direct), "", time.monotonic() - began
            said = ran.said or json.dumps(jobs[0].get("error"))
            if "No space left" in said or ran.hung:
                return None, said, 0.0
    return None, said, 0.0
