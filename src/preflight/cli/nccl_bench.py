"""preflight nccl-bench: is the network as fast as this hardware allows?"""

from __future__ import annotations

from preflight.cli.judging import judge_and_report
from preflight.cli.options import Options
from preflight.cli.plan import Question
from preflight.cli.streams import Streams
from preflight.errors import UsageError

#: A fast enough number over a wrong way is a fault too: NCCL's own lines are judged with it.
DOMAINS = ("collectives", "nccl")


def run(options: Options, streams: Streams) -> int:
    """Judge what benchmarks printed."""
    if not options.from_:
        raise UsageError(
            "nccl-bench reads what benchmarks printed, and runs none itself",
            "all_reduce_perf -b 8 -e 8G -f 2 -g 8 | preflight nccl-bench --from -",
        )
    return judge_and_report(Question("nccl-bench", DOMAINS), options, streams)
