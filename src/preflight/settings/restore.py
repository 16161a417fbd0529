"""Taking changes back: what is still as --apply left it; what was changed since is told."""

from __future__ import annotations

from pathlib import Path

from preflight.settings import places
from preflight.settings.apply import Outcome, shown
from preflight.settings.undo_file import File, Folder, Undo, Value

_SINCE = "it was changed after --apply and stays as it is"


def restore(undo: Undo, root: Path = Path("/")) -> list[Outcome]:
    """Put everything back, the last change first. What fails does not stop the rest."""
    return [_restored(entry, root) for entry in reversed(undo.entries)]


def _restored(entry: Value | File | Folder, root: Path) -> Outcome:
    path = places.at(root, entry.path)
    try:
        if isinstance(entry, Value):
            return _value(entry, path)
        if isinstance(entry, File):
            return _file(entry, root)
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    except OSError as error:
        return Outcome(entry.path, "", f"cannot be put back: {error.strerror}")
    return Outcome(entry.path, "as it was")


def _value(entry: Value, path: Path) -> Outcome:
    now = places.read_value(path)
    written = now if entry.written is None else entry.written
    # A file that reads empty was cut short between two calls.
    if now and now != entry.before and shown(now) != shown(written):
        back = f"echo '{shown(entry.before)}' | sudo tee {entry.path}"
        return Outcome(entry.path, "", f"{_SINCE}: {shown(now)}; to have it back: {back}")
    if now != entry.before:
        places.write_value(path, entry.restores)
        now = places.read_value(path)
    problem = "" if now == entry.before else f"it was {shown(entry.before)}, it is {shown(now)}"
    return Outcome(entry.path, shown(now), problem)


def _file(entry: File, root: Path) -> Outcome:
    now = places.read_file(root, entry.path)
    if entry.written is not None and now.before not in (entry.before, entry.written):
        return Outcome(entry.path, "", f"{_SINCE}: take out by hand what preflight wrote")
    was = File(entry.path, entry.before, entry.mode, entry.uid, entry.gid)
    places.put_file(root, was)
    same = places.read_file(root, entry.path) == was
    return Outcome(entry.path, "as it was", "" if same else "it is not as it was")
