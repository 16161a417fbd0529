"""How frameworks lay checkpoints out, what flaws make of a file: checks/data/checkpoint_*.yaml."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal

from msgspec import Struct, convert

from preflight import datafiles, strict_yaml

Makes = Literal["damaged", "incomplete", "hostile", "unknown", "note"]


class Layout(Struct, frozen=True, forbid_unknown_fields=True):
    """A row; the head of the file explains the fields."""

    id: str
    title: str
    weights: tuple[tuple[str, ...], ...]
    step: str = ""
    each: str = ""
    known_by: tuple[str, ...] = ()
    only_named: bool = False
    resume: dict[str, tuple[str, ...]] = {}
    needs: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    grids: tuple[str, ...] = ()
    ranks: dict[str, str] = {}
    says: dict[str, str] = {}
    last: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def patterns(self) -> tuple[str, ...]:
        """Of all files that it speaks of."""
        inside = (one for ways in self.resume.values() for one in ways if ":" not in one)
        weights = (one for way in self.weights for one in way)
        return (*self.known_by, *weights, *inside, *self.grids, *self.last)


class Tracker(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that names the newest checkpoint, and what to type to name another."""

    file: str
    names: tuple[str, ...]
    write: str


class Layouts(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    rows: tuple[Layout, ...]
    trackers: tuple[Tracker, ...]
    leftovers: tuple[str, ...]


class FlawRow(Struct, frozen=True, forbid_unknown_fields=True):
    """What a kind of flaw makes of a checkpoint."""

    kind: str
    makes: Makes
    fix: str


class FlawTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    rows: tuple[FlawRow, ...]
    trailing_damages: tuple[str, ...]
    plain: tuple[str, ...]
    hostile: tuple[str, ...]
    doubtful: tuple[str, ...]


@cache
def layouts() -> Layouts:
    """All of them, the more particular first."""
    return convert(_document("checkpoint_layouts.yaml"), Layouts)


@cache
def flaw_table() -> FlawTable:
    """What flaws and globals make of a checkpoint."""
    return convert(_document("checkpoint_flaws.yaml"), FlawTable)


def _document(name: str) -> object:
    path = datafiles.root() / "checks" / "data" / name
    return strict_yaml.load(path.read_text(encoding="utf-8"), f"checks/data/{name}")


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of a row: * is anything but a slash, ** anything, {name} a number."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\{\w+\}|\[[^\]]+\])", pattern)
    return re.compile("".join(map(_part, parts)), re.DOTALL)


def _part(text: str) -> str:
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if text in known:
        return known[text]
    if text.startswith("{"):
        return rf"(?P<{text[1:-1]}>\d+)"
    return text if text.startswith("[") else re.escape(text)


def matches(pattern: str, path: str) -> bool:
    """Whether the whole path is as the pattern says."""
    return compiled(pattern).fullmatch(path) is not None


def named_like(name: str, globs: tuple[str, ...]) -> bool:
    """Whether a global is one of these."""
    return any(fnmatchcase(name, one) for one in globs)
