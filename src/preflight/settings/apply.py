"""Making changes on this machine, of which each can be taken back: see undo_file.py."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from preflight import __version__
from preflight.settings import places
from preflight.settings.dropins import DropIn, dropins, glob
from preflight.settings.later import (
    LIMITS_FOLDER,
    file_names,
    in_container,
    later_files,
    later_limits,
    nearer_limits,
)
from preflight.settings.undo_file import SCHEMA, File, Folder, Undo, Value
from preflight.settings.wanted import Change, LeftOut
from preflight.writable import FOLLOWS, KINDS, UNLIMITED

#: No process may have more open files.
NR_OPEN = "fs.nr_open"
#: Why no limit of logins is written there.
CONTAINED = "a container has its limits from what started it: {}"


class Step(Struct, frozen=True):
    """A running value to be written, in all files that it has."""

    change: Change
    paths: tuple[str, ...]


class Outcome(Struct, frozen=True):
    """What became of one parameter or file. `problem` is empty where it is as wanted."""

    name: str
    now: str
    problem: str = ""


class Plan(Struct, frozen=True):
    """What is to be done here, and how it is undone; what need not be done (`left_out`), and what
    should be and cannot (`refused`). `files` as they are to be. Nothing is in it that holds
    already. `notes`: what else counts."""

    steps: tuple[Step, ...]
    files: tuple[File, ...]
    left_out: tuple[LeftOut, ...]
    undo: Undo
    refused: tuple[Outcome, ...] = ()
    notes: tuple[str, ...] = ()


def plan(changes: Sequence[Change], made_at: str, root: Path = Path("/")) -> Plan:
    """What can be changed here, with everything that will be overwritten read first. Changes
    nothing."""
    found = [_step(change, root) for change in with_nr_open(changes, root)]
    steps = [one for one in found if isinstance(one, Step)]
    kept = [step.change for step in steps]
    files = [_file(dropin, root) for dropin in dropins(kept, file_names(root, kept))]
    written = [one for one in files if isinstance(one, File)]
    rest = [one for one in (*found, *files) if not isinstance(one, (Step, File))]
    open_ = [step for step in steps if _is_open(step, written, root)]
    left = [one for one in rest if isinstance(one, LeftOut)]
    refused = tuple(one for one in rest if isinstance(one, Outcome))
    left += [
        LeftOut(one.change.name, "written already: it counts for who logs in anew")
        for one in steps
        if one not in open_ and not one.paths and not _of_limits(refused)
    ]
    entries = (*_values(open_, root), *(each for one in written for each in _before(one, root)))
    undo = Undo(SCHEMA, __version__, socket.gethostname(), made_at, entries)
    return Plan(tuple(open_), tuple(written), tuple(left), undo, refused, tuple(_notes(kept, root)))


def _file(dropin: DropIn, root: Path) -> File | Outcome | None:
    """The file as it is to be; None where it is so, or why it cannot be."""
    try:
        before = places.read_file(root, dropin.path)
    except OSError as error:
        return Outcome(dropin.path, "", f"it stays as it is: {error.strerror}")
    told = (before.before or b"").decode("utf-8", "surrogateescape")
    content = dropin.content(told).encode("utf-8", "surrogateescape")
    if content == before.before:
        return None
    return File(dropin.path, content, before.mode, before.uid, before.gid)


def _before(file: File, root: Path) -> Iterator[File | Folder]:
    """What was there, with what is written in its place."""
    folder = str(Path(file.path).parent)
    if not places.at(root, folder).exists():
        yield Folder(folder)
    yield replace(places.read_file(root, file.path), written=file.before)


def _is_open(step: Step, written: Sequence[File], root: Path) -> bool:
    """Whether it does not hold yet. A limit has no running value: it is done with its file."""
    if not step.paths:
        return any(file.path.startswith(LIMITS_FOLDER) for file in written)
    paths = (places.at(root, path) for path in step.paths)
    return any(shown(places.read_value(path)) != step.change.value for path in paths)


def with_nr_open(changes: Sequence[Change], root: Path) -> list[Change]:
    """With fs.nr_open first where it is lower than what a process is to have: the kernel refuses a
    limit beyond it, and pam_limits then may refuse the login."""
    nofile = next((one for one in changes if (one.kind, one.name) == ("limit", "nofile")), None)
    if nofile is None or not nofile.value.isdigit() or in_container(root):
        return list(changes)
    try:
        most = int(places.read_value(places.at(root, f"/proc/sys/{NR_OPEN.replace('.', '/')}")))
    except (OSError, ValueError):
        return list(changes)
    why = "no process may have more open files than this"
    first = Change("sysctl", NR_OPEN, nofile.value, why, str(most), nofile.check)
    return [first, *changes] if most < int(nofile.value) else list(changes)


def _step(change: Change, root: Path) -> Step | LeftOut | Outcome:
    """Where the value is written, or why it need not or cannot be."""
    if change.kind == "limit" and in_container(root):
        return LeftOut(change.name, CONTAINED.format(of_docker(change)))
    paths = paths_of(change, root)
    if change.kind != "limit" and not paths:
        return LeftOut(change.name, "not on this machine")
    for path in paths:
        if not _can_change(places.at(root, path)):
            how = f": docker run --sysctl {change.name}={change.value}"
            how = how if change.kind == "sysctl" and in_container(root) else ""
            return Outcome(change.name, "", f"{path} cannot be written here{how}")
    return Step(change, tuple(paths))


def of_docker(change: Change) -> str:
    """A limit as a container is given it."""
    value = "-1" if change.value == UNLIMITED else f"{change.value}:{change.value}"
    return f"docker run --ulimit {change.name}={value}"


def _notes(changes: Sequence[Change], root: Path) -> Iterator[str]:
    """What overrides our files, or counts before them."""
    of = {kind: [one.name for one in changes if one.kind == kind] for kind in KINDS}
    sysctl, limits = file_names(root, changes)
    for path in later_files(root, of["sysctl"], sysctl) if of["sysctl"] else ():
        yield f"{path} sets one of these too, and may be read later; take the line out there"
    for path in later_limits(root, of["limit"], limits) if of["limit"] else ():
        yield f"{path} sets one of these too, and is read later; take the line out there"
    for line in nearer_limits(root, of["limit"]) if of["limit"] else ():
        yield f"{line}: that counts for them, whatever is set for everybody"


def _can_change(path: Path) -> bool:
    """Whether it can be written, and read, without which it could not be put back."""
    try:
        places.read_value(path)
    except OSError:
        return False
    return os.access(path, os.W_OK) or os.geteuid() != 0  # who is not root only looks


def paths_of(change: Change, root: Path = Path("/")) -> list[str]:
    """The files that hold the running value; a limit of logins has none."""
    if change.kind == "limit":
        return []
    if change.kind == "sysctl":
        path = f"proc/sys/{change.name.replace('.', '/')}"
        return [f"/{path}"] if (root / path).exists() else []
    return _globbed(root, glob(change.name))


def _globbed(root: Path, pattern: str) -> list[str]:
    found = root.glob(pattern.lstrip("/"))
    return sorted(f"/{path.relative_to(root)}" for path in found)


def _values(steps: Iterable[Step], root: Path) -> Iterator[Value]:
    """What follows from a parameter comes before it: it is put back after it."""
    for step in steps:
        follows = FOLLOWS.get(step.change.name)
        more = _globbed(root, follows) if follows else []
        for path in (*filter(lambda one: _can_change(places.at(root, one)), more), *step.paths):
            before = places.read_value(places.at(root, path))
            ours = f"{step.change.value}\n".encode() if path in step.paths else None
            yield Value(path, before, places.chosen(before), ours)


def carry_out(planned: Plan, root: Path = Path("/")) -> list[Outcome]:
    """Do it; the undo file must be in place by now. What fails does not stop the rest."""
    values = [_written(step, root) for step in planned.steps if step.paths]
    stuck = any(one.problem and one.name == NR_OPEN for one in (*planned.refused, *values))
    files = [
        Outcome(file.path, "", f"left alone, as a login beyond {NR_OPEN} may be refused")
        if stuck and file.path.startswith(LIMITS_FOLDER)
        else _put(file, root)
        for file in planned.files
    ]
    limits = (one.change for one in planned.steps if not one.paths and not _of_limits(files))
    told = (Outcome(one.name, f"{one.value}, for who logs in from now on") for one in limits)
    return [*values, *files, *told]


def _of_limits(outcomes: Iterable[Outcome]) -> bool:
    """Whether the file of limits is among what failed."""
    return any(one.problem and one.name.startswith(LIMITS_FOLDER) for one in outcomes)


def _put(file: File, root: Path) -> Outcome:
    try:
        places.at(root, file.path).parent.mkdir(mode=0o755, exist_ok=True)
        places.put_file(root, file)
    except OSError as error:
        return Outcome(file.path, "", f"cannot be written: {error.strerror}")
    return Outcome(file.path, "written")


def _written(step: Step, root: Path) -> Outcome:
    """Write the value, and read it back: the kernel may keep another."""
    change = step.change
    for path in step.paths:
        try:
            places.write_value(places.at(root, path), f"{change.value}\n".encode())
            now = shown(places.read_value(places.at(root, path)))
        except OSError as error:
            return Outcome(change.name, "", f"{path} cannot be written: {error.strerror}")
        if now != change.value:
            return Outcome(change.name, now, f"{change.value} was written, {path} reads {now}")
    return Outcome(change.name, change.value)


def shown(read: bytes) -> str:
    """A value of the kernel as a person writes it."""
    return " ".join(places.chosen(read).decode("ascii", "replace").split())
