"""preflight versions: whether the software under the training run fits together."""

from __future__ import annotations

from preflight.cli.judging import judge_and_report
from preflight.cli.options import Options
from preflight.cli.plan import Question
from preflight.cli.streams import Streams

#: What of the comparison of hosts belongs to it.
FLEET = (
    "fleet.told.same", "fleet.kernel.*", "fleet.os.*", "fleet.driver.*", "fleet.gpu.vbios.*",
    "fleet.fabric_manager.*", "fleet.board.bios.*", "fleet.software.*", "fleet.packages.*",
    "fleet.nccl.*", "fleet.torch.*",
    "fleet.env.*", "fleet.nic.firmware.*",
)  # fmt: skip


def run(options: Options, streams: Streams) -> int:
    """Judge the versions of driver, CUDA, libraries, packages, firmware, and the environment."""
    question = Question("versions", ("versions", "environment", "fleet"), fleet=FLEET)
    return judge_and_report(question, options, streams)
