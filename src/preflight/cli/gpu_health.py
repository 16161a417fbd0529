"""preflight gpu-health: everything a host tells of its GPUs."""

from __future__ import annotations

from msgspec.structs import replace

from preflight.cli.judging import judge_and_report
from preflight.cli.options import STRESS, Options
from preflight.cli.plan import Question
from preflight.cli.streams import Streams

#: Everything a GPU host can tell; of the kernel its whole log, for what ends a training run (no
#: memory left, a hung task, a library that crashes) stands beside the Xids. Several
#: hosts are compared.
GPU_DOMAINS = (
    "gpu", "pcie", "fabric", "chassis", "dcgm", "live", "kernel", "stress", "fleet",
)  # fmt: skip
_DEFAULTS = Options()


def run(options: Options, streams: Streams) -> int:
    """Judge the GPUs. Whoever asks about GPUs is told when there are none, also where processors
    are put under load in their place: --set gpu.count=0 says that none are expected."""
    question = Question("gpu-health", GPU_DOMAINS, ("gpu.present",))
    if any(getattr(options, name) != getattr(_DEFAULTS, name) for name in STRESS):
        from preflight.cli.stress import level_of, plan_of

        asked = (*question.asked, "stress.*")
        question = replace(question, asked=asked, stresses=plan_of(options))
        options = replace(options, level=level_of(options))
    return judge_and_report(question, options, streams)
