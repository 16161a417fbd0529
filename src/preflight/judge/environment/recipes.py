"""Settings known by experience: those that do nothing, contradict each other, harm."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from preflight.env_table import Recipe, table
from preflight.facts.stack import EnvVar
from preflight.judge.environment.scene import Fault, Found, Scene, unseen
from preflight.model import NOT_IN_INPUT, Missing

#: Links that NCCL reaches by verbs itself.
_VERBS = ("InfiniBand", "Ethernet")


def by_recipe(check: str) -> Callable[[Scene], Found]:
    """The judge of the recipes of one check."""

    def judge(scene: Scene) -> Found:
        for recipe in table().recipes:
            if recipe.check == check and _is_set(scene, recipe):
                yield from _judged(scene, recipe)

    return judge


def all_of(*judges: Callable[[Scene], Found]) -> Callable[[Scene], Found]:
    """The faults that any of them finds."""
    return lambda scene: (fault for judge in judges for fault in judge(scene))


def twice(scene: Scene) -> Iterator[Fault]:
    """Variables that one text sets to one value and later to another: the last counts."""
    for one in scene.variables:
        if one.before:
            yield Fault(one, f"set twice, before this to {one.before}; the last counts")


def _is_set(scene: Scene, recipe: Recipe) -> bool:
    """Whether the variables have these values."""
    for name, pattern in recipe.set.items():
        value = scene.value(name)
        if value is None or (pattern and not re.fullmatch(pattern, value, re.IGNORECASE)):
            return False
    if recipe.compare and not _compared(recipe.compare, *map(scene.value, recipe.set)):
        return False
    unset = recipe.unset.split()
    return not any(fnmatchcase(one.name, glob) for one in scene.variables for glob in unset)


def _judged(scene: Scene, recipe: Recipe) -> Found:
    """The fault, where the adapters of the host are those that it takes."""
    first = _first(scene, recipe)
    links = scene.host.env_targets.link_layers if scene.here else NOT_IN_INPUT
    if not recipe.links:
        yield _fault(scene, recipe, first)
    elif isinstance(links, Missing):
        yield unseen(first, "RDMA adapters", links)
    elif _has(links, recipe.links):
        yield _fault(scene, recipe, first)


def _compared(how: str, first: str | None, second: str | None) -> bool:
    if how == "unlike":
        return first != second
    numbers = [int(one) for one in (first, second) if one and one.isdecimal()]
    return len(numbers) == 2 and numbers[0] > numbers[1]


def _has(have: tuple[str, ...], links: str) -> bool:
    """Whether the host's RDMA adapters are of this kind."""
    return bool(set(have) & set(_VERBS)) if links == "any" else have == (links,)


def _first(scene: Scene, recipe: Recipe) -> EnvVar:
    name = next(iter(recipe.set))
    return next(one for one in reversed(scene.variables) if one.name == name)


def _fault(scene: Scene, recipe: Recipe, variable: EnvVar) -> Fault:
    """Told of the first variable; the others are named beside it."""
    _, *others = recipe.set
    beside = ", ".join(f"{name}={scene.value(name)}" for name in others)
    told = f"beside {beside}: {recipe.told}" if beside else recipe.told
    return Fault(variable, "; ".join(filter(None, (told, recipe.instead))))
