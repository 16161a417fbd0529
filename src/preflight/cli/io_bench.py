"""preflight io-bench: storage as training uses it."""

from __future__ import annotations

from msgspec.structs import replace

from preflight.cli.judging import judge_and_report
from preflight.cli.options import Options
from preflight.cli.plan import Question
from preflight.cli.streams import Streams

DOMAINS = ("io",)


def run(options: Options, streams: Streams) -> int:
    """Judge what fio measured."""
    question = Question("io-bench", DOMAINS, ("io.*",))
    # Whoever types the name of active work asks for it.
    return judge_and_report(question, replace(options, level="standard"), streams)
