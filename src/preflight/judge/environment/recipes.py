"""Settings known by experience: those that do nothing, contradict each other, harm."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from preflight.env_table import Recipe, table
from preflight.judge.environment.scene import Fault, Scene
from preflight.model import Missing

#: Links that NCCL reaches by verbs itself.
_VERBS = ("InfiniBand", "Ethernet")


def by_recipe(check: str) -> Callable[[Scene], Iterator[Fault]]:
    """The judge of the recipes of one check."""

    def judge(scene: Scene) -> Iterator[Fault]:
        for recipe in table().recipes:
            if recipe.check == check and _fits(scene, recipe):
                yield _fault(scene, recipe)

    return judge


def all_of(*judges: Callable[[Scene], Iterator[Fault]]) -> Callable[[Scene], Iterator[Fault]]:
    """The faults that any of them finds."""
    return lambda scene: (fault for judge in judges for fault in judge(scene))


def twice(scene: Scene) -> Iterator[Fault]:
    """Variables that one text sets to one value and later to another: the last counts."""
    for one in scene.variables:
        if one.before:
            yield Fault(one, f"set twice, before this to {one.before}; the last counts")


def _fits(scene: Scene, recipe: Recipe) -> bool:
    for name, pattern in recipe.set.items():
        value = scene.value(name)
        if value is None or (pattern and not re.fullmatch(pattern, value, re.IGNORECASE)):
            return False
    if recipe.compare and not _compared(recipe.compare, *map(scene.value, recipe.set)):
        return False
    if any(fnmatchcase(one.name, glob) for one in scene.variables for glob in recipe.unset.split()):
        return False
    if not all(scene.holds(of, wanted) for of, wanted in recipe.versions.items()):
        return False
    return not recipe.links or _has(scene, recipe.links)


def _compared(how: str, first: str | None, second: str | None) -> bool:
    if how == "unlike":
        return first != second
    numbers = [int(one) for one in (first, second) if one and one.isdecimal()]
    return len(numbers) == 2 and numbers[0] > numbers[1]


def _has(scene: Scene, links: str) -> bool:
    """Whether the host's RDMA adapters are of this kind; what is not known is not."""
    have = scene.host.env_targets.link_layers
    if not scene.here or isinstance(have, Missing):
        return False
    return bool(set(have) & set(_VERBS)) if links == "any" else have == (links,)


def _fault(scene: Scene, recipe: Recipe) -> Fault:
    """Told of the first variable; the others are named beside it."""
    first, *others = recipe.set
    variable = next(one for one in reversed(scene.variables) if one.name == first)
    beside = ", ".join(f"{name}={scene.value(name)}" for name in others)
    told = f"beside {beside}: {recipe.told}" if beside else recipe.told
    return Fault(variable, "; ".join(filter(None, (told, recipe.instead))))
