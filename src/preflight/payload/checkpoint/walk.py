"""The files below a path. Links are told and not followed."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

_MOST_FILES = 500_000
#: Folders in which nothing is a checkpoint.
_NOT_WALKED = {".git", "__pycache__", "node_modules", ".venv", "site-packages", "wandb"}


class Entry(NamedTuple):
    """A file. `links_to`: what a symbolic link says; `leads`: inside, outside or nowhere;
    `target`: where inside."""

    path: str
    size: int
    modified_s: float
    links_to: str = ""
    leads: str = ""
    target: str = ""


class Walked(NamedTuple):
    """All of them, relative to `root`; `trouble`: why some are missing."""

    root: str
    files: list[Entry]
    folders: list[str]
    trouble: str


def walk(path: str) -> Walked:
    """OSError where there is no such path."""
    real = os.path.realpath(path)
    state = os.stat(real)
    if not stat.S_ISDIR(state.st_mode):
        name = os.path.basename(path.rstrip("/")) or os.path.basename(real)
        here = Entry(os.path.basename(real), state.st_size, state.st_mtime)
        trouble = "" if stat.S_ISREG(state.st_mode) else f"{name} is no plain file"
        return Walked(os.path.dirname(real), [here] if not trouble else [], [], trouble)
    files: list[Entry] = []
    folders: list[str] = []
    troubles: list[str] = []
    for here_at, below, names in os.walk(real, onerror=lambda e: troubles.append(_told(e))):
        below[:] = sorted(set(below) - _NOT_WALKED)
        for name in [*below, *names]:
            full = os.path.join(here_at, name)
            relative = os.path.relpath(full, real)
            if name in below and not os.path.islink(full):
                folders.append(relative)
                continue
            entry = _entry(full, relative, real, troubles)
            if entry is not None:
                files.append(entry)
        if len(files) > _MOST_FILES:
            troubles.append(f"only {_MOST_FILES:,} of its files were looked at")
            break
    return Walked(real, sorted(files), sorted(folders), "; ".join(troubles[:5]))


def _entry(full: str, relative: str, root: str, troubles: list[str]) -> Entry | None:
    try:
        state = os.lstat(full)
        if stat.S_ISLNK(state.st_mode):
            target = os.path.realpath(full)
            inside = target == root or target.startswith(root + os.sep)
            leads = ("inside" if inside else "outside") if os.path.exists(target) else "nowhere"
            there = os.path.relpath(target, root) if leads == "inside" else ""
            return Entry(relative, 0, state.st_mtime, os.readlink(full), leads, there)
        if stat.S_ISREG(state.st_mode):
            return Entry(relative, state.st_size, state.st_mtime)
    except OSError as error:
        troubles.append(_told(error))
    return None


def _told(error: OSError) -> str:
    return f"{error.filename}: {error.strerror or error}"
