"""preflight micro-train: the whole training loop, for a minute, on these machines."""

from __future__ import annotations

from msgspec.structs import replace

from preflight.cli.judging import judge_and_report
from preflight.cli.options import Options
from preflight.cli.plan import Question
from preflight.cli.streams import Streams
from preflight.cli.training import plan_of


def run(options: Options, streams: Streams) -> int:
    """Train, on one host or on all of them as one job, and judge what was told."""
    question = Question("micro-train", ("training",), ("training.*",), trains=plan_of(options))
    # Whoever types the name of active work asks for it.
    return judge_and_report(question, replace(options, level="standard"), streams)
