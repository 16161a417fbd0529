"""Hosts that share a directory begin each part of a pattern together and tell each other what they
reached: each has a file in its own directory of the run, which it replaces, as in seen.py."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from typing import Any

from .seen import COMES_S, FOLDERS, SEES_S
from .watched import within

#: Until the slowest has done its part (one that does not come is waited for once); between looks.
MEETS_S, LOOKS_S = 90.0, 0.05
_FILE, _LAST = "met", 1 << 30
_MOST_BYTES = 1 << 20
Words = dict[str, Any]


class Meeting:
    """`folder` is this host's own in `parent`; `job` a word that hosts of this run have alone.
    `missed`: why they are no more together, "" while they are."""

    def __init__(self, parent: str, folder: str, job: str, hosts: int, name: str = "") -> None:
        self.parent, self.folder, self.job, self.hosts = parent, folder, job, hosts
        self.missed, self._step = "", 0
        self._told: dict[str, Words] = {}
        self._known: set[str] = set()
        # It may be held open, and called by its number (place.py).
        self.own = os.path.basename(os.path.realpath(folder))  # noqa: PTH119
        self._name, self._met = name or socket.gethostname(), False
        self._lost = False
        self._put()

    def meet(self, part: str = "", words: Words | None = None) -> list[Words]:
        """Wait for all, with what this host has to tell of a part that is done: what each tells of
        it, in the same order everywhere, each with `folder` and `host`. Empty where hosts are no
        more together."""
        if self.missed:
            return []
        self._step += 1
        if part:
            self._told[part] = words or {}
        self._put()
        wait_s = MEETS_S if self._met else COMES_S
        within(wait_s + SEES_S, "other hosts were waited for")
        told = self._all(wait_s)
        self._met = True
        if len(told) < self.hosts:
            self.missed, self._lost = f"{len(told)} of {self.hosts} hosts came in time", True
        return [
            {**one["told"].get(part, {}), "host": one["host"], "folder": name}
            for name, one in sorted(told.items())
        ]

    def leave(self, why: str = "this host has failed") -> None:
        """Nobody is to wait for this host."""
        self._step, self.missed = _LAST, self.missed or why
        with contextlib.suppress(OSError):
            self._put()

    def stay(self) -> None:
        """Until all others are through as well, or gone: one that is slow to look finds here what
        it waits for. Then this host's directory may go."""
        self.leave()
        if not self._met or self._lost:
            return
        within(MEETS_S + SEES_S, "other hosts were waited for")
        until = time.monotonic() + MEETS_S
        while time.monotonic() < until and any(map(self._is_at_work, self._folders())):
            time.sleep(LOOKS_S)

    def _is_at_work(self, folder: str) -> bool:
        words = {} if folder == self.own else _read(f"{self.parent}/{folder}/{_FILE}")
        return words.get("job") == self.job and words["step"] < _LAST

    def _put(self) -> None:
        """Beside it, then in its place; a reader sees one of them whole."""
        path = f"{self.folder}/{_FILE}"
        words = {"job": self.job, "step": self._step, "host": self._name, "told": self._told}
        fd = os.open(f"{path}.next", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(words, file)
            file.flush()
            os.fsync(fd)
        os.rename(f"{path}.next", path)  # noqa: PTH104

    def _all(self, within_s: float) -> dict[str, Words]:
        """By directory, those who have come so far. Who has come is not looked at again; who came
        before and is gone does no more, and is not waited for."""
        until, come = time.monotonic() + within_s, dict[str, Words]()
        while True:
            there = self._folders()
            gone = self._known - set(there) if there else set()
            come |= {name: {"told": {}, "host": ""} for name in gone - set(come)}
            for name in there:
                words = {} if name in come else _read(f"{self.parent}/{name}/{_FILE}")
                if words.get("job") == self.job and words["step"] >= self._step:
                    come[name] = words
                    self._known.add(name)
            if len(come) >= self.hosts or time.monotonic() > until:
                return come
            time.sleep(LOOKS_S)

    def _folders(self) -> list[str]:
        with contextlib.suppress(OSError), os.scandir(self.parent) as entries:
            return [one.name for one in entries if one.name.startswith(FOLDERS)]
        return []


def _read(path: str) -> Words:
    """Empty where there is none, or none any more."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return {}
    try:
        with os.fdopen(fd, "rb", closefd=True) as file:
            words = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError):
        return {}
    whole = isinstance(words, dict) and isinstance(words.get("step"), int)
    return words if whole and isinstance(words.get("told"), dict) else {}
