"""Whether all is there: weights, what a resume takes, a file of every rank, the last file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import product
from math import prod

import msgspec

from preflight.diagnosis.checkpoint.damage import Reason, seen
from preflight.diagnosis.checkpoint.found import Found
from preflight.diagnosis.checkpoint.layouts import Layout, compiled, matches

#: Ranks of a grid that are named; files that a grid may have.
_MOST_NAMED, _MOST_CELLS = 4, 200_000
#: What the outermost dict of a torch file says of a list or dict without entries.
_EMPTY = ("list of 0", "dict of 0", "tuple of 0", "NoneType None")
WORDS = {
    "optimizer": "the optimizer's state", "scheduler": "the scheduler's state",
    "rng": "the states of random numbers", "data": "the position in the data",
}  # fmt: skip


def parts(found: Found, layout: Layout) -> dict[str, bool]:
    """Of what a resume takes, by name: whether it is there."""
    return {part: any(_there(found, way) for way in ways) for part, ways in layout.resume.items()}


def has_weights(found: Found, layout: Layout) -> bool:
    """Whether all files of one of the ways to have them are there."""
    return any(all(_there(found, one) for one in way) for way in layout.weights)


def _there(found: Found, way: str) -> bool:
    kind, _, glob = way.rpartition(":")
    if not kind:
        return any(matches(way, name) for name in found.files)
    if kind == "key":
        tops = [one.top for one in found.files.values()]
        return any(fnmatchcase(key.lower(), glob) and text not in _EMPTY
                   for top in tops for key, text in top.items())  # fmt: skip
    if any(fnmatchcase(one.name, glob) for one in found.tensors):
        return True
    others = [one.told.get("others", "") for one in found.files.values()]
    return any(fnmatchcase(name, glob) for text in others for name in text.split("\n"))


def missing(found: Found, layout: Layout) -> list[Reason]:
    """What ought to be there and is not."""
    told = [*_last(found, layout), *_indexed(found), *_grids(found, layout)]
    told += _of_two_steps(found, layout)
    if not has_weights(found, layout) and not told:
        ways = " or ".join(dict.fromkeys(" and ".join(way) for way in layout.weights[:3]))
        told.append(Reason("incomplete", f"there are no weights in it: {ways} is missing",
                           "take an older checkpoint"))  # fmt: skip
    return told


def _of_two_steps(found: Found, layout: Layout) -> Iterator[Reason]:
    """What is in it is of another step than its name says: files of two saves."""
    for name, key in layout.says.items():
        said = found.files[name].told.get(key, "") if name in found.files else ""
        if found.step is not None and said.isdecimal() and int(said) != found.step:
            yield Reason(
                "damaged", f"{name} is of step {int(said):,}, and the folder of {found.step:,}",
                "copy it again from where it was saved: files of two saves lie in it",
                seen(name, f"{key}: {said}"),
            )  # fmt: skip


def _last(found: Found, layout: Layout) -> Iterator[Reason]:
    """The file that is written last."""
    if not layout.last or any(_there(found, one) for one in layout.last):
        return
    name = layout.last[0]
    unfinished = next((one for one in found.files if one.endswith(f"{name}.tmp")), "")
    what = f"; {unfinished} is its beginning" if unfinished else ""
    yield Reason(
        "incomplete", f"{name} is missing, which is written last: the save did not end{what}"
        f"{_ranks_here(found)}", "take an older checkpoint; where every host has a disk of its "
        "own, gather the files of all hosts in one folder first",
    )  # fmt: skip


def _ranks_here(found: Found) -> str:
    """Of a distributed checkpoint: the shards of which ranks this host sees."""
    named = [compiled("**/__{rank}_{part}.distcp").fullmatch(one) for one in found.files]
    ranks = sorted({int(one["rank"]) for one in named if one})
    if not ranks:
        return ""
    many = "ranks" if len(ranks) > 1 else "rank"
    return f", or it is on another host: this one has shards of {many} {_span(ranks)}"


def _span(ranks: Sequence[int]) -> str:
    if len(ranks) > 1 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"{ranks[0]} to {ranks[-1]}"
    return ", ".join(map(str, ranks[:8])) + (" ..." if len(ranks) > 8 else "")


def _indexed(found: Found) -> Iterator[Reason]:
    """Files and tensors that an index names."""
    for name, file in found.files.items():
        if not name.endswith(".index.json"):
            continue
        listed = _map(file.told.get("weight_map", ""))
        if not listed:
            yield Reason("damaged", f"{name}: it names no files", "copy it again", seen(name, ""))
            continue
        folder = name.rpartition("/")[0]
        base = f"{folder}/" if folder else ""
        files = sorted(set(listed.values()))
        gone = [one for one in files if base + one not in found.files]
        if gone:
            here = f"this host sees {len(files) - len(gone)} of {len(files)} shards"
            yield Reason("incomplete", f"{name} names {_some(gone)}, which {_are(gone)} not there: "
                         f"{here}", "fetch what is missing, or gather the files of all hosts",
                         seen(name, f"weight_map: {gone[0]}"))  # fmt: skip
        yield from _tensors(found, name, base, listed)


def _tensors(found: Found, index: str, base: str, listed: dict[str, str]) -> Iterator[Reason]:
    """Of files that are there and could be read: whether they hold what the index says."""
    prefix = f"{found.folder}/" if found.folder else ""
    held: dict[str, set[str]] = defaultdict(set)
    for one in found.tensors:
        held[one.file].add(one.name)
    lost = [name for name, file in listed.items()
            if prefix + base + file in held and name not in held[prefix + base + file]]  # fmt: skip
    if lost:
        yield Reason("incomplete", f"{index}: {_some(lost)} {_are(lost)} not in the files that it "
                     "names", "save the model again: index and files are of two saves",
                     seen(index, f"weight_map: {lost[0]} -> {listed[lost[0]]}"))  # fmt: skip


def _map(text: str) -> dict[str, str]:
    try:
        return msgspec.json.decode(text, type=dict[str, str]) if text else {}
    except msgspec.DecodeError:
        return {}


def _grids(found: Found, layout: Layout) -> Iterator[Reason]:
    for pattern in layout.grids:
        gone, due = grid(pattern, tuple(found.files), _told_ranks(found, layout))
        if gone:
            there = due - len(gone)
            yield Reason(
                "incomplete", f"{_some(gone)} {_are(gone)} missing: this host sees {there:,} of "
                f"{due:,} files", "gather the files of all hosts in one folder; else take an "
                "older checkpoint", seen(found.path or found.folder, gone[0]),
            )  # fmt: skip


def _told_ranks(found: Found, layout: Layout) -> dict[str, int]:
    """How many ranks a torch file says that there were."""
    told = {}
    for name, key in layout.ranks.items():
        texts = [one.top.get(key, "") for one in found.files.values()]
        counts = [
            int(text[4:]) for text in texts if text.startswith("int ") and text[4:].isdecimal()
        ]
        if counts and 0 < max(counts) < _MOST_CELLS:
            told[name] = max(counts)
    return told


def grid(pattern: str, files: Sequence[str], ranks: dict[str, int]) -> tuple[list[str], int]:
    """Files of the grid that are missing, and how many it has. Numbers that the names themselves
    do not tell (`_of`), nor `ranks`, go to the highest that is there."""
    found = [(name, one) for name in files if (one := compiled(pattern).fullmatch(name))]
    if not found:
        return [], 0
    names = [one for one in compiled(pattern).groupindex if not one.endswith("_of")]
    cells = {tuple(int(one[name]) for name in names) for _, one in found}
    spans = []
    for at, name in enumerate(names):
        first = 1 if name.endswith("1") else min(0, min(cell[at] for cell in cells))
        counts = [int(one[f"{name}_of"]) for _, one in found if f"{name}_of" in one.groupdict()]
        most = max(cell[at] for cell in cells) - first + 1
        spans.append(range(first, first + max([ranks.get(name, 0), *counts, most])))
    if prod(map(len, spans)) > _MOST_CELLS:
        return [], 0
    lacking = sorted(set(product(*spans)) - cells)
    return [_filled(found[0], names, cell) for cell in lacking], prod(map(len, spans))


def _filled(like: tuple[str, object], names: Sequence[str], cell: Sequence[int]) -> str:
    """The name that the missing file would have: that of one which is there, with its numbers."""
    import re

    text, match = like
    assert isinstance(match, re.Match)
    numbers = sorted(zip(map(match.span, names), cell, strict=True), reverse=True)
    for (begin, end), number in numbers:
        text = f"{text[:begin]}{number:0{end - begin}d}{text[end:]}"
    return text


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
