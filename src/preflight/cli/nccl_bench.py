"""preflight nccl-bench: is the network as fast as this hardware allows, and if not, where."""

from __future__ import annotations

import shlex

from msgspec.structs import replace

from preflight.cli.benches import plan_of
from preflight.cli.judging import judge_and_report
from preflight.cli.nccl_tests.instead import with_engine
from preflight.cli.options import Options
from preflight.cli.plan import Question, hold
from preflight.cli.streams import Streams

#: A fast enough number over a wrong way is a fault too: NCCL's own lines are judged with it.
DOMAINS = ("collectives", "nccl", "network")
#: Of the network whether there is a port for it, and whether those that are named are.
PARTS: dict[str, tuple[str, ...]] = {"network": ("network.ports.any", "network.ports.stated")}


def run(options: Options, streams: Streams) -> int:
    """Time collectives, on one host or on all of them as one job, and judge what was told."""
    hold(options)
    options = with_engine(options, tuple(shlex.split(options.python)), streams)
    benches = None if options.from_ else plan_of(options)
    asked = ("collectives.*", "wire.*") if options.wire else ("collectives.*",)
    question = Question("nccl-bench", DOMAINS, asked, parts=PARTS, pairs=True, benches=benches)
    # Whoever types the name of active work asks for it.
    return judge_and_report(question, replace(options, level="standard"), streams)
