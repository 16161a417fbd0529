"""The adapters that count: of those fit for training the ones that somebody named for it.

Named by --nics, else by NCCL_IB_HCA where the host's own environment sets it. A list adds nothing
that is for storage and logins, unless the host has no adapter for training by its place and rate:
then who names one knows better. A list that takes none decides nothing; that is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from preflight.facts.nics import NicChoice, NicPort
from preflight.facts.stack import EnvVar
from preflight.facts.topology import NicPlace
from preflight.hca_list import takes
from preflight.model import Known, Missing

T = TypeVar("T", NicPlace, NicPort)

_VARIABLE = "NCCL_IB_HCA"
_NOBODY = Missing("not-asked", "nobody named the adapters for training: --nics, or NCCL_IB_HCA")


def choice_of(stated: str, environment: Known[tuple[EnvVar, ...]]) -> Known[NicChoice]:
    """What was stated; else what the shell or the processes asked for have set, all alike, else
    NCCL's files. A report is of another time."""
    if stated:
        return NicChoice(stated, "--nics")
    told = () if isinstance(environment, Missing) else environment
    mine = [one for one in told if one.name == _VARIABLE and one.value.strip("^= ,")]
    own = [one for one in mine if one.of in ("", "shell") or one.of.startswith("pid ")]
    found = {one.value for one in own or [one for one in mine if one.of.startswith("/")][:1]}
    return NicChoice(found.pop(), _VARIABLE) if len(found) == 1 else _NOBODY


def by_choice(
    nics: Sequence[NicPlace], known: Known[tuple[NicPort, ...]], choice: Known[NicChoice]
) -> tuple[NicPlace, ...]:
    """The adapters with their roles by the list, which may name one of several ports."""
    if isinstance(choice, Missing):
        return tuple(nics)
    ports = () if isinstance(known, Missing) else known

    def taken(nic: NicPlace) -> bool:
        numbers = [_number(port) for port in ports if port.nic == nic.name] or [""]
        return any(takes(choice.value, nic.name, number) for number in numbers)

    return _told(nics, taken, lambda nic: nic.role == "other")


def ports_by_choice(
    known: Known[tuple[NicPort, ...]], choice: Known[NicChoice]
) -> Known[tuple[NicPort, ...]]:
    """The same of ports."""
    if isinstance(choice, Missing) or isinstance(known, Missing):
        return known

    def taken(port: NicPort) -> bool:
        return takes(choice.value, port.nic, _number(port))

    return _told(known, taken, lambda port: port.role == "other" and port.state == "ACTIVE")


def _told(
    each: Iterable[T], taken: Callable[[T], bool], otherwise: Callable[[T], bool]
) -> tuple[T, ...]:
    """All with their roles. `otherwise`: what may be named where nothing is for training."""
    each = tuple(each)
    able = [one for one in each if one.role in ("training", "left-out")]
    able = able or [one for one in each if otherwise(one)]
    chosen = {one.name for one in able if taken(one)}
    if not chosen:
        return each
    names = {one.name for one in able}
    return tuple(
        one if one.name not in names
        else replace(one, role="training") if one.name in chosen
        else replace(one, role="left-out") if one.role == "training" else one
        for one in each
    )  # fmt: skip


def _number(port: NicPort) -> str:
    """Of mlx5_0/1 the 1."""
    return port.name.rpartition("/")[2]
