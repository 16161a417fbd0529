"""How lines of one shape are read, learned from the first of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf, nan

from msgspec import Struct, field
from msgspec.structs import replace

from preflight.logs.training.clock import Clock, clock_of
from preflight.logs.training.names import UNITS, Meant, meant
from preflight.logs.training.shape import Place, figures, place_of
from preflight.logs.training.styles import GRAMMARS, NUMBER, STYLES, Style

#: Columns of one shape; more are left out. A line longer than this is not of a step.
MOST_COLUMNS = 96
MOST_BYTES = 16_384
_BARE = {"nan": nan, "NaN": nan, "inf": inf, "Infinity": inf, "+inf": inf, "-inf": -inf,
         "+nan": nan, "-nan": nan, "-Infinity": -inf}  # fmt: skip
_RANK = re.compile(
    r"\s*(?:\[(?:rank|default)(?P<a>\d+)\]:|\[\d+,(?P<b>\d+)\]<std(?:out|err)>:|(?P<c>\d{1,5}): (?=\D)"
    r"|\[[Rr]ank (?P<d>\d+)\]|\(\w+ pid=(?P<e>\d+)[,)])"
)
_HOST = re.compile(r"(?P<host>[A-Za-z][\w.-]*\d[\w.-]*): ")


class Layout(Struct, frozen=True):
    """Of lines of one shape. `width`: figures of a line; `rank`: which of them is the rank's."""

    style: Style
    width: int
    places: tuple[Place, ...] = ()
    constants: dict[str, float] = field(default_factory=dict)  # written as nan or inf
    clock: Clock | None = None
    rank: int | None = None
    text: str = ""  # the name that a line of timers heads


def layout_of(line: bytes) -> Layout | None:
    """The style that the line tells; None where it is none of a step."""
    if len(line) > MOST_BYTES:
        return None
    text = line.decode("latin-1")
    for style in STYLES:
        if style.mark in line and (found := style.tells.search(text)):
            made = _layout(line, text, style, found)
            if made is not None:
                return made
    return None


def _layout(line: bytes, text: str, style: Style, found: re.Match[str]) -> Layout | None:
    made = Layout(style, len(figures(line)), clock=clock_of(line), rank=rank_figure(line, text))
    places: dict[str, Place] = {}
    constants: dict[str, float] = {}
    for name in ("step", "total"):
        if found.groupdict().get(name):
            _put(places, constants, line, Meant(name), found.start(name), found[name])
    if style.form in ("bar", "tqdm"):
        _bar(line, text, places, constants)
    begin = _begin(style, found)
    if style.form == "range":
        _range(line, text, begin, places, constants)
    elif style.form == "ranked":
        _ranked(line, text, begin, places)
    elif style.grammar != "none":
        _pairs(line, text, begin, style, places, constants)
    if style.form != "bar" and not style.adds and "step" not in places:
        return None
    if not places and not constants:
        return None
    return replace(made, places=tuple(places.values())[:MOST_COLUMNS], constants=constants)


def _begin(style: Style, found: re.Match[str]) -> int:
    """Where pairs are looked for: at `at`, else behind what tells the style where only that parts
    them from other words, else everywhere."""
    if found.groupdict().get("at") is not None:
        return found.start("at")
    return found.end() if style.adds or style.grammar == "words" else 0


def _put(
    places: dict[str, Place], constants: dict[str, float], line: bytes, what: Meant, start: int,
    text: str, factor: float = 1.0,
) -> None:  # fmt: skip
    """A value where it stands. The first of a name counts."""
    if not what.name or what.name in places or what.name in constants:
        return
    if text in _BARE:
        constants[what.name] = _BARE[text]
        return
    at = place_of(line, start, text)
    if at is None:
        return
    try:
        float(text.replace(",", ""))
    except ValueError:
        return
    places[what.name] = Place(what.name, ((at, what.factor * factor),), what.inverse)


def _pairs(
    line: bytes, text: str, begin: int, style: Style, places: dict[str, Place],
    constants: dict[str, float],
) -> None:  # fmt: skip
    for one in GRAMMARS[style.grammar].finditer(text, begin):
        key = one["key"].strip()
        if key.endswith(_PLACES):
            continue
        what = style.own.get(key) or style.own.get(key.lower()) or meant(key)
        if what.name in ("step", "total"):
            what = Meant("step") if what.name == "step" else Meant("")
        unit = one["unit"] or ""
        known = what.factor == 1.0 and (what.name in _SECONDS or not what.name.endswith("_s"))
        factor = UNITS.get(unit, 1.0) if known else 1.0
        _put(places, constants, line, what, one.start("value"), one["value"], factor)


#: Where in a program a line was written: `trainer.py:42` is no figure.
_PLACES = (".py", ".cpp", ".cc", ".cu", ".h")
_SECONDS = {"step_s", "data_s", "forward_s", "backward_s", "comm_s", "optimizer_s", "save_s",
            "elapsed_s", "tokens_per_s", "tokens_per_s_gpu"}  # fmt: skip
_ELAPSED = re.compile(
    r"(?P<step>\d+)/(?P<total>\d+) \[(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d\d)<[^,\]]*"
    r"(?:, *(?P<rate>[\d.]+)(?P<per>s/it|it/s))?"
)


def _bar(line: bytes, text: str, places: dict[str, Place], constants: dict[str, float]) -> None:
    """Step, total, elapsed time and rate of a bar of tqdm in the line, where there is one."""
    found = _ELAPSED.search(text)
    if found is None:
        return
    for name in ("step", "total"):
        _put(places, constants, line, Meant(name), found.start(name), found[name])
    if found["rate"]:
        what = Meant("bar_s", inverse=found["per"] == "it/s")
        _put(places, constants, line, what, found.start("rate"), found["rate"])
    parts = [
        (place_of(line, found.start(name), found[name]), float(factor))
        for name, factor in (("h", 3600), ("m", 60), ("s", 1)) if found[name]
    ]  # fmt: skip
    known = tuple((at, factor) for at, factor in parts if at is not None)
    if len(known) == len(parts):
        places["elapsed_s"] = Place("elapsed_s", known)


_RANGE = re.compile(rf"(?P<key>[\w-]+) ?\.*: (?:\((?P<low>{NUMBER}), )?(?P<value>{NUMBER})")


def _range(
    line: bytes, text: str, begin: int, places: dict[str, Place], constants: dict[str, float]
) -> None:
    """Megatron's timers, in milliseconds: the least and the most of all ranks, or the most."""
    found = _RANGE.match(text, begin)
    if found is None:
        return
    for end, group in (("min", "low"), ("max", "value")):
        if found[group]:
            name = Meant(f"timer/{found['key']}.{end}", 1e-3)
            _put(places, constants, line, name, found.start(group), found[group])


def _ranked(line: bytes, text: str, begin: int, places: dict[str, Place]) -> None:
    """A rank's time of the timer that the line above names; `rank` and `ranked_s`."""
    found = re.compile(r"rank +(\d+): ([\d.]+)").match(text, begin)
    if found is not None:
        for name, group, factor in (("rank", 1, 1.0), ("ranked_s", 2, 1e-3)):
            _put(places, {}, line, Meant(name), found.start(group), found[group], factor)


def rank_figure(line: bytes, text: str) -> int | None:
    """Which figure is the rank's, by the launcher's prefix; None without one."""
    found = _RANK.match(text)
    if found is None:
        return None
    group = next(name for name, value in found.groupdict().items() if value is not None)
    at = place_of(line, found.start(group), found[group])
    return at


def pairs_of(line: bytes) -> list[tuple[str, int, str]]:
    """Key, where its value begins, and the value, of every pair of a line of no known style."""
    if len(line) > MOST_BYTES:
        return []
    text = line.decode("latin-1")
    return [
        (one["key"].strip(), one.start("value"), one["value"])
        for one in GRAMMARS["pairs"].finditer(text)
    ]


def fill(made: Layout, line: bytes, first: Sequence[tuple[Meant, int, str]]) -> Layout:
    """The layout with the places given, and all pairs of the line."""
    places: dict[str, Place] = {}
    constants: dict[str, float] = {}
    for what, start, text in first:
        _put(places, constants, line, what, start, text)
    _pairs(line, line.decode("latin-1"), 0, made.style, places, constants)
    return replace(made, places=tuple(places.values())[:MOST_COLUMNS], constants=constants)
