"""What NCCL wrote in several files, such as one for each process (NCCL_DEBUG_FILE), as one log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from preflight.assemble.answers import answer_text
from preflight.assemble.sources import probe_of
from preflight.facts.nccl import NcclLog
from preflight.model import Missing, Raw

_LOG = "nccl-log"


def one_log(raws: Mapping[str, Raw], read: Mapping[str, Any], first: Any) -> Any:
    """The log of all files; `first` where there is but one."""
    names = [name for name, log in read.items() if isinstance(log, NcclLog)]
    if len(names) < 2:
        return read[names[0]] if names else first
    from preflight.logs.nccl.log import nccl_logs  # late: most hosts come without a log

    return nccl_logs((name, answer_text(raws[name], probe_of(name))) for name in names)


def with_runs(log: Any, runs: Any) -> Any:
    """The log, and whether its versions are to be compared. Without INFO the first rank of each run
    announces its own: more versions than runs are of one job."""
    if not isinstance(log, NcclLog) or log.info_lines or isinstance(log.versions, Missing):
        return log
    versions = {one.version for one in log.versions}
    one_job = isinstance(runs, tuple) and 0 < len(runs) < len(versions)
    return replace(log, comparable_versions=one_job)
