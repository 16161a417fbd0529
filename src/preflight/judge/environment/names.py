"""Names: unknown, gone, renamed, not there yet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.env_table import (
    Family,
    Variable,
    family_of,
    known_names,
    table,
    variables,
)
from preflight.facts.stack import EnvVar
from preflight.judge.environment.scene import Fault, Found, Scene, unversioned

#: How much of two names must agree (difflib's ratio) for one to be the other, mistyped: about one
#: letter in ten, of names for which others use the same beginning one in twenty-five.
_NEAR = 0.8
_VERY_NEAR = 0.93


def unknown(scene: Scene) -> Iterator[Fault]:
    """Names that are in no list, with the nearest that is."""
    never = {name for recipe in table().recipes if recipe.check == "never" for name in recipe.set}
    for one in scene.variables:
        family = family_of(one.name)
        if family is None or one.name in known_names() or one.name in never:
            continue
        near = _nearest(one.name, family)
        if near:
            yield Fault(one, f"{family.name} knows no such name; the nearest is {near}", near)
        elif family.unknown == "all" and not _is_anothers(one.name, family):
            told = f"no version of {family.name} up to now is known to read it"
            yield Fault(one, f"{told}, nor a plugin that is known here")


def _is_anothers(name: str, family: Family) -> bool:
    return any(name.startswith(prefix) for prefix in family.others.split())


def _nearest(name: str, family: Family) -> str:
    """The known name that this one is, mistyped; empty where none is near. A name with other
    digits is another name: CUDA_PATH_V11."""
    import difflib  # for mistakes only

    strict = family.unknown != "all" or _is_anothers(name, family)
    near = difflib.get_close_matches(
        name, sorted(known_names()), 3, _VERY_NEAR if strict else _NEAR
    )
    fitting = [one for one in near if _digits(one) == _digits(name) and family_of(one) is family]
    return fitting[0] if fitting else ""


def _digits(name: str) -> list[str]:
    return re.findall(r"\d+", name)


def gone(scene: Scene) -> Iterator[Fault]:
    """Names that no version of today reads, and that have no successor."""
    for one, row, of in _rows(scene):
        if row.until and not row.successor and scene.holds(of, f"<{row.until}") is not True:
            told = f"{_shown(of)} reads it no more since {row.until}{_have(scene, of)}"
            yield Fault(one, "; ".join(filter(None, (told, row.does))))


def renamed(scene: Scene) -> Found:
    """Names that have a successor, which is not set beside them. Of one that still works the
    version must be known."""
    for one, row, of in _rows(scene):
        late = row.until and scene.holds(of, f"<{row.until}") is not True
        old = bool(row.deprecated) and scene.holds(of, f">={row.deprecated}")
        if not row.successor or scene.value(row.successor) is not None:
            continue
        if late or old:
            since = row.until or row.deprecated
            told = f"{_shown(of)} {since} and later want {row.successor}{_have(scene, of)}"
            yield Fault(one, told, row.successor)
        elif old is None:
            yield unversioned(one, _shown(of))


def early(scene: Scene) -> Found:
    """Names that the version which is installed does not read yet."""
    for one, row, of in _rows(scene):
        soon = bool(row.since) and scene.holds(of, f"<{row.since}")
        if soon is None:
            yield unversioned(one, _shown(of))
        elif soon:
            yield Fault(one, f"{_shown(of)} reads it from {row.since} on{_have(scene, of)}")


def _rows(scene: Scene) -> Iterator[tuple[EnvVar, Variable, str]]:
    for one in scene.variables:
        row = variables().get(one.name)
        family = family_of(one.name)
        if row is not None:
            yield one, row, row.of or (family.version if family else "")


def _shown(of: str) -> str:
    return of.upper() if of == "nccl" else of


def _have(scene: Scene, of: str) -> str:
    return f"; here it is {scene.versions[of]}" if of in scene.versions else ""
