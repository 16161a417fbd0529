"""preflight sysctl: the system under the training run."""

from __future__ import annotations

from preflight.cli.judging import judge_and_report
from preflight.cli.options import Options
from preflight.cli.plan import Question
from preflight.cli.streams import Streams

#: What of the comparison of hosts belongs to it.
FLEET = ("fleet.told.same", "fleet.sysctl.*", "fleet.clock.*", "fleet.board.*", "fleet.memory.*")


def run(options: Options, streams: Streams) -> int:
    """Judge kernel parameters, limits, processors, memory and disks."""
    question = Question("sysctl", ("system", "fleet"), fleet=FLEET)
    return judge_and_report(question, options, streams)
