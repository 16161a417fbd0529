"""What NCCL wrote in several files, such as one for each process (NCCL_DEBUG_FILE), as one log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from preflight.assemble.answers import answer_text
from preflight.assemble.sources import probe_of
from preflight.facts.nccl import NcclLog
from preflight.model import Raw

_LOG = "nccl-log"


def one_log(raws: Mapping[str, Raw], read: Mapping[str, Any], first: Any) -> Any:
    """The log of all files; `first` where there is but one."""
    names = [name for name, log in read.items() if isinstance(log, NcclLog)]
    if len(names) < 2:
        return read[names[0]] if names else first
    from preflight.logs.nccl.log import nccl_logs  # late: most hosts come without a log

    return nccl_logs((name, answer_text(raws[name], probe_of(name))) for name in names)
