"""Paths through the facts: `gpus[*].pcie.width`, `driver.state`, `site.lustre.number`, and one
element by its name: `sysctls[vm.swappiness].number`."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from preflight.facts.host import Host, SiteAnswer
from preflight.model import Evidence, Missing

#: Endings of field names that are units, as a person writes them.
UNITS = {
    "c": "C",
    "w": "W",
    "mhz": "MHz",
    "bytes": "bytes",
    "mib": "MiB",
    "percent": "%",
    "s": "s",
    "us": "us",
    "h": "h",
    "gtps": "GT/s",
    "gbps": "GB/s",
    "mbps": "MB/s",
    "tflops": "TFLOP/s",
    "gbits": "Gbit/s",
    "pages": "pages",
    "million": "per million",
    "nats": "nats",
}
#: Fields whose unit says what they are held against.
_UNITS_OF = {
    "behind_busiest_percent": "% less busy than the busiest",
    "behind_percent": "% longer than the others",
    "slower_percent": "% slower than the others",
    "loss_difference": "nats",
    "loader_ratio": "times",
    "efficiency": "of one alone",
    "not_finite": "steps",
}


class Path(Struct, frozen=True):
    """A parsed path. `each`: the list part before [*] or [NAME], empty where there is none;
    `chosen`: the NAME; `site`: the id of a site's own probe, whose answer `rest` then begins at."""

    text: str
    each: tuple[str, ...]
    rest: tuple[str, ...]
    unit: str = ""
    site: str = ""
    chosen: str = ""


class Reached(Struct, frozen=True):
    """One value that a path reached. `element` is None where the path has no [*]."""

    subject: str
    device: str
    element: Any
    value: Any
    evidence: tuple[Evidence, ...] = ()


def parse(text: str) -> Path:
    """The path in its parts; ValueError where it is none. Whether there are such facts is another
    question: `check`."""
    if text.startswith("site."):
        return _site(text)
    head, bracket, tail = text.partition("[")
    if not bracket:
        rest = tuple(head.split("."))
        return Path(text, (), rest, _unit(rest))
    name, closed, after = tail.partition("].")
    if not (name and closed and after) or "[" in after:
        raise ValueError(f"{text!r}: after one [*] or [NAME] comes .name")
    rest = tuple(after.split("."))
    chosen = "" if name == "*" else name
    return Path(text, tuple(head.split(".")), rest, _unit(rest), chosen=chosen)


def _unit(names: tuple[str, ...]) -> str:
    """The unit of the last name that has one: `power_w.median` is in watts."""
    if names[-1] in _UNITS_OF:
        return _UNITS_OF[names[-1]]
    name = next((name for name in reversed(names) if name.rpartition("_")[2] in UNITS), "")
    unit = UNITS.get(name.rpartition("_")[2], "")
    # A distance in degrees is easily taken for a temperature.
    return f"{unit} of margin" if name.endswith("margin_c") else unit


def check(path: Path, root: Any = Host) -> None:
    """Hold the path against the vocabulary; ValueError says which part is unknown and what there is
    instead."""
    if path.site:
        return
    kind = element_type(path, root) if path.each else root
    for name in path.rest:
        kind = _descend(path.text, kind, name)


def accepts(path: Path, value: Any) -> bool:
    """Whether the fact at `path` could have this value: a count is no text, yes/no is no number."""
    kind: Any = element_type(path) if path.each else Host
    for name in path.rest if not path.site else ():
        kind = _descend(path.text, kind, name)
    kinds = {int: (int,), float: (int, float), bool: (bool,), str: (str,)}.get(kind)
    if kinds is None or path.site:
        return True
    return isinstance(value, kinds) and (kind is bool or not isinstance(value, bool))


def element_type(path: Path, root: Any = Host) -> Any:
    """What `where` paths begin at: the type of the elements, None where the path has no [*]."""
    if not path.each:
        return None
    kind = root
    for name in path.each:
        kind = _descend(path.text, kind, name)
    return _element_type(path.text, kind)


def reach(host: Host, path: Path) -> list[Reached]:
    """Every value the path leads to. A Missing on the way is the value; a list that is missing is
    one value on the host; an empty list reaches nothing."""
    if path.site:
        return [_reach_site(host, path)]
    start, evidence = _walk(host, path.each, ())
    if isinstance(start, Missing):
        return [Reached(host.name, "", None, start)]
    if not path.each:
        value, found = _walk(host, path.rest, ())
        return [Reached(host.name, "", None, value, found)]
    if path.chosen:
        return [_chosen(host, start, path)]
    return list(_elements(start, path.rest, evidence))


def _chosen(host: Host, elements: tuple[Any, ...], path: Path) -> Reached:
    """The one element of that name, told as a fact of the host."""
    found = next((one for one in elements if one.name == path.chosen), None)
    if found is None:
        found = Missing("not-applicable", f"it has no {path.chosen}")
    value, evidence = _walk(found, path.rest, ())
    return Reached(host.name, "", None, value, evidence)


def value_at(element: Any, names: tuple[str, ...]) -> Any:
    """The value at `names` below an element, or the Missing on the way to it."""
    return _walk(element, names, ())[0]


def _elements(
    elements: tuple[Any, ...], names: tuple[str, ...], evidence: tuple[Evidence, ...]
) -> Iterator[Reached]:
    for element in elements:
        value, found = _walk(element, names, evidence)
        device = getattr(element, "bus_id", "")
        device = device if isinstance(device, str) else ""
        yield Reached(element.name, device, element, value, found)


def _walk(
    start: Any, names: tuple[str, ...], evidence: tuple[Evidence, ...]
) -> tuple[Any, tuple[Evidence, ...]]:
    """Follow the names; the last record that knows its probe and line is the evidence."""
    value = start
    for depth, name in enumerate((*names, "")):
        if isinstance(value, Missing):
            return value, evidence
        if isinstance(value, Struct):
            told = getattr(value, "probe", "")
            line = getattr(value, "line", None)
            if told:
                evidence = (Evidence(told, line=line, field=".".join(names[depth:])),)
        if name:
            value = getattr(value, name)
    return value, evidence


def _site(text: str) -> Path:
    identifier, _, leaf = text.rpartition(".")
    if leaf not in SiteAnswer.__struct_fields__[:4] or identifier == "site":
        raise ValueError(f"{text!r}: a site fact is site.NAME.rc, .text, .lines or .number")
    return Path(text, (), (leaf,), site=identifier)


def _reach_site(host: Host, path: Path) -> Reached:
    answer = host.site.get(path.site)
    if answer is None:
        answer = Missing("not-asked", f"the probe {path.site} was not asked")
    value, evidence = _walk(answer, path.rest, ())
    return Reached(host.name, "", None, value, evidence)


def _descend(text: str, kind: Any, name: str) -> Any:
    fields = _fields(kind)
    if name not in fields:
        have = f"there is {', '.join(fields)}" if fields else f"nothing lies below {kind!r}"
        raise ValueError(f"{text!r}: no fact {name!r}; {have}")
    return _known(fields[name])


def _element_type(text: str, kind: Any) -> Any:
    if get_origin(kind) is not tuple:
        raise ValueError(f"{text!r}: [*] stands behind something that is no list")
    return get_args(kind)[0]


@cache
def _fields(kind: Any) -> dict[str, Any]:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return {}
    return get_type_hints(kind)


def _known(kind: Any) -> Any:
    """Known[T] -> T."""
    if get_origin(kind) in (Union, types.UnionType):
        return next(part for part in get_args(kind) if part is not Missing)
    return kind
