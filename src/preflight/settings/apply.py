"""Making changes on this machine, of which each can be taken back: see undo_file.py."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from preflight import __version__
from preflight.settings import places
from preflight.settings.dropins import DropIn, dropins, glob, sysctl_name
from preflight.settings.undo_file import SCHEMA, File, Folder, Undo, Value
from preflight.settings.wanted import Change, LeftOut
from preflight.writable import FOLLOWS


class Step(Struct, frozen=True):
    """A running value to be written, in all files that it has."""

    change: Change
    paths: tuple[str, ...]


class Plan(Struct, frozen=True):
    """What is to be done here, what not, and how it is undone. `files` as they are to be."""

    steps: tuple[Step, ...]
    files: tuple[File, ...]
    left_out: tuple[LeftOut, ...]
    undo: Undo


class Outcome(Struct, frozen=True):
    """What became of one parameter or file. `problem` is empty where it is as wanted."""

    name: str
    now: str
    problem: str = ""


def plan(changes: Sequence[Change], made_at: str, root: Path = Path("/")) -> Plan:
    """What can be changed here, with everything that will be overwritten read first. Changes
    nothing."""
    found = [_step(change, root) for change in changes]
    left = [one for one in found if isinstance(one, LeftOut)]
    steps = [one for one in found if isinstance(one, Step)]
    kept = [step.change for step in steps]
    entries: list[Value | File | Folder] = [*_values(steps, root)]
    files: list[File] = []
    for dropin in dropins(kept, sysctl_name(root, kept)):
        try:
            before = places.read_file(root, dropin.path)
        except OSError as error:
            left.append(LeftOut(dropin.path, f"it stays as it is: {error.strerror}"))
            continue
        entries += [*_folders(dropin, root), before]
        files.append(_after(dropin, before))
    undo = Undo(SCHEMA, __version__, socket.gethostname(), made_at, tuple(entries))
    return Plan(tuple(steps), tuple(files), tuple(left), undo)


def _step(change: Change, root: Path) -> Step | LeftOut:
    """Where the value is written, or why it cannot be."""
    paths = paths_of(change, root)
    if change.kind != "limit" and not paths:
        return LeftOut(change.name, "not on this machine")
    for path in paths:
        if not _can_change(places.at(root, path)):
            return LeftOut(change.name, f"{path} cannot be written here")
    return Step(change, tuple(paths))


def _can_change(path: Path) -> bool:
    """Whether it can be written, and read, without which it could not be put back."""
    try:
        places.read_value(path)
    except OSError:
        return False
    return os.access(path, os.W_OK)


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
            yield Value(path, before, places.chosen(before))


def _folders(dropin: DropIn, root: Path) -> Iterator[Folder]:
    folder = str(Path(dropin.path).parent)
    if not places.at(root, folder).exists():
        yield Folder(folder)


def _after(dropin: DropIn, before: File) -> File:
    told = (before.before or b"").decode("utf-8", "surrogateescape")
    content = dropin.content(told).encode("utf-8", "surrogateescape")
    return File(dropin.path, content, before.mode, before.uid, before.gid)


def carry_out(planned: Plan, root: Path = Path("/")) -> list[Outcome]:
    """Do it; the undo file must be in place by now. What fails does not stop the rest."""
    files = [_put(file, root) for file in planned.files]
    return [*files, *(_written(step, root) for step in planned.steps)]


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
    if not step.paths:
        return Outcome(change.name, f"{change.value}, for who logs in from now on")
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


def restore(undo: Undo, root: Path = Path("/")) -> list[Outcome]:
    """Put everything back, the last change first. What fails does not stop the rest."""
    return [_restored(entry, root) for entry in reversed(undo.entries)]


def _restored(entry: Value | File | Folder, root: Path) -> Outcome:
    path = places.at(root, entry.path)
    try:
        if isinstance(entry, Value):
            return _value_restored(entry, path)
        if isinstance(entry, File):
            places.put_file(root, entry)
            as_it_was = places.read_file(root, entry.path) == entry
            return Outcome(entry.path, "as it was", "" if as_it_was else "it is not as it was")
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    except OSError as error:
        return Outcome(entry.path, "", f"cannot be put back: {error.strerror}")
    return Outcome(entry.path, "as it was")


def _value_restored(entry: Value, path: Path) -> Outcome:
    if places.read_value(path) != entry.before:
        places.write_value(path, entry.restores)
    now = places.read_value(path)
    problem = "" if now == entry.before else f"it was {shown(entry.before)}, it is {shown(now)}"
    return Outcome(entry.path, shown(now), problem)
