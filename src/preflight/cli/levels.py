"""What a recording tells above the level that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.assemble.asked import NO_TRAINING
from preflight.assemble.benchmarks import NO_BENCH, NO_SEARCH, NO_WIRE
from preflight.assemble.fio import NO_STORAGE
from preflight.assemble.objects import NO_OBJECTS
from preflight.assemble.shard import NO_SHARD
from preflight.assemble.storage import NO_PROOF
from preflight.assemble.stress import NO_STRESS
from preflight.model import NOT_IN_INPUT, Result, Status

_UNRECORDED = {
    one.text
    for one in (NOT_IN_INPUT, NO_BENCH, NO_OBJECTS, NO_PROOF, NO_SEARCH, NO_SHARD, NO_STORAGE,
                NO_STRESS, NO_TRAINING, NO_WIRE)
}  # fmt: skip


def as_recorded(results: Sequence[Result], beyond: frozenset[str]) -> list[Result]:
    """The results, without those of checks above the level where nothing of them was recorded."""
    mine = [one for one in results if one.check in beyond]
    if any(one.status is not Status.SKIP or one.reason not in _UNRECORDED for one in mine):
        return list(results)
    return [one for one in results if one.check not in beyond]
