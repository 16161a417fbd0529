"""Whole hosts: text -> recognised, read, judged by every check. What must hold of the verdict.

`damaged hosts`: a mutated text is judged without an exception, or refused as input.

`cut hosts`: of a text that fails, a part from its beginning
- that the transport says is cut never reads PASS;
- that still has every line on which the failures rest, and 40 lines more, still FAILs or is ERROR;
- of nvidia-smi's XML, or of a whole `nvidia-smi -q`, never reads PASS: its end is missing.
A log or a list that stops at a whole line before the evidence is a shorter log: nothing in it tells
what would have come, and it may pass. That is why a capture keeps whether its end was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from random import Random

from msgspec.structs import replace

from fuzz.mutations import mutated
from fuzz.seeds import texts
from fuzz.targets import Target
from preflight.collect import examine
from preflight.errors import UsageError
from preflight.judge.load import DOMAINS, load
from preflight.model import Check, HostReport, Raw, Status
from preflight.recognise import recognise

NAMES = ("damaged hosts", "cut hosts")
#: Lines behind the evidence that a cut leaves: a GPU or an event goes on after its first line.
MARGIN = 40
#: Characters of a sample: every check is judged on it, many thousand times.
MAX_CHARS = 80_000
#: Divides a text and the place of its cut in the one string that a trial takes.
_MARK = "\x1d"


class BrokenPromiseError(Exception):
    """A verdict that may not be."""


@cache
def _checks() -> Sequence[Check]:
    return load(DOMAINS).checks


def judged(raws: Sequence[Raw]) -> HostReport:
    return examine("input", raws, _checks())


@cache
def samples() -> tuple[tuple[str, tuple[Raw, ...]], ...]:
    """Texts of the samples that are read, with what they are recognised as."""
    return tuple((text, raws) for _, text, raws in texts() if raws and len(text) <= MAX_CHARS)


@cache
def failing() -> tuple[tuple[str, int], ...]:
    """Texts that FAIL, and the last line on which that rests."""
    found = []
    for text, raws in samples():
        report = judged(raws)
        if report.verdict is Status.FAIL and len(raws) == 1:
            failed = [one for one in report.results if one.status is Status.FAIL]
            lines = [each.line or 0 for one in failed for each in one.evidence]
            found.append((text, max(lines, default=len(text))))
    return tuple(found)


def inputs(name: str, rng: Random) -> Iterator[str]:
    """Without end."""
    while True:
        if name == "damaged hosts":
            yield mutated(rng, rng.choice(samples())[0])
        else:
            which = rng.randrange(len(failing()))
            yield f"{which}{_MARK}{rng.randrange(1, len(failing()[which][0]))}"


def target(name: str) -> Target:
    read = _damaged if name == "damaged hosts" else partial(_cut, failing())
    # It is recognised, read, judged by all checks, and the evidence is looked up.
    return Target(name, read, (UsageError,), seconds_per_mb=4.0, least_s=0.3)


def _damaged(text: str) -> None:
    judged(recognise(text.encode("utf-8", "surrogatepass"), "input"))


def _shows_its_end(text: str) -> bool:
    """Whether the text is of a kind that tells by itself when a part is missing."""
    whole_q = "Attached GPUs  " in text and "    Product Name  " in text
    return whole_q or "<nvidia_smi_log" in text


def _cut(known: Sequence[tuple[str, int]], told: str) -> None:
    which, _, place = told.partition(_MARK)
    text, evidence = known[int(which)]
    part = text[: int(place)]
    raws = recognise(part.encode("utf-8", "surrogatepass"), "input")
    if judged([replace(raw, truncated=True) for raw in raws]).verdict is Status.PASS:
        raise BrokenPromiseError("told to be cut, and PASS")
    verdict = judged(raws).verdict
    if _shows_its_end(text) and verdict is Status.PASS:
        raise BrokenPromiseError("a report without its end, and PASS")
    bad = (Status.FAIL, Status.ERROR)
    if part.count("\n") >= evidence + MARGIN and verdict not in bad:
        raise BrokenPromiseError(f"the evidence of line {evidence} is there, and {verdict.value}")
