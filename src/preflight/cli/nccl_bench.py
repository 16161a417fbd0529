"""preflight nccl-bench: is the network as fast as this hardware allows, and if not, where."""

from __future__ import annotations

import shlex

from msgspec.structs import replace

from preflight.cli.bench_settings import hold_sweep
from preflight.cli.benches import plan_of
from preflight.cli.drills import has_no_gpu
from preflight.cli.holding import hold
from preflight.cli.judging import judge_and_report
from preflight.cli.nccl_tests.asked import hold_folder
from preflight.cli.nccl_tests.instead import with_engine
from preflight.cli.options import BENCH, OPTIONS, Options
from preflight.cli.plan import Question
from preflight.cli.streams import Streams
from preflight.errors import UsageError

#: A fast enough number over a wrong way is a fault too: NCCL's own lines are judged with it.
DOMAINS = ("collectives", "nccl", "network")
#: What its name asks for: where that was measured and its bound is not known it is undetermined.
ASKED = ("collectives.*", "rdma.bandwidth")
#: Of the network whether there is a port for it, and whether those that are named are.
PARTS: dict[str, tuple[str, ...]] = {"network": ("network.ports.any", "network.ports.stated")}


def run(options: Options, streams: Streams) -> int:
    """Time collectives, on one host or on all of them as one job, and judge what was told."""
    hold(options)
    _hold(options)
    hold_folder(options)
    options = with_engine(options, tuple(shlex.split(options.python)), streams)
    benches = None if options.from_ else plan_of(options)
    if benches and has_no_gpu(options):
        hold_sweep(benches.get("sweep", ()), on_gpus=False)
    asked = (*ASKED, "wire.*") if options.wire else ASKED
    question = Question("nccl-bench", DOMAINS, asked, parts=PARTS, pairs=True, benches=benches)
    # Whoever types the name of active work asks for it.
    return judge_and_report(question, replace(options, level="standard"), streams)


def _hold(options: Options) -> None:
    """Refuse what would be ignored: how to measure, where nothing is measured."""
    if options.interface is not None and not options.interface.strip():
        raise UsageError("--interface '' names none", "--interface eth0, or leave it out")
    if not options.from_:
        return
    unset = Options()
    given = [
        OPTIONS[name].flags[0] for name in BENCH if getattr(options, name) != getattr(unset, name)
    ]
    if given:
        hint = f"leave out {', '.join(given)}; to measure, leave out --from"
        raise UsageError(f"--from reads what was recorded, {given[0]} says how to measure", hint)
