"""What was tried in a directory (payload/storage/proof.py): lines of a bench of storage."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from preflight.facts.storage import Proof
from preflight.model import Known, Missing

#: Fields of a line that are words, and such as are numbers.
_WORDS = (
    "rename", "fsync", "directory_fsync", "read_back", "flock", "posix_lock", "direct", "unnamed",
    "map", "symlink", "case",
)  # fmt: skip
_COUNTS, _TIMES = ("renames", "fsync_n"), ("fsync_s", "fsync_most_s")
_UNTOLD = Missing("unreadable", "its line does not tell it")
_ALONE = Missing(
    "not-asked", "one host tried it; others look too with --hosts, and --dir on a share of theirs"
)
#: Errors of trials that were not made, which tell nothing of what was to be tried.
_NOT_MADE = {
    "ENOSPC": "it could not be tried: no space is left there",
    "EDQUOT": "it could not be tried: the quota is exceeded there",
    "EROFS": "it could not be tried: the file system became read-only",
}
_UNTIMED = Missing("not-applicable", "no fsync came back")
#: Kinds of lines that say why nothing was tried.
_REFUSED = ("busy", "cannot", "hung", "killed")


def proofs_in(text: str, probe: str) -> tuple[Proof, ...]:
    """One for each line of that kind; `begin` tells where. Lines that are none are passed over:
    the bench's own reader tells of them."""
    begin: dict[str, Any] = {}
    found: list[Proof] = []
    for number, told in _lines(text):
        if told.get("kind") == "begin":
            begin = told
        elif told.get("kind") == "proof":
            found.append(_proof(told, begin, number, probe))
        elif told.get("kind") == "seen" and found:
            found[-1] = replace(
                found[-1],
                other_hosts=_word(told.get("other_hosts")),
                other_hosts_s=_time(told.get("other_hosts_s"), _UNTOLD),
            )
    return tuple(found)


def refused(text: str) -> str:
    """Why a bench wrote nothing, in its words; empty where it did. Without fio it only measures
    nothing."""
    whys = (told for _, told in _lines(text) if told.get("kind") in _REFUSED)
    return next((str(told.get("text") or "it did not begin") for told in whys), "")


def _lines(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if '"kind"' not in line:
            continue
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(told, dict):
            yield number, told


def _proof(told: dict[str, Any], begin: dict[str, Any], line: int, probe: str) -> Proof:
    timed = _UNTIMED if isinstance(told.get("fsync"), str) else _UNTOLD
    fields: dict[str, Any] = {name: _word(told.get(name)) for name in _WORDS}
    fields |= {name: _count(told.get(name), timed) for name in _COUNTS}
    fields |= {name: _time(told.get(name), timed) for name in _TIMES}
    where = told.get("mount") or begin.get("mount") or begin.get("dir")
    kind = told.get("fs") or begin.get("fs")
    return Proof(str(where or "directory"), str(kind or ""), other_hosts=_ALONE,
                 other_hosts_s=_ALONE, line=line, probe=probe, **fields)  # fmt: skip


def _word(value: object) -> Known[str]:
    if value in _NOT_MADE:
        return Missing("unreadable", _NOT_MADE[str(value)])
    return value[:200] if isinstance(value, str) and value else _UNTOLD


def _count(value: object, missing: Missing) -> Known[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else missing


def _time(value: object, missing: Missing) -> Known[float]:
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if known and math.isfinite(value) else missing  # type: ignore[arg-type]
