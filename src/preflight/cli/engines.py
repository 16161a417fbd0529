"""What measures collectives: the bundled engine, with torch, or nccl-tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from preflight.cli.benches import estimate
from preflight.cli.hosts import words_of
from preflight.cli.nccl_tests.job import Here, Together
from preflight.cli.nccl_tests.ways import Launcher, launcher_of
from preflight.cli.one_job import BENCH, as_one_job
from preflight.cli.options import Options
from preflight.cli.plan import Plan
from preflight.collect import Transport

if TYPE_CHECKING:
    from preflight.cli.hosts import Asking


def as_one_bench(many: Asking, plan: Plan, options: Options) -> None:
    """Have the hosts measured as one."""
    benches = plan.benches or {}
    if "tests" not in benches:
        many.takes = estimate(benches, len(many.hosts)).partition(";")[0]
        as_one_job(many, plan.python, BENCH)
        return
    # One host has a process of its own: it takes no launcher.
    launcher = None if len(many.hosts) == 1 else launcher_for(options)
    many.fleet = Together(many.fleet, many.interrupted, benches, plan.python, launcher)


def launcher_for(options: Options) -> Launcher:
    """By which nccl-tests is started on several hosts."""
    return launcher_of(slurm=options.slurm, slurm_args=words_of(options))


def here(plan: Plan) -> Callable[[Transport], Transport]:
    """What nccl-tests makes of the way to this machine."""
    benches = plan.benches or {}
    return lambda transport: Here(transport, benches, plan.python)
