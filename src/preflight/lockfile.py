"""The lock: which versions a run was found good with, since when, and why.

JSON with an entry a line: a person writes notes into it, version control shows what changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight import __version__, strict_yaml
from preflight.errors import UsageError

SCHEMA = "preflight.lock/1"
_MARK = b'"preflight.lock/'
_HINT = "preflight versions --lock FILE writes one; notes in it are kept"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_KEYS = ("kind", "name", "value", "since", "note")


class Locked(Struct, frozen=True):
    """One entry: a package, a driver, a setting. `since`: the date from which it has this value."""

    kind: str
    name: str
    value: str
    since: str = ""
    note: str = ""

    def told(self) -> str:
        """The value with its date and note: what a person wants to know before changing it."""
        since = f" since {self.since}" if self.since else ""
        return f"{self.value}{since}" + (f": {self.note}" if self.note else "")


def is_lock(data: bytes, name: str) -> bool:
    """Whether a file is a lock, sound or not."""
    return _MARK in data[:100_000] or name.endswith(".lock.json")


def read(data: bytes, name: str) -> list[Locked]:
    """The entries; UsageError with file and line where it is no lock."""
    try:
        document = strict_yaml.load(data.decode("utf-8"), name)
    except UnicodeDecodeError:
        raise UsageError(f"{name}: is not UTF-8", _HINT) from None
    except UsageError as error:
        raise UsageError(error.what, _HINT) from None
    if not isinstance(document, dict) or not isinstance(document.get("entries"), list):
        raise UsageError(f"{name}:1: expected an object with schema and entries", _HINT)
    if document.get("schema") != SCHEMA:
        told = str(document.get("schema"))[:60]
        raise UsageError(f"{name}:1: its schema is {told!r}, and {SCHEMA} is read", _HINT)
    found = [_entry(entry, name) for entry in document["entries"]]
    _once(found, document["entries"], name)
    return found


def _entry(entry: Any, name: str) -> Locked:
    where = f"{name}:{getattr(entry, 'line', 1)}"
    if not isinstance(entry, dict):
        raise UsageError(f"{where}: expected an entry with kind, name, value: {entry!r:.60}", _HINT)
    for key, value in entry.items():
        if key not in _KEYS:
            raise UsageError(f"{where}: unknown key {key!r}; there is {', '.join(_KEYS)}", _HINT)
        if not isinstance(value, str):
            raise UsageError(f"{where}: {key} is a text in quotes, not {value!r}", _HINT)
    for key in _KEYS[:3]:
        if key not in entry or (key != "value" and not entry[key]):
            raise UsageError(f"{where}: {key} is missing", _HINT)
    if entry.get("since") and not _DATE.fullmatch(entry["since"]):
        raise UsageError(f"{where}: since is a date such as 2026-01-31: {entry['since']!r}", _HINT)
    return Locked(**entry)


def _once(found: Sequence[Locked], entries: Sequence[Any], name: str) -> None:
    seen: dict[tuple[str, str], int] = {}
    for one, entry in zip(found, entries, strict=True):
        line = getattr(entry, "line", 1)
        if (one.kind, one.name) in seen:
            first = seen[one.kind, one.name]
            told = f"{one.kind} {one.name} stands already at line {first}"
            raise UsageError(f"{name}:{line}: {told}", "take one of both out")
        seen[one.kind, one.name] = line


def merged(now: Iterable[Locked], before: Iterable[Locked], today: str) -> list[Locked]:
    """Today's entries. One whose value has not changed keeps its date and its note."""
    old = {(one.kind, one.name): one for one in before}
    found: list[Locked] = []
    for one in now:
        was = old.get((one.kind, one.name))
        kept = was is not None and was.value == one.value
        found.append(was if was and kept else replace(one, since=today))
    return found


def written(entries: Iterable[Locked]) -> str:
    """The text of a lock."""
    lines = ",\n".join(f"  {_line(one)}" for one in entries)
    head = f'{{\n "schema": "{SCHEMA}",\n "preflight": "{__version__}",\n "entries": [\n'
    return f"{head}{lines}\n ]\n}}\n"


def _line(one: Locked) -> str:
    return json.dumps({key: getattr(one, key) for key in _KEYS})


def old(entries: Iterable[Locked], today: str, months: int) -> Iterator[Locked]:
    """Those whose value has been the same for longer than so many months."""
    for one in entries:
        if one.since and _months(today) - _months(one.since) > months:
            yield one


def _months(date: str) -> int:
    return int(date[:4]) * 12 + int(date[5:7])
