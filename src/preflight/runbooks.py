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
#: Of the words asked for, weighed by how rare they are, this share must be in one symptom or title.
_ENOUGH = 0.5


def search(words: str, most: int = 3) -> list[Runbook]:
    """The runbooks of which one symptom or the title fits the words, the best first."""
    wanted = _words(words)
    books = list(load().values())
    scored = [(_score(wanted, book, _weights(tuple(books))), book) for book in books]
    scored = sorted((pair for pair in scored if pair[0] >= _ENOUGH), key=_by_score)
    best = scored[0][0] if scored else 0.0
    return [book for score, book in scored[:most] if score >= 0.7 * best]


def _by_score(pair: tuple[float, Runbook]) -> tuple[float, str]:
    return -pair[0], pair[1].id


@cache
def _weights(books: tuple[Runbook, ...]) -> dict[str, float]:
    """How much a word tells: one over the number of runbooks whose symptoms or title have it."""
    counts: dict[str, int] = {}
    for book in books:
        for word in frozenset().union(*map(_words, (*book.symptoms, book.title))):
            counts[word] = counts.get(word, 0) + 1
    return {word: 1 / count for word, count in counts.items()}


def _score(wanted: frozenset[str], book: Runbook, weights: dict[str, float]) -> float:
    """The best share of the wanted words in one symptom or the title; a little more where the
    symptom holds few other words. A word that no runbook has weighs as much as a rare one."""
    whole = sum(weights.get(word, 1.0) for word in wanted)
    if not whole:
        return 0.0
    scores = []
    for text in (*book.symptoms, book.title):
        found = wanted & _words(text)
        share = sum(weights[word] for word in found) / whole
        scores.append(share + 0.1 * len(found) / max(len(_words(text)), 1))
    return max(scores)


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower())) - _NOISE
