"""What a log's lines of NCCL say of the way that communication takes."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.diagnosis.reading import Sign
from preflight.facts.series import Log
from preflight.model import Evidence


def transport_signs(log: Log) -> Iterator[Sign]:
    """Sockets between hosts. Host memory between GPUs of one host is for `preflight topo`."""
    events = [one for one in log.events if one.kind == "transport"]
    # What a channel goes through; the network that NCCL has at hand says nothing of one.
    sockets = [one for one in events if "via NET/Socket" in one.text]
    rdma = [one for one in events if "NET/IB" in one.text or "NET/OFI" in one.text]
    rdma = [one for one in rdma if "No device found" not in one.text]
    if sockets and not rdma:
        yield Sign(
            "slow-transport", "NCCL uses NET/Socket between hosts, and no RDMA",
            confidence="medium",
            evidence=tuple(
                Evidence("log", text=one.text, line=one.line, source=log.source)
                for one in sockets[:2]
            ),
            against=("no channel goes via NET/IB",),
            fix=("is there InfiniBand or RoCE? ibstat; then NCCL_IB_HCA and the plugin: preflight "
                 "topo; with Ethernet alone sockets are the way",),
        )  # fmt: skip
