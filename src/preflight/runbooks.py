"""The runbooks: what a person does about a failure, found by name or by words of a symptom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from math import log
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
    return Runbook(head["id"], head["title"], tuple(head["symptoms"]), parts[2].strip("\n") + "\n")


#: Words that say nothing of a symptom.
_NOISE = frozenset(
    re.findall(
        r"\w+",
        "a about after an and are at be been but by can d did do does for from get gets got "
        "had has have how i if in into is it its just keeps m my no not of off on or our s so "
        "t than that the their them then there they this to too very was we were what when "
        "where which while why will with you your during since still always again without "
        "wont dont cannot isn doesn take takes taking shows show getting turned turns became "
        "becomes ",
    )
)
#: Written together, shortened, or said otherwise -> as the runbooks have it.
_SAME = {
    "allreduce": "all reduce", "ckpt": "checkpoint", "ckpts": "checkpoint",
    "dataloader": "data loader", "lr": "learning rate", "mem": "memory", "oom": "out of memory",
    "gnorm": "gradient norm", "gradnorm": "gradient norm", "usage": "utilisation",
    "wandering": "swings", "oscillates": "swings", "oscillating": "swings", "stuck": "hangs",
    "freezes": "hangs", "frozen": "hangs", "halted": "hangs", "stalls": "hangs",
    "decrease": "fall", "decreasing": "fall", "improving": "fall", "improve": "fall",
    "dropping": "fall", "zero": "0", "zeros": "0", "identical": "same", "node": "host",
    "nodes": "host", "machine": "host", "machines": "host", "server": "host", "servers": "host",
    "infinite": "inf", "2x": "slow", "3x": "slow", "x2": "slow", "x3": "slow", "10x": "slow",
    "x10": "slow", "cards": "gpu", "card": "gpu", "fell": "fallen", "increases": "rises",
    "increasing": "rises", "grows": "rises", "growing": "rises", "worker": "workers",
    "crash": "killed", "crashed": "killed", "timed": "timeout", "long": "slow", "longer": "slow",
    "forever": "slow", "bigger": "rises", "going": "fall", "go": "fall", "constant": "flat",
    "iteration": "step", "iterations": "step", "repetitive": "repeats",
    "deadlock": "hangs", "deadlocks": "hangs", "deadlocked": "hangs", "pytorch": "torch",
    "job": "training", "jobs": "training", "generation": "generates",
}  # fmt: skip
#: Said in several words, of which each alone says something else -> one word.
_SAID = (
    (
        re.compile(r"\b(?:can ?not|can'?t|could not|impossible to) (?:be )?(?:killed|kill)\b"),
        "unkillable",
    ),
    (re.compile(r"\b(?:won'?t|does ?n[o']t|will not|refuses to) die\b"), "unkillable"),
    (re.compile(r"\bkill -9\b"), "unkillable"),
    (re.compile(r"\bgpu util\b"), "gpu utilization"),
    (re.compile(r"\bvram\b"), "gpu memory"),
)
#: Words that nearly every trouble has in it: a symptom of these alone may mean many things.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "bad broken crash everything nothing error fail gpu issue job killed perform problem "
        "program python run slow step stop train training trouble use work wrong",
    )
)
#: Endings that other forms of a word have; what is left has at least three letters.
_ENDINGS = re.compile(r"(?<=[a-z]{3})(?:i[sz]ations?|i[sz]ed?|ations?|ings?|ed|est|er|es|s|e|ly)$")
#: The best runbook has at least this share of what was asked, weighed by how rare the words are.
_ENOUGH = 0.55
#: A word written wrongly, or only begun, counts less than the word itself.
_NEARLY = 0.8
#: A phrase of which one word alone was said, and no more than this share of it, was not meant:
#: nv_get_p2p_free_callback by `p2p`.
_HARDLY = 0.4
#: So many letters may follow a stem that a word begins with: AssertionError is no assert.
_LONGER = 4
#: What a word counts that no runbook has; the rarest known one counts 1.
_UNKNOWN = 0.8


def search(words: str, most: int = 3) -> list[Runbook]:
    """The runbooks that fit the words, the best first; none where most words mean nothing here."""
    index = _index()
    # A number that stands in no runbook is a value, of which it says nothing.
    meant = [(word, index.meant(word)) for word in sorted(_stems(words))]
    wanted = [stems for word, stems in meant if stems or not word.isdigit()]
    scored = [(index.score(wanted, number), book) for number, book in enumerate(load().values())]
    scored = sorted((pair for pair in scored if pair[0] >= _ENOUGH), key=_by_score)
    best = scored[0][0] if scored else 0.0
    return [book for score, book in scored[:most] if score >= 0.75 * best]


def vague(words: str) -> bool:
    """Whether all that the words tell is common to many symptoms: `my training is slow`."""
    stems = _stems(words)
    return bool(stems) and stems <= {_stem(word) for word in _COMMON}


def _by_score(pair: tuple[float, Runbook]) -> tuple[float, str]:
    # Sums over sets of words differ in the last digits from one process to the next.
    return -round(pair[0], 9), pair[1].id


class _Index(Struct):
    """The phrases of each runbook as stems, and how much each stem tells."""

    phrases: list[list[frozenset[str]]]
    weights: dict[str, float]

    def meant(self, word: str) -> dict[str, float]:
        """The stems of the runbooks that may be meant, with what each counts; none if unknown."""
        if word in self.weights:
            return {word: self.weights[word]}
        return {stem: _NEARLY * w for stem, w in self.weights.items() if _near(word, stem)}

    def score(self, wanted: Sequence[dict[str, float]], number: int) -> float:
        """The share of the wanted words in the best phrase; the whole runbook counts a little, and
        so does how much of the phrase was said."""
        whole = sum(min(meant.values(), default=_UNKNOWN) for meant in wanted)
        if not whole:
            return 0.0
        phrases = self.phrases[number]
        anywhere = _share(wanted, frozenset().union(*phrases)) / whole
        best = 0.0
        for phrase in phrases:
            found = _share(wanted, phrase)
            matched = sum(1 for meant in wanted if not phrase.isdisjoint(meant))
            said = found / sum(self.weights[stem] for stem in phrase) if phrase else 0.0
            if matched == 1 and said < _HARDLY:
                continue
            best = max(best, 0.75 * found / whole + 0.15 * min(said, 1.0))
        return best + 0.1 * anywhere if best else 0.0


def _share(wanted: Sequence[dict[str, float]], stems: frozenset[str]) -> float:
    return sum(
        max((weight for stem, weight in meant.items() if stem in stems), default=0.0)
        for meant in wanted
    )


@cache
def _index() -> _Index:
    phrases = [
        [stems for text in (*book.symptoms, book.title, book.id) if (stems := _stems(text))]
        for book in load().values()
    ]
    counts: dict[str, int] = {}
    for of_book in phrases:
        for stem in frozenset().union(*of_book):
            counts[stem] = counts.get(stem, 0) + 1
    rare = log(1 + len(phrases))
    return _Index(phrases, {stem: log((1 + len(phrases)) / n) / rare for stem, n in counts.items()})


@cache
def _stems(text: str) -> frozenset[str]:
    """The words of a text without their endings, as far as they tell anything."""
    text = text.lower()
    for said, word in _SAID:
        text = said.sub(word, text)
    return frozenset(_stem(word) for word in _spelt_out(re.findall(r"[a-z0-9]+", text)))


def _spelt_out(words: Iterable[str]) -> Iterable[str]:
    for word in words:
        yield from (each for each in _SAME.get(word, word).split() if each not in _NOISE)


def _stem(word: str) -> str:
    short = _ENDINGS.sub("", word[:-1] if re.fullmatch(r"[a-z]{3,}[^s]s", word) else word)
    # stopped, running: the doubled letter is the ending's; falling, missing: it is the word's.
    doubled = len(short) > 3 and short[-1] == short[-2] and short[-1] not in "lsz"
    return short[:-1] if doubled and short != word else short


def _near(word: str, stem: str) -> bool:
    """Whether the word is the stem's beginning, or differs from it by one letter left out, put in,
    replaced or exchanged with its neighbour."""
    if len(word) < 4 or len(stem) < 4 or word[0].isdigit():
        return False
    if stem.startswith(word) or (
        len(stem) > 4 and word.startswith(stem) and len(word) <= len(stem) + _LONGER
    ):
        return True
    same = 0
    while same < min(len(word), len(stem)) and word[same] == stem[same]:
        same += 1
    mine, theirs = word[same:], stem[same:]
    return (
        mine[1:] in (theirs, theirs[1:])
        or mine == theirs[1:]
        or (mine[:2] == theirs[1::-1] and mine[2:] == theirs[2:])
    )
