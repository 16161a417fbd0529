"""preflight gpu-health: everything a host tells of its GPUs."""

from __future__ import annotations

from preflight.cli.judging import judge_and_report
from preflight.cli.options import Options
from preflight.cli.plan import Question
from preflight.cli.streams import Streams

#: Everything a GPU host can tell; of the kernel its whole log, for what ends a training run (no
#: memory left, a hung task, a library that crashes) stands beside the Xids. Several
#: hosts are compared.
GPU_DOMAINS = ("gpu", "pcie", "fabric", "chassis", "dcgm", "live", "kernel", "fleet")


def run(options: Options, streams: Streams) -> int:
    """Judge the GPUs. Whoever asks about GPUs is told when there are none."""
    return judge_and_report(Question("gpu-health", GPU_DOMAINS, ("gpu.present",)), options, streams)
