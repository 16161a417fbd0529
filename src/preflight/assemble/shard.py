"""A file of the user's data, or why there is none."""

from __future__ import annotations

from preflight.facts.shard import Shard, ShardAnswer
from preflight.model import NOT_IN_INPUT, Known, Missing

NO_SHARD = Missing(
    "not-asked", "no file of the data was named: `preflight io-bench --shard FILE` decodes one"
)


def shards_of(told: Known[ShardAnswer], *, asked: bool) -> Known[tuple[Shard, ...]]:
    """What was decoded."""
    if told is NOT_IN_INPUT:
        return NO_SHARD if asked else told
    if isinstance(told, Missing):
        return told
    if told.busy:  # active work never competes
        return Missing("busy", told.busy)
    return told.shards or Missing("exited", told.cannot)
