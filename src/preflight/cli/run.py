"""preflight run: the whole checklist for the hardware that is there."""

from __future__ import annotations

from preflight.cli.judging import judge_and_report
from preflight.cli.options import Options
from preflight.cli.plan import Question
from preflight.cli.streams import Streams
from preflight.judge.load import DOMAINS


def run(options: Options, streams: Streams) -> int:
    """Judge every domain; one that this hardware has nothing of is skipped with the reason."""
    return judge_and_report(Question("run", DOMAINS), options, streams)
