"""The runbooks: what a person does about a failure, found by name or by words of a symptom."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from msgspec import Struct

from preflight import datafiles, strict_yaml
from preflight.errors import UsageError


class Runbook(Struct, frozen=True):
    """One Markdown file; `symptoms` are phrases that a person would type."""

    id: str
    title: str
    symptoms: tuple[str, ...]
    body: str


@cache
def load() -> dict[str, Runbook]:
    """Every runbook by its id. UsageError where a file has no front matter."""
    paths = sorted((datafiles.root() / "runbooks").glob("*.md"))
    return {book.id: book for book in map(_read, paths)}


def _read(path: Path) -> Runbook:
    text = path.read_text(encoding="utf-8")
    parts = text.split("---\n", 2)
    if len(parts) != 3 or parts[0]:
        raise UsageError(f"runbooks/{path.name}: expected front matter between two lines ---")
    head = strict_yaml.load(parts[1], f"runbooks/{path.name}")
    if not isinstance(head, dict) or set(head) != {"id", "title", "symptoms"}:
        raise UsageError(f"runbooks/{path.name}: the front matter has id, title and symptoms")
    if head["id"] != path.stem:
        raise UsageError(f"runbooks/{path.name}: its id is {head['id']!r}, not the file's name")
    return Runbook(head["id"], head["title"], tuple(head["symptoms"]), parts[2].strip() + "\n")


#: Words that say nothing of a symptom.
_NOISE = frozenset(
    re.findall(r"\w+", "a an and are at be by for from has in is it my of on or the to was with")
)


def search(words: str, most: int = 3) -> list[Runbook]:
    """The runbooks that fit the words best; those with no word in common are left out."""
    wanted = _words(words)
    scored = [(_score(wanted, book), book) for book in load().values()]
    scored = sorted((pair for pair in scored if pair[0] > 0), key=_by_score)
    best = scored[0][0] if scored else 0.0
    return [book for score, book in scored[:most] if score * 2 >= best]


def _by_score(pair: tuple[float, Runbook]) -> tuple[float, str]:
    return -pair[0], pair[1].id


def _score(wanted: frozenset[str], book: Runbook) -> float:
    """The share of the words found in one symptom counts most, then in the title, then anywhere."""
    if not wanted:
        return 0.0
    shares = [len(wanted & _words(text)) / len(wanted) for text in (*book.symptoms, book.title)]
    anywhere = len(wanted & _words(book.body)) / len(wanted)
    return max(shares) + 0.3 * anywhere if max(shares) or anywhere >= 0.5 else 0.0


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower())) - _NOISE
