"""preflight io-bench: storage as training uses it."""

from __future__ import annotations

from msgspec.structs import replace

from preflight.cli.judging import judge_and_report
from preflight.cli.options import STORE, Options
from preflight.cli.plan import OBJECTS, Question
from preflight.cli.projecting import hold_none, projection
from preflight.cli.shards import plan_of as shard_of
from preflight.cli.storing import plan_of
from preflight.cli.streams import Streams

#: What was measured is read beside what the devices and their links are.
DOMAINS = ("io", "storage")
SHARD = "shard"
_DEFAULTS = Options()


def run(options: Options, streams: Streams) -> int:
    """Write and read files with fio, or put and get objects, or read what was recorded of either,
    and judge what was measured; or decode a file of the user's."""
    # Whoever types the name of active work asks for it.
    return judge_and_report(_question(options), replace(options, level="standard"), streams)


def _question(options: Options) -> Question:
    if options.url is not None:
        from preflight.cli.objects import plan_of as plan_of_objects

        hold_none(options)
        return Question("io-bench", (OBJECTS,), ("objects.*",), objects=plan_of_objects(options))
    decodes = shard_of(options)
    if decodes is not None:
        return Question("io-bench", (SHARD,), (f"{SHARD}.*",), decodes=decodes)
    given = any(getattr(options, name) != getattr(_DEFAULTS, name) for name in STORE)
    stores = plan_of(options) if given or not options.from_ else None
    domains = (*DOMAINS, SHARD, OBJECTS) if options.from_ else DOMAINS
    return Question("io-bench", domains, ("io.*",), stores=stores, more_tables=projection(options))
