"""What a report says of links, by the answer of each host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.judge.load import load
from preflight.judge.overrides import mark
from preflight.model import HostReport, Raw
from preflight.reports.wire import wire_tables


def judged(texts: Mapping[str, str]) -> dict[str, HostReport]:
    """By the checks on links, as whoever asks for them by name."""
    checks = [one for one in load(("collectives",)).checks if one.id.startswith(("wire.", "rdma."))]
    checks = mark(checks, ["wire.*"], asked=True)
    return {host: examine(host, [Raw(host, "nccl-bench", stdout=text)], checks)
            for host, text in texts.items()}  # fmt: skip


def tabled(texts: Mapping[str, str]) -> dict[str, tuple[dict[str, Any], ...]]:
    """The tables of each host."""
    return {host: wire_tables(assemble(host, [Raw(host, "nccl-bench", stdout=text)]).host)
            for host, text in texts.items()}  # fmt: skip
